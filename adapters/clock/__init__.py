"""The clock port: the machine's own clock, and one that tests move by hand."""

from fivespot.adapters.clock.fake import FakeClock
from fivespot.adapters.clock.system import SystemClock

__all__ = ["FakeClock", "SystemClock"]
