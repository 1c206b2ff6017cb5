"""How long to wait before the next try: pure, with the random number handed in.

Three users: requests that may be repeated, streams that broke, keys whose work failed. None of them retries without
a limit in rate, and none waits in step with its neighbours.
"""

from random import Random

import attrs

from fivespot.adapters.kube.errors import ApiError, Throttled, Unavailable


@attrs.frozen
class Backoff:
    """Doubling delays with jitter.

    Attributes:
        first: seconds of the first delay, before jitter.
        most: seconds that no delay exceeds.
    """

    first: float
    most: float

    def delay(self, failures: int, random: Random) -> float:
        """Seconds to wait after `failures` failures in a row (1 after the first): between half and all of the step."""
        # 2 ** 64 times any first step is beyond every bound; larger powers overflow a float.
        step = min(self.most, self.first * 2.0 ** min(max(failures - 1, 0), 64))
        return step * random.uniform(0.5, 1.0)


REQUEST = Backoff(first=0.2, most=2.0)
STREAM = Backoff(first=0.8, most=30.0)
WORK = Backoff(first=0.5, most=300.0)

_TRIES = 4
_PATIENCE = 10.0
"""Seconds within which a read is repeated; an unreachable server is somebody else's patience after that."""


def before_retry(error: ApiError, tries: int, elapsed: float, random: Random) -> float | None:
    """Seconds to wait before a *read* is sent again, or None when its error stands.

    Args:
        error: how the last try ended.
        tries: how many there were.
        elapsed: seconds since the first one began.
        random: for the jitter.
    """
    if tries >= _TRIES or not isinstance(error, Throttled | Unavailable):
        return None
    delay = REQUEST.delay(tries, random)
    if error.retry_after is not None:
        delay += error.retry_after
    return delay if elapsed + delay <= _PATIENCE else None
