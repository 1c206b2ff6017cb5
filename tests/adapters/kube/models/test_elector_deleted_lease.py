"""A Lease that somebody deletes: who may have missed its holder waits, and late news are no news."""

from datetime import UTC, datetime

import attrs

from fivespot.adapters.kube.electing import Electing, Timing, Write
from fivespot.adapters.kube.lease import Record

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


def leading(version: int, now: float) -> Electing:
    one = Electing("holder", Timing())
    one.seen(None, now)
    write = one.step(now, AT)
    assert isinstance(write, Write)
    one.written(write, attrs.evolve(write.record, version=str(version)), now)
    return one


def takes_at_once(one: Electing, now: float) -> bool:
    step = one.step(now, AT)
    if isinstance(step, Write):
        one.written(step, attrs.evolve(step.record, version="30"), now)
    return one.leads(now)


def test_a_standby_that_has_missed_who_took_a_released_lease_does_not_lead_beside_it() -> None:
    """Its own try met the new holder's version; before it could read that, the Lease was gone."""
    standby = Electing("standby", Timing())
    standby.seen(Record(holder="", version="9"), 97.0)
    assert isinstance(standby.step(97.0, AT), Write)
    holder = leading(10, now=97.0)
    standby.doubted()
    standby.seen(None, 99.0)
    assert not (takes_at_once(standby, 99.0) and holder.leads(99.0))


def test_late_news_from_before_a_deletion_do_not_end_what_is_held() -> None:
    """The Lease was deleted, made by another one, and taken over; the watch of who leads has still to tell of it all."""
    leader = Electing("leader", Timing())
    leader.seen(Record(holder="other", version="20", duration=15), 80.0)
    write = leader.step(95.0, AT)
    assert isinstance(write, Write)
    leader.written(write, attrs.evolve(write.record, version="25"), 95.0)
    assert leader.leads(95.0)
    leader.seen(None, 96.0)
    leader.seen(Record(holder="other", version="15", duration=15), 96.0)
    assert leader.leads(96.0)
