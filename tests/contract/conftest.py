"""Every test of this folder runs twice: against the fake API server and against a real one."""

from __future__ import annotations

import pytest

from tests.contract.apis import Api, FakeApis, RealApis


@pytest.fixture(scope="session", params=["fake", "real"])
def api(request: pytest.FixtureRequest) -> Api:
    """The server; the real one is left out, or fails, as every test that needs it."""
    if request.param == "fake":
        return FakeApis()
    return RealApis(request.getfixturevalue("control_plane"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the programs of the control plane be made ready before the first test, and not in its time."""
    for item in items:
        spec = getattr(item, "callspec", None)
        if isinstance(item, pytest.Function) and spec is not None and spec.params.get("api") == "real":
            item.fixturenames = [*item.fixturenames, "control_plane"]
