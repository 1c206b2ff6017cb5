"""How fast the simulated hosts come and go."""

from datetime import timedelta

import attrs


@attrs.frozen(kw_only=True)
class Pace:
    """A model of Cluster API and its infrastructure provider.

    Attributes:
        provision: from the Machine's creation until its host is set up and its Node appears.
        join: from the Node's appearance until it is Ready.
        remove: from the Machine's deletion until it, its host's objects and its Node are gone.
    """

    provision: timedelta = timedelta(seconds=60)
    join: timedelta = timedelta(seconds=15)
    remove: timedelta = timedelta(seconds=30)
