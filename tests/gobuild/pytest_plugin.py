"""Finds or builds what each tier needs before the first test runs, and says at the end which tiers did not run."""

from __future__ import annotations

import pytest

from tests.gobuild.programs import EVERY


def pytest_collection_finish(session: pytest.Session) -> None:
    """See Programs.make_ready."""
    for programs in EVERY:
        programs.make_ready(session)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """See Programs.summarize."""
    for programs in EVERY:
        programs.summarize(terminalreporter, config)
