"""The package map in pyproject.toml against the folders."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("adapters", "agent", "cli", "core")


def _setuptools() -> dict[str, object]:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return found["tool"]["setuptools"]


def test_every_folder_with_python_in_it_is_a_package_that_is_shipped() -> None:
    shipped = set(_setuptools()["packages"])
    folders = {
        path.parent
        for top in FOLDERS
        for path in (ROOT / top).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    expected = {"fivespot", *(f"fivespot.{'.'.join(folder.relative_to(ROOT).parts)}" for folder in folders)}
    assert shipped == expected


def test_every_shipped_package_says_what_it_is() -> None:
    for top in FOLDERS:
        for init in (ROOT / top).rglob("__init__.py"):
            assert init.read_text().startswith('"""'), init


def test_the_constraints_name_exact_versions_with_hashes_and_no_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    pinned = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert all("==" in line and line.endswith("\\") for line in pinned)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = {line.partition("==")[0] for line in pinned}
    wanted = [*declared["project"]["dependencies"], *declared["dependency-groups"]["dev"]]
    for requirement in wanted:
        name = requirement.partition("=")[0].partition(">")[0].partition("<")[0].partition(";")[0].strip()
        assert name in names, f"{name} is not in constraints.txt: see CONTRIBUTING.md"
