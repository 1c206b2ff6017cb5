"""A backup of a fleet, its loss, and its restoration, as backup tools do it: with labels, annotations, finalizers and owners.

What they leave out is what the API server gives to an object (a restored one has another uid), and the status.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from tests.live.managed import BOOTSTRAPS, HOSTS, MACHINES
from tests.live.product import World

_KINDS: Final = ("sm", "tbss", BOOTSTRAPS, HOSTS, MACHINES)
_KEPT: Final = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences")


@attrs.frozen
class Backup:
    """The fleet of one namespace: its schedules, machines, and what was created for them. Not its Cluster, which stays."""

    namespace: str
    items: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def taken(cls, world: World, namespace: str) -> "Backup":
        """A backup of what is there now."""
        return cls(
            namespace, {kind: [_saved(item) for item in world.get(namespace, kind)] for kind in _KINDS}
        )

    def lose(self, world: World) -> None:
        """The objects are gone, and nobody did anything about it: hosts and Nodes are as they were."""
        kubectl, processes = world.plane.kubectl, (world.controller, world.stand_in)
        for process in processes:
            process.stop()
        for kind, items in self.items.items():
            # Orphaned: nothing goes because something else goes.
            kubectl("delete", kind, "--all", "-n", self.namespace, "--wait=false", "--cascade=orphan")
            for item in items:
                free = ("--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
                kubectl("patch", kind, item["metadata"]["name"], "-n", self.namespace, *free, check=False)
            kubectl("wait", "--for=delete", kind, "--all", "-n", self.namespace, "--timeout=30s")
        for process in processes:
            process.start()

    def restore(self, world: World, *kinds: str, owners: bool = False) -> None:
        """Create the objects of these kinds; `owners` says to name the ScheduledMachines by the uids that they have now."""
        machines = {sm["metadata"]["name"]: sm for sm in world.get(self.namespace, "sm")} if owners else {}
        items = [_owned_by(machines, item) for kind in kinds for item in self.items[kind]]
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        world.plane.kubectl("create", "-f", "-", input=body)


def _saved(item: Mapping[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in item["metadata"].items() if key in _KEPT}
    return {"metadata": meta, **{key: item[key] for key in ("apiVersion", "kind", "spec")}}


def _owned_by(machines: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    owned = copy.deepcopy(dict(item))
    for owner in owned["metadata"].get("ownerReferences", []):
        if owner["kind"] == "ScheduledMachine" and owner["name"] in machines:
            owner["uid"] = machines[owner["name"]]["metadata"]["uid"]
    return owned
