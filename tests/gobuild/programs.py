"""Programs that a tier of tests needs: found or built before the first test runs, else the tier is skipped, loudly."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

import attrs
import pytest

from tests.gobuild.build import Report
from tests.gobuild.errors import ProgramsUnavailable

T = TypeVar("T")
EVERY: list[Programs[Any]] = []
"""What the tiers need, each as soon as its plugin is loaded; `pytest_plugin` sees to them."""


@attrs.frozen(kw_only=True)
class Programs(Generic[T]):
    """What one tier needs.

    Attributes:
        what: what the tests run against, for a person: "a real control plane".
        how: how they do: "on" a node.
        find: finds the programs or builds them, and reports how it goes; raises ProgramsUnavailable.
        fixtures: the fixtures that need them.
    """

    what: str
    how: str = "against"
    find: Callable[[Report], T]
    fixtures: Collection[str]
    _key: pytest.StashKey[T | ProgramsUnavailable] = attrs.field(factory=pytest.StashKey, init=False)

    def __attrs_post_init__(self) -> None:
        EVERY.append(self)

    def make_ready(self, session: pytest.Session) -> None:
        """Find or build them when any test that is about to run needs them: a build takes minutes, which is no test's time."""
        wanted = any(
            not set(self.fixtures).isdisjoint(getattr(item, "fixturenames", ())) for item in session.items
        )
        if wanted and not session.config.option.collectonly:
            self._found(session.config)

    def require(self, config: pytest.Config) -> T:
        """What was found. Without it the test is skipped, or fails if FIVESPOT_REQUIRE_LIVE=1."""
        found = self._found(config)
        if not isinstance(found, ProgramsUnavailable):
            return found
        reason = f"not {self.how} {self.what}: {found}"
        if os.environ.get("FIVESPOT_REQUIRE_LIVE") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    def summarize(self, reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """One loud line when a whole tier did not run."""
        if isinstance(reason := config.stash.get(self._key, None), ProgramsUnavailable):
            reporter.write_line(f"NOT RUN: every test {self.how} {self.what}: {reason}", red=True, bold=True)

    def _found(self, config: pytest.Config) -> T | ProgramsUnavailable:
        if self._key not in config.stash:
            capture = config.pluginmanager.getplugin("capturemanager")
            with ExitStack() as uncaptured:
                if capture is not None:
                    # Six silent minutes would look like a hang.
                    uncaptured.enter_context(capture.global_and_fixture_disabled())
                try:
                    config.stash[self._key] = self.find(self._report)
                except ProgramsUnavailable as unavailable:
                    config.stash[self._key] = unavailable
        return config.stash[self._key]

    def _report(self, line: str) -> None:
        print(f"{self.what}: {line}", file=sys.stderr, flush=True)
