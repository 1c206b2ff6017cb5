"""Waiting for whichever comes first: news, or a moment."""

import asyncio
from datetime import datetime

from fivespot.core.ports import Clock


async def event_or_time(event: asyncio.Event, clock: Clock, when: datetime | float) -> None:
    """Return once `event` is set, or the clock has reached an instant or a `monotonic()` reading; nothing is left behind."""
    news = asyncio.ensure_future(event.wait())
    time = asyncio.ensure_future(clock.sleep_until(when))
    try:
        await asyncio.wait((news, time), return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()
        time.cancel()
        await asyncio.gather(news, time, return_exceptions=True)
