"""What an operator may tune about decisions, with the defaults of the design."""

from datetime import timedelta

import attrs


@attrs.frozen(kw_only=True)
class Policy:
    """Bounds that are not the machine's own.

    Attributes:
        provisioning_timeout: after this long without any Node, a provisioning machine is reported (nothing is deleted).
        replace_after, replace_at_most: first and longest wait before a terminally failed Machine is replaced.
        cleanup_grace: how long after its deadline a removal that cannot finish is reported.
        agent_grace: how long a drained node is kept for the agent's pod to leave the host clean.
        error_after: how long the same step fails before the phase says Error.
        pods_to_machine: after the pods of a reclaimed node were deleted, how long its kubelet is kept alive.
        next_transition_interval: how often a mere change of `nextTransition` is written at most.
        force_finalizer_on_timeout: drop the finalizer of a removal that cannot finish.
    """

    provisioning_timeout: timedelta = timedelta(minutes=15)
    replace_after: timedelta = timedelta(minutes=5)
    replace_at_most: timedelta = timedelta(hours=1)
    cleanup_grace: timedelta = timedelta(minutes=10)
    agent_grace: timedelta = timedelta(seconds=30)
    error_after: timedelta = timedelta(seconds=30)
    pods_to_machine: timedelta = timedelta(seconds=3.5)
    rapid_reclaim_window: timedelta = timedelta(minutes=10)
    next_transition_interval: timedelta = timedelta(minutes=1)
    force_finalizer_on_timeout: bool = False


DEFAULT_POLICY = Policy()
