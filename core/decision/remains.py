"""What Cluster API leaves of a machine: infrastructure and bootstrap whose CAPI Machine is gone.

They are ours to delete only once the Machine is gone for sure, infrastructure first: a provider needs the Machine and the
bootstrap data to clean the host.
"""

from collections.abc import Callable

import attrs

from fivespot.core.decision.actions import Delete, Group, Part, Role
from fivespot.core.decision.knowledge import Unknown, gone, value_of
from fivespot.core.decision.observation import DependentView
from fivespot.core.decision.plan import required
from fivespot.core.decision.scene import Scene, reference


@attrs.frozen(kw_only=True)
class Remains:
    """What is dealt with next.

    Attributes:
        what: kind and name, for a message; empty when it could not be read.
        unknown: why it could not be read.
        groups: its deletion; empty while it is going, or must be confirmed first.
        confirm: what has to be read live before it may be deleted.
    """

    what: str = ""
    unknown: Unknown | None = None
    groups: tuple[Group, ...] = ()
    confirm: tuple[Part, ...] = ()


def remains(
    scene: Scene, counts: Callable[[Role, DependentView], bool], *, hands_off: bool
) -> Remains | None:
    """The first of what is left that `counts`; None when nothing is, as far as was seen.

    `hands_off` (a pause) deletes nothing.
    """
    before: dict[Part, object] = {Part.MACHINE: scene.capi}
    for role, part, known in (
        (Role.INFRASTRUCTURE, Part.INFRASTRUCTURE, scene.infrastructure),
        (Role.BOOTSTRAP, Part.BOOTSTRAP, scene.bootstrap),
    ):
        if isinstance(known, Unknown):
            return Remains(unknown=known)
        view = value_of(known)
        if view is None:
            before[part] = known
        elif counts(role, view):
            what = f"{view.kind} {view.metadata.name}"
            if view.metadata.deleting or hands_off:
                return Remains(what=what)
            confirm = tuple(name for name, seen in before.items() if not gone(seen))
            if confirm:
                return Remains(what=what, confirm=confirm)
            return Remains(what=what, groups=(required(Delete(role=role, target=reference(view))),))
    return None
