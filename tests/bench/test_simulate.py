"""How long `5spot simulate` takes for 100 machines and a week, the start of the process included."""

import subprocess
import sys
from pathlib import Path

import yaml
from pytest_benchmark.fixture import BenchmarkFixture

from tests import builders

MACHINES = 100
ZONES = ("Europe/London", "America/New_York", "UTC", "Asia/Tokyo", "Europe/Berlin")


def _fleet(folder: Path) -> Path:
    schedules = [builders.time_based(f"hours-{i}", timezone=zone) for i, zone in enumerate(ZONES)]
    machines = [
        builders.scheduled_machine(f"desk-{i:03}", schedule=builders.reference(f"hours-{i % len(ZONES)}"))
        for i in range(MACHINES)
    ]
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump_all([*schedules, *machines]))
    return path


def test_a_week_of_a_hundred_machines_as_a_process(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = _fleet(tmp_path)
    command = [sys.executable, "-m", "fivespot", "simulate", "--from", "2026-03-02T00:00:00Z", str(path)]

    def run() -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    told = benchmark.pedantic(run, rounds=10, warmup_rounds=1)  # type: ignore[no-untyped-call]
    assert told.splitlines()[-1].startswith(f"{MACHINES} machines, {len(ZONES)} providers, ")
    benchmark.extra_info["machines"] = MACHINES
    benchmark.extra_info["target"] = "0.3 s"
    if benchmark.stats is not None:
        print(
            f"\n5spot simulate, {MACHINES} machines, 7 days: {benchmark.stats.stats.min:.3f} s at best (target 0.3 s)"
        )
