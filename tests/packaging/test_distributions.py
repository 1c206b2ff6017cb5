"""Wheel, sdist and editable install, each into an environment of its own, on every Python of this machine."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SHIPPED = ("adapters", "agent", "cli", "core", "src", "pyproject.toml", "README.md", "LICENSE")


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _build(form: str, sources: Path, out: Path) -> None:
    """With the backend that pyproject.toml names, in the environment of the tests."""
    _run(
        sys.executable, "-c", f"import setuptools.build_meta as b; b.build_{form}({str(out)!r})", cwd=sources
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is shipped, so that a build leaves nothing behind here."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SHIPPED:
        there = ROOT / name
        if there.is_dir():
            shutil.copytree(there, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(there, copy / name)
    return copy


@pytest.fixture(scope="module")
def distributions(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and sdist, built by the backend that pyproject.toml names."""
    out = tmp_path_factory.mktemp("dist")
    for form in ("wheel", "sdist"):
        _build(form, sources, out)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_has_every_module_and_the_type_marker(distributions: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(distributions[0]).namelist())
    assert "fivespot/py.typed" in names
    for top in ("adapters", "agent", "cli", "core"):
        for path in (ROOT / top).rglob("*.py"):
            assert f"fivespot/{path.relative_to(ROOT)}" in names
    assert not [name for name in names if name.startswith(("tests", "core/", "cli/"))]


def test_the_sdist_builds_the_same_wheel(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = distributions
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    again = tmp_path / "again"
    again.mkdir()
    _build("wheel", unpacked, again)
    (other,) = again.glob("*.whl")
    assert sorted(zipfile.ZipFile(other).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def _python(version: str) -> str | None:
    """A working interpreter of that version, if the machine has one; a shim may be there without it."""
    found = shutil.which(f"python{version}")
    candidates = [sys.executable] if sys.version.startswith(f"{version}.") else []
    candidates += [found] if found else []
    candidates += [str(p) for p in sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python"))]
    for candidate in candidates:
        probe = subprocess.run([candidate, "-c", "import venv"], check=False, capture_output=True)
        if probe.returncode == 0:
            return candidate
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_it_installs_and_runs_as_a_wheel_and_editable(
    distributions: tuple[Path, Path], sources: Path, tmp_path: Path, version: str
) -> None:
    """Both console scripts, `python -m fivespot`, and the library, with the exact versions of constraints.txt."""
    python = _python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    home = tmp_path / "venv"
    _run(python, "-m", "venv", home)
    pip = (home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, "--require-hashes", "-r", ROOT / "constraints.txt")
    for form in ([distributions[0]], ["--no-build-isolation", "--editable", sources]):
        _run(*pip, "--no-deps", "--force-reinstall", *form)
        _use(home, tmp_path)


def _use(home: Path, folder: Path) -> None:
    assert _run(home / "bin" / "5spot", "--version").startswith("5spot ")
    assert _run(home / "bin" / "5spot-agent", "--version").startswith("5spot-agent ")
    assert _run(home / "bin" / "python", "-m", "fivespot", "--version", cwd=folder).startswith("5spot ")
    examples = ROOT / "deploy" / "examples"
    program = (
        f"from fivespot import load; import fivespot.core; print(len(load([{str(examples)!r}]).machines))"
    )
    assert _run(home / "bin" / "python", "-W", "error", "-c", program, cwd=folder) == "4\n"
    simulate = ("simulate", examples, "--from", "2026-03-02T00:00:00Z", "--output", "json")
    assert '"hoursActive"' in _run(home / "bin" / "5spot", *simulate)
