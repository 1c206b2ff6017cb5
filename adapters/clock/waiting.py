"""Waiting for whichever comes first: news, or one of several moments."""

import asyncio
from datetime import datetime

from fivespot.core.ports import Clock


async def event_or_time(event: asyncio.Event, clock: Clock, *moments: datetime | float) -> None:
    """Return once `event` is set, or the clock has reached one of these instants or `monotonic()` readings.

    Nothing is left behind.
    """
    waiting = [
        asyncio.ensure_future(event.wait()),
        *(asyncio.ensure_future(clock.sleep_until(when)) for when in moments),
    ]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
