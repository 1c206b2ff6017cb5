"""CustomResourceDefinitions: a kind is served from the moment that it is defined."""

from __future__ import annotations

from tests.fakeapi.kinds import CRD, kind_of
from tests.fakeapi.refusals import Object
from tests.fakeapi.world import Target, World

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def defined(world: World, target: Target, crd: Object) -> None:
    """Serve a new kind; its definition then says so."""
    world.kinds.serve(crd)
    storage = next(version["name"] for version in crd["spec"]["versions"] if version["storage"])
    status = {
        "conditions": [
            condition(world, "NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(world, "Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": crd["spec"]["names"],
        "storedVersions": [storage],
    }
    world.store.put(CRD.label, target.key, {**crd, "status": status})


def redefined(world: World, crd: Object) -> None:
    """Serve a kind as it is defined now. Its streams end, as on the real server, which builds it anew."""
    world.kinds.serve(crd)
    world.unserved(kind_of(crd).label)


def undefined(world: World, name: str) -> None:
    """Serve a kind no longer."""
    world.kinds.drop(name)
    world.unserved(name)


def condition(world: World, kind: str, reason: str, message: str) -> Object:
    """A condition that is true."""
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": world.now(),
        "reason": reason,
        "message": message,
    }
