"""The clock port: the machine's own clock, and one that tests move by hand."""

from fivespot.adapters.clock.fake import FakeClock
from fivespot.adapters.clock.setback import SetBack
from fivespot.adapters.clock.system import BootClock, SystemClock
from fivespot.adapters.clock.waiting import event_or_time

__all__ = ["BootClock", "FakeClock", "SetBack", "SystemClock", "event_or_time"]
