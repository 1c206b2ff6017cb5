"""What people get wrong: one message with place, value and remedy, the right exit status, nothing half done."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from tests import builders
from tests.cli.running import (
    EXAMPLES,
    FIVESPOT,
    WEEK,
    ids,
    line_number,
    lines,
    manifests,
    one_line,
    process,
    run,
    written,
)

MACHINE = builders.scheduled_machine("desk-1")
GOOD = manifests(MACHINE, builders.time_based())
FILE = "fleet.yaml"


@attrs.frozen(kw_only=True)
class Case:
    """A file that is refused.

    Attributes:
        id: what is wrong with it.
        text: its content.
        encoding: how it is written.
        at: a text on the line that the message must name; empty when the message is about the file.
        says: what the message must contain.
    """

    id: str
    text: str
    encoding: str = "utf-8"
    at: str = ""
    says: tuple[str, ...]


def _schedule(**spec: object) -> str:
    return manifests(MACHINE, builders.provider("TimeBasedSpotSchedule", "nights", **spec))


def _hours(token: str) -> str:
    return _schedule(daysOfWeek=["mon-fri"], hoursOfDay=[token])


_OVERRIDES = [
    {"dates": ["2026-12-24"], "close": "13:00"},
    {"dates": ["2026-12-23/2026-12-25"], "windows": []},
]
_ARABIC = "\u0669-\u0661\u0667"
"""9-17 in digits that Python takes for numbers."""
_IS_REFUSED = "is refused: "

REFUSED = [
    Case(
        id="a zone that is misspelt",
        text=_schedule(timezone="America/New_Yrok", windows=[]),
        at="New_Yrok",
        says=("spec.timezone", "'America/New_Yrok'", "did you mean America/New_York"),
    ),
    Case(
        id="an abbreviation for a zone",
        text=_schedule(timezone="EDT", windows=[]),
        at="EDT",
        says=("spec.timezone", "'EDT'", "an abbreviation is not a zone name"),
    ),
    Case(
        id="minutes in an hour",
        text=_hours("9:30"),
        at="9:30",
        says=("spec.hoursOfDay[0]", "'9:30'", "whole hours 0 to 23", "for minutes use windows"),
    ),
    Case(
        id="an hour of 25",
        text=_hours("25"),
        at="'25'",
        says=("spec.hoursOfDay[0]", "'25'", "whole hours 0 to 23"),
    ),
    Case(
        id="Arabic digits",
        text=_hours(_ARABIC),
        at=_ARABIC,
        says=("spec.hoursOfDay[0]", f"'{_ARABIC}'", "whole hours 0 to 23"),
    ),
    Case(
        id="an hour that is a number",
        text=_schedule(daysOfWeek=["mon"], hoursOfDay=[9]),
        at="- 9",
        says=("spec.hoursOfDay[0]", "9 " + _IS_REFUSED, "quote it"),
    ),
    Case(
        id="a day that does not exist",
        text=_schedule(daysOfWeek=["mon-funday"], hoursOfDay=["9"]),
        at="funday",
        says=("spec.daysOfWeek[0]", "'mon-funday'", "mon tue wed thu fri sat sun"),
    ),
    Case(
        id="the 30th of February",
        text=_schedule(windows=[], holidays=["2026-02-30"]),
        at="2026-02-30",
        says=("spec.holidays[0]", "'2026-02-30'", "write real dates"),
    ),
    Case(
        id="a list of two megabytes",
        text=_schedule(daysOfWeek=["mon"], hoursOfDay=["9"] * 200_000).replace("'9'", "'9'   "),
        at="hoursOfDay",
        says=("spec.hoursOfDay", "write at most 100 entries"),
    ),
    Case(
        id="a date in two overrides",
        text=_schedule(windows=[], overrides=_OVERRIDES),
        at="2026-12-23/2026-12-25",
        says=("spec.overrides[1].dates[0]", "2026-12-24 has an entry already", "at most one per date"),
    ),
    Case(
        id="a key twice",
        text=GOOD.replace("  clusterName: grid\n", "  clusterName: grid\n  clusterName: other\n"),
        at="clusterName: other",
        says=("spec.clusterName", "the same key stands on line 10 already", "keep one of the two"),
    ),
    Case(
        id="a field that is misspelt",
        text=manifests(builders.scheduled_machine("desk-1", prioritty=7), builders.time_based()),
        at="prioritty",
        says=("spec.prioritty", "7 " + _IS_REFUSED, "unknown field; did you mean `priority`?"),
    ),
    Case(
        id="a kind that is misspelt",
        text=GOOD.replace("ScheduledMachine", "ScheduldMachine"),
        at="ScheduldMachine",
        says=("kind: 'ScheduldMachine'", "did you mean ScheduledMachine?"),
    ),
    Case(
        id="a machine with an invalid spec among good ones",
        text=manifests(MACHINE, builders.time_based(), builders.scheduled_machine("desk-2", priority=300)),
        at="priority",
        says=("ScheduledMachine desk-2", "spec.priority", "300 " + _IS_REFUSED, "0 to 255"),
    ),
    Case(
        id="two documents of one name",
        text=manifests(MACHINE, builders.time_based(), MACHINE),
        at="name: desk-1",
        says=("metadata.name: 'desk-1'", f"{FILE}:4 already defines this object", "rename one of the two"),
    ),
    Case(
        id="half a document",
        text=GOOD[: GOOD.index("  - 9-17")] + '  - "9-1',
        at='"9-1',
        says=("close the quote that opens here",),
    ),
    Case(
        id="tabs",
        text=GOOD.replace("  clusterName", "\tclusterName"),
        at="\tclusterName",
        says=("indent with spaces",),
    ),
    Case(id="a text that is no object", text="hello\n", at="hello", says=("'hello'", "an object is a mapping")),
    Case(
        id="a list with a bad item",
        text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [MACHINE, builders.time_based(windows=3)]}, indent=1),
        at='"windows"',
        says=("TimeBasedSpotSchedule nights", "spec.windows", "3 " + _IS_REFUSED, "write a list"),
    ),
    Case(
        id="half of a JSON text",
        text='{"apiVersion": "v1",\n "kind":',
        at='"kind"',
        says=("this is not JSON",),
    ),
    Case(
        id="another encoding than UTF-8",
        text=GOOD.replace("desk-1", "büro-1"),
        encoding="latin-1",
        at="büro",
        says=("byte fc", "save it as UTF-8"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=ids(REFUSED))
def test_a_bad_file_is_refused_whole_with_line_field_value_and_remedy(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = case.text.encode(case.encoding)
    Path(FILE).write_bytes(data)
    place = f"{FILE}:{line_number(data.decode(case.encoding), case.at)}: "
    simulated = run("simulate", *WEEK, FILE)
    assert (simulated.status, simulated.out) == (1, "")
    told = one_line(simulated.err, place)
    assert all(part in told for part in case.says), told
    assert len(told) < 400
    assert simulated.err.splitlines()[1:] == ["Error: 1 problem; nothing was simulated"]
    explained = run("explain", "sm/desk-1", "-f", FILE)
    assert (explained.status, explained.out) == (1, "")
    assert explained.err.splitlines() == [told, "Error: 1 problem; nothing was explained"]
    linted = run("lint", FILE)
    assert linted.status == 1
    (error,) = lines(linted.out, ": error: ")
    assert error.startswith(f"{place}error: ")
    assert linted.err.startswith("1 error, ")


@attrs.frozen(kw_only=True)
class Usage:
    """A command line that is wrong.

    Attributes:
        id: what is wrong with it.
        arguments: after `5spot`; `{good}` is a sound file, `{folder}` a folder without manifests.
        status: the exit status.
        says: what the last line must contain.
    """

    id: str
    arguments: tuple[str, ...]
    status: int = 2
    says: tuple[str, ...]


USAGE = [
    Usage(
        id="a file that does not exist",
        arguments=("simulate", "{folder}/nothing.yaml"),
        status=1,
        says=("1 problem; nothing was simulated",),
    ),
    Usage(
        id="a folder without manifests",
        arguments=("simulate", "{folder}"),
        status=1,
        says=("1 problem; nothing was simulated",),
    ),
    Usage(
        id="an end before the beginning",
        arguments=("simulate", "--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z", "{good}"),
        says=("--to 2026-03-01T00:00:00Z must be after --from 2026-03-02T00:00:00Z",),
    ),
    Usage(
        id="an instant without an offset",
        arguments=("simulate", "--from", "2026-03-02T00:00:00", "{good}"),
        says=("'--from'", "'2026-03-02T00:00:00'", "write 2026-03-02T00:00:00Z if UTC is meant"),
    ),
    Usage(
        id="a date for an instant",
        arguments=("explain", "sm/desk-1", "-f", "{good}", "--at", "2026-03-02"),
        says=("'--at'", "write 2026-03-02T00:00:00Z if UTC is meant"),
    ),
    Usage(
        id="a date that does not exist for an instant",
        arguments=("simulate", "--at", "2026-02-30T00:00:00Z", "{good}"),
        says=("'--at'", "'2026-02-30T00:00:00Z'"),
    ),
    Usage(
        id="a duration of another unit",
        arguments=("simulate", "--to", "7x", "{good}"),
        says=("'--to'", "'7x'", "s, m, h, d, w"),
    ),
    Usage(
        id="an end that no calendar reaches",
        arguments=("simulate", "--from", "9999-12-31T00:00:00Z", "--to", "999999d", "{good}"),
        says=("--to", "later than the year 9999"),
    ),
    Usage(
        id="a delay that is no duration",
        arguments=("simulate", "--join-delay", "soon", "{good}"),
        says=("'--join-delay'", "'soon'", "such as 90s or 7d"),
    ),
    Usage(
        id="a run's option beside an instant",
        arguments=("simulate", "--at", "2026-03-02T00:00:00Z", "--to", "7d", "{good}"),
        says=("--to belongs to a run", "leave one of them out"),
    ),
    Usage(
        id="a machine that is not there",
        arguments=("simulate", "--only", "nobody", "{good}"),
        says=("'--only'", "'nobody'", "there are default/desk-1"),
    ),
    Usage(
        id="a machine that is misspelt",
        arguments=("simulate", "--only", "desk-l", "{good}"),
        says=("'--only'", "'desk-l'", "did you mean desk-1?"),
    ),
    Usage(
        id="an unknown zone",
        arguments=("simulate", "--display-tz", "Europe/Londen", "{good}"),
        says=("'--display-tz'", "'Europe/Londen'", "did you mean Europe/London"),
    ),
    Usage(
        id="a machine to explain that is not there",
        arguments=("explain", "sm/nobody", "-f", "{good}"),
        says=("'nobody'", "there are default/desk-1"),
    ),
    Usage(
        id="a pod to explain",
        arguments=("explain", "pod/desk-1", "-f", "{good}"),
        says=("'pod/desk-1'", "write sm/NAME or sm/NAMESPACE/NAME"),
    ),
    Usage(
        id="a wrong option",
        arguments=("simulate", "--form", "2026-03-02T00:00:00Z", "{good}"),
        says=("No such option '--form'", "'--from'"),
    ),
    Usage(id="no path", arguments=("simulate",), says=("Missing argument 'PATH...'",)),
    Usage(id="no path to lint", arguments=("lint",), says=("Missing argument 'PATH...'",)),
    Usage(id="no machine to explain", arguments=("explain",), says=("Missing argument 'sm/NAME'",)),
    Usage(
        id="no file to explain from", arguments=("explain", "sm/desk-1"), says=("Missing option", "'--file'")
    ),
    Usage(
        id="a form that does not exist",
        arguments=("simulate", "-o", "csv", "{good}"),
        says=("'csv' is not one of 'table', 'json', 'yaml'",),
    ),
    Usage(
        id="a provider that does not exist",
        arguments=("provider", "run", "moon-phase"),
        says=("'moon-phase' is not one of 'time-based', 'capital-markets'",),
    ),
    Usage(
        id="a leader that could not stop before the next one begins",
        arguments=("controller", "run", "--lease-duration", "10"),
        says=("'--lease-duration'", "10 is refused", "longer than renew_deadline (10 s)"),
    ),
    Usage(
        id="a renewal that could not be in time",
        arguments=("provider", "run", "--retry-period", "9"),
        says=("'--renew-deadline'", "10 is refused", "longer than 1.2 times retry_period (9 s)"),
    ),
    Usage(
        id="no workers",
        arguments=("controller", "run", "--workers", "0"),
        says=("'--workers'", "0 is not in the range"),
    ),
]


@pytest.mark.parametrize("case", USAGE, ids=ids(USAGE))
def test_a_wrong_command_line_is_one_message(case: Usage, tmp_path: Path) -> None:
    good = written(tmp_path, MACHINE, builders.time_based())
    empty = tmp_path / "empty"
    empty.mkdir()
    names: Mapping[str, Path] = {"{good}": good, "{folder}": empty}
    arguments = [part.format(good=names["{good}"], folder=names["{folder}"]) for part in case.arguments]
    done = run(*arguments)
    assert (done.status, done.out) == (case.status, "")
    said = done.err.splitlines()[-1]
    assert said.startswith("Error: ")
    assert all(part in said for part in case.says), said


@pytest.mark.parametrize("option", ["--fail-on", "--script", "--seed"])
def test_what_comes_later_is_not_half_there(option: str) -> None:
    done = run("simulate", option, "x", EXAMPLES)
    assert done.status == 2
    assert f"No such option '{option}'" in done.err


def test_a_path_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    missing, empty = tmp_path / "nothing.yaml", tmp_path / "empty"
    empty.mkdir()
    done = run("simulate", missing, empty)
    assert done.status == 1
    assert done.err.splitlines() == [
        f"{missing}: there is no such file or folder; check the path",
        f"{empty}: the folder holds no manifests; those end in .yaml, .yml, .json",
        "Error: 2 problems; nothing was simulated",
    ]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n# to see\n", "---\n---\n"], ids=["empty", "comments", "separators"]
)
@pytest.mark.parametrize("command", [("simulate",), ("lint",), ("explain", "sm/x", "-f")], ids=lambda c: c[0])
def test_a_file_with_nothing_in_it_is_no_success(command: tuple[str, ...], text: str, tmp_path: Path) -> None:
    path = tmp_path / "nothing.yaml"
    path.write_text(text)
    done = run(*command, path)
    assert (done.status, done.out) == (1, "")
    assert done.err == f"Error: no ScheduledMachine and no provider in {path}; is this the right PATH?\n"


def test_nothing_on_standard_input_is_no_success() -> None:
    done = process("simulate", "-")
    assert (done.status, done.out) == (1, "")
    assert "no ScheduledMachine and no provider in standard input" in done.err


def test_no_standard_input_at_all_is_said() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *FIVESPOT, "simulate", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>: '-' is refused: there is no standard input here; name a file\n")


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root reads everything, and setpriv is not there",
)
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, MACHINE, builders.time_based())
    path.chmod(0)
    prefix: list[str] = []
    if os.geteuid() == 0:
        # Root without the capability to read everything, as which the file is somebody else's.
        os.chown(path, 65534, 65534)
        prefix = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run([*prefix, *FIVESPOT, "simulate", path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"{path}: it may not be read; check its permissions"


@pytest.mark.parametrize("command", [("simulate", *WEEK, "--to", "365d"), ("lint",)], ids=lambda c: c[0])
def test_a_reader_that_has_seen_enough_is_no_failure(command: tuple[str, ...]) -> None:
    popen = subprocess.Popen([*FIVESPOT, *command, EXAMPLES], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert popen.stdout is not None and popen.stderr is not None  # noqa: PT018
    popen.stdout.close()
    with popen.stderr as errors:
        said = errors.read().decode()
    assert popen.wait(timeout=60) == 0
    assert "Error" not in said
    assert "Exception" not in said


def test_an_output_that_takes_nothing_is_a_failure_in_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*FIVESPOT, "simulate", *WEEK, EXAMPLES],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


def test_a_closed_output_is_no_traceback() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *FIVESPOT, "simulate", *WEEK, EXAMPLES],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_a_long_simulation_with_130_and_no_traceback() -> None:
    popen = subprocess.Popen(
        [*FIVESPOT, "simulate", *WEEK, "--to", "99999d", EXAMPLES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1.5)
    assert popen.poll() is None
    popen.send_signal(signal.SIGINT)
    out, err = popen.communicate(timeout=30)
    assert (popen.returncode, out, err) == (130, b"", b"\nInterrupted.\n")


# The commands that need a cluster


_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: there, context: {cluster: c, user: u}}]
current-context: there
"""
KUBECONFIGS = [
    Case(id="no YAML", text="a: [b\n", at="a: [b", says=("it is no YAML, so no kubeconfig",)),
    Case(id="a text", text="hello\n", says=("it is no kubeconfig", "clusters, users and contexts")),
    Case(id="nothing", text="", says=("it is no kubeconfig",)),
    Case(id="no context at all", text="{contexts: []}", says=("no current-context", "it has none")),
    Case(
        id="a context that is not there",
        text=_KUBECONFIG.replace("current-context: there", "current-context: here"),
        says=("no context 'here'", "it has there"),
    ),
]


@pytest.mark.parametrize("case", KUBECONFIGS, ids=ids(KUBECONFIGS))
def test_a_bad_kubeconfig_ends_the_controller_with_one_message(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(case.text)
    done = run("controller", "run", "--kubeconfig", path)
    assert (done.status, done.out) == (1, "")
    (said,) = done.err.splitlines()
    assert said.startswith(f"Error: {path}")
    assert all(part in said for part in case.says), said


def test_a_server_that_does_not_answer_ends_the_controller_with_one_message(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(_KUBECONFIG)
    done = process("controller", "run", "--kubeconfig", path)
    assert (done.status, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1, done.err
    said = done.err.strip()
    assert said.startswith("Error: no answer from https://127.0.0.1:1: ")
    assert said.endswith("; is it up, and is this the right kubeconfig and context?")


def test_no_kubeconfig_at_all_ends_the_providers_with_one_message(tmp_path: Path) -> None:
    done = process(
        "provider",
        "run",
        env={"HOME": str(tmp_path), "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""},
    )
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "Error: no cluster to talk to: there is no ~/.kube/config, and this is no pod; "
        "name a kubeconfig with --kubeconfig\n"
    )


def test_a_kubeconfig_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    done = run("controller", "run", "--kubeconfig", tmp_path / "nothing")
    assert (done.status, done.out) == (2, "")
    assert f"File '{tmp_path / 'nothing'}' does not exist" in done.err


def test_a_context_that_the_kubeconfig_does_not_have_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(_KUBECONFIG)
    done = run("provider", "run", "--kubeconfig", tmp_path / "kubeconfig", "--context", "prod")
    assert done.status == 1
    assert done.err == f"Error: {tmp_path / 'kubeconfig'}: no context 'prod'; it has there\n"
