"""`fivespot.core` imports a public name when it is asked for, and nothing before."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fivespot.core


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(fivespot.core.__all__) <= set(dir(fivespot.core))
    for name in fivespot.core.__all__:
        assert getattr(fivespot.core, name).__module__.startswith("fivespot.core.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fivespot.core.nothing  # type: ignore[attr-defined]


def test_what_type_checkers_see_is_what_is_imported() -> None:
    tree = ast.parse(Path(fivespot.core.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fivespot.core")
        for alias in node.names
    }
    assert seen == fivespot.core._HOME
    assert set(seen) == set(fivespot.core.__all__)


@pytest.mark.parametrize("name", ["explain", "lint", "simulate"])
@pytest.mark.parametrize("first", ["module", "function"])
def test_a_function_with_the_name_of_its_module_is_the_function(name: str, first: str) -> None:
    steps = [f"import fivespot.core.{name}", f"from fivespot.core import {name}"]
    program = "\n".join(
        [*(steps if first == "module" else steps[::-1]), f"from fivespot.core import {name} as found"]
    )
    program += f"\nimport fivespot.core\nprint(callable(found), found is fivespot.core.{name})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_importing_the_library_imports_nothing_of_it() -> None:
    program = (
        "import sys, fivespot.core\n"
        "print([name for name in sys.modules if name.startswith(('fivespot.core.', 'attr'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
