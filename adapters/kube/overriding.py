"""Overrides on a cluster: reads what there is to decide about, and performs the steps that were decided."""

import asyncio
from contextlib import aclosing
from typing import Final

from fivespot.adapters.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Unavailable
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import Object, Resource
from fivespot.adapters.kube.watching import version_of
from fivespot.core.api.kinds import COMPOSITE, MANUAL, SCHEDULED_MACHINE, Kind
from fivespot.core.names import OVERRIDE_FIELD_MANAGER
from fivespot.core.override.objects import override_name
from fivespot.core.override.plan import OverrideRefused
from fivespot.core.override.situation import Situation, situation
from fivespot.core.override.steps import Await, Create, Delete, Edit, Step

PATIENCE: Final = 20.0
"""Seconds in which a provider has answered for a composite, if anybody runs who answers: it takes a tenth of one."""
_PAUSE: Final = 0.5


def resource_of(kind: Kind) -> Resource:
    """Where a kind of ours is served."""
    return Resource(kind.group, kind.version, kind.plural, kind.name, namespaced=True)


async def look(gateway: Gateway, namespace: str, machine: str) -> Situation:
    """The machine and the schedules of its override, each as it is now.

    Raises:
        OverrideRefused: there is no such machine.
        ApiError: something could not be read; NotFound when a kind is not served.
        InvalidSpec: something makes no sense.
    """
    body = await _get(gateway, SCHEDULED_MACHINE, namespace, machine)
    if body is None:
        message = (
            f"there is no {SCHEDULED_MACHINE.name} {namespace}/{machine}; is it another namespace (-n), or another "
            "cluster (--context)?"
        )
        raise OverrideRefused(message)
    name = override_name(machine)
    manual = await _get(gateway, MANUAL, namespace, name)
    return situation(body, manual, await _get(gateway, COMPOSITE, namespace, name))


async def _get(gateway: Gateway, kind: Kind, namespace: str, name: str) -> Object | None:
    try:
        return await gateway.get_whole(resource_of(kind), namespace, name)
    except NotFound as error:
        if error.kind_not_served:
            raise
        return None


async def perform(gateway: Gateway, step: Step, patience: float = PATIENCE) -> None:
    """Do one step.

    Raises:
        OverrideRefused: somebody was faster, or nobody answers for `patience` seconds; the step was not done.
        ApiError: it could not be done.
    """
    target = step.target
    resource = resource_of(target.kind)
    try:
        match step:
            case Create():
                await gateway.create(resource, target.namespace, step.manifest, OVERRIDE_FIELD_MANAGER)
            case Edit():
                await gateway.json_patch(
                    resource,
                    target.namespace,
                    target.name,
                    _operations(step),
                    field_manager=OVERRIDE_FIELD_MANAGER,
                )
            case Await():
                await _await(gateway, resource, step, patience)
            case Delete():
                await gateway.delete(resource, target.namespace, target.name, step.uid)
    except (AlreadyExists, Conflict) as error:
        message = f"{target} has been changed by somebody else just now, and is left as it is; look at it, and try again"
        raise OverrideRefused(message) from error
    except NotFound as error:
        if error.kind_not_served:
            raise
        if not isinstance(step, Delete):
            message = f"{target} has been deleted by somebody else just now; look, and try again"
            raise OverrideRefused(message) from error


def _operations(step: Edit) -> list[Object]:
    """A JSON patch that does all or nothing: the tests come first."""
    tests: list[Object] = [{"op": "test", "path": "/metadata/uid", "value": step.uid}]
    tests += [
        {"op": "test", "path": f"/{'/'.join(change.path)}", "value": change.before} for change in step.changes
    ]
    return tests + [
        {"op": "replace", "path": f"/{'/'.join(change.path)}", "value": change.after}
        for change in step.changes
    ]


async def _await(gateway: Gateway, resource: Resource, step: Await, patience: float) -> None:
    seen: Object = {}
    try:
        async with asyncio.timeout(patience):
            while True:
                seen = await gateway.get(resource, step.target.namespace, step.target.name)
                if step.met(seen) or await _watched(gateway, resource, step, seen, patience):
                    return
                # A server that ends every stream at once must not be asked without a pause.
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        message = (
            f"no {'active' if step.active else 'inactive'} from {step.target} within {patience:.3g} s: {step.said(seen)}; does "
            f"`5spot provider run` answer for {MANUAL.name} and {COMPOSITE.name}?"
        )
        raise OverrideRefused(message) from error


async def _watched(gateway: Gateway, resource: Resource, step: Await, seen: Object, patience: float) -> bool:
    """Whether it comes to say what is wished before the stream ends."""
    stream = gateway.watch(
        resource,
        step.target.namespace,
        field_selector=f"metadata.name={step.target.name}",
        resource_version=version_of(seen),
        timeout_seconds=patience,
    )
    try:
        async with aclosing(stream) as events:
            async for event in events:
                if event.type == "DELETED":
                    break
                if event.type == "MODIFIED" and step.met(event.object):
                    return True
    except (Gone, Unavailable):
        # Looked at again, as long as there is patience.
        return False
    return False
