"""Walks through a management cluster and the child clusters behind it, and says what was found on the way.

It reads as the controller does and writes nothing (the reviews that ask for rights are stored nowhere). Judging is the
core's: `core/doctor`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any, Final, TypeVar

import attrs

from fivespot.adapters.kube.control.children import (
    ChildKey,
    child_key,
    unreachable,
)
from fivespot.adapters.kube.control.secrets import SecretMissing, text_in
from fivespot.adapters.kube.control.streams import (
    CAPI_MACHINES,
    CLUSTERS,
    dependent_stream,
    machines_stream,
    provider_stream,
    secret_stream,
)
from fivespot.adapters.kube.control.watches import Stream
from fivespot.adapters.kube.doctor.asking import permissions
from fivespot.adapters.kube.doctor.reaching import reach
from fivespot.adapters.kube.errors import ApiError, Forbidden, KindNotServed, NotFound
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.lease import read_lease
from fivespot.adapters.kube.resources import CRDS, LEASES, SECRETS, Resource
from fivespot.adapters.kube.watching import Key, key_of
from fivespot.core.api import reasons
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.kinds import KINDS, SCHEDULED_MACHINE, Kind, kinds
from fivespot.core.decision.actions import Role
from fivespot.core.decision.knowledge import Absent, Known, Present, Unknown
from fivespot.core.decision.observation import MachineView, ProviderView
from fivespot.core.doctor import judging, rights
from fivespot.core.doctor.finding import Finding, Level, failed, ok, warning
from fivespot.core.errors import FivespotError
from fivespot.core.names import PROVIDER_GROUP
from fivespot.core.ports import Clock
from fivespot.core.text import counted

T = TypeVar("T")
_AT_ONCE: Final = 8
"""Child clusters that are looked at together; one that does not answer takes its time."""


@attrs.frozen(kw_only=True)
class Section:
    """What was found in one place, such as a cluster."""

    title: str
    findings: tuple[Finding, ...]


@attrs.frozen(kw_only=True)
class Examination:
    """One walk.

    Attributes:
        gateway: to the management cluster, as the account in question.
        namespace: where 5-Spot runs, and its Lease is.
        lease: the Lease's name.
        allow_local: accept child clusters on loopback and link-local addresses.
        allowed: the groups of which machines may be made.
    """

    gateway: Gateway
    clock: Clock
    namespace: str
    lease: str
    allow_local: bool = False
    allowed: AllowedGroups = DEFAULT_GROUPS

    async def sections(self) -> AsyncIterator[Section]:
        """One section after the other, as they are done; what cannot be looked at for an earlier failure is left out."""
        reached = await reach(self.gateway)
        if reached.level is Level.FAILED:
            yield Section(title="management cluster", findings=(reached,))
            return
        machines, problems = await self._machines()
        needed = {SCHEDULED_MACHINE.name, *(_kind_of_schedule(machine) for machine in machines)}
        known = [await self._kind(kind, needed=kind.name in needed) for kind in kinds(self.allowed)]
        yield Section(title="management cluster", findings=(reached, *known, await self._leader()))
        found = [*problems, *judging.specs(machines)]
        if not found:
            found = [ok("ScheduledMachines", f"{len(machines)} are there, and valid")]
        yield Section(title="machines", findings=tuple(found))
        capi, in_use = await self._cluster_api(machines)
        yield Section(title="Cluster API", findings=tuple(capi))
        yield Section(title="permissions", findings=tuple(await self._rights(machines, in_use)))
        if machines:
            yield Section(title="schedules", findings=tuple(await self._providers(machines)))
            yield Section(title="child clusters", findings=tuple(await self._children(machines)))

    # Kinds, machines, the leader

    async def _kind(self, kind: Kind, *, needed: bool) -> Finding:
        try:
            served = await self.gateway.resolve(kind.group, kind.name, kind.version)
            if served.version != kind.version:
                return judging.kind_missing(kind, needed=needed)
            installed = await self._definition(served)
        except KindNotServed:
            return judging.kind_missing(kind, needed=needed)
        except ApiError as error:
            return _unread(kind.name, error)
        return judging.kind_served(kind) if installed is None else judging.kind_installed(kind, installed)

    async def _definition(self, resource: Resource) -> Any:
        """The CRD of a kind; None where we may not look, as the controller may not, or where it has none."""
        try:
            return await self.gateway.get(CRDS, None, resource.label)
        except (Forbidden, NotFound):
            return None

    async def _leader(self) -> Finding:
        name = f"{self.namespace}/{self.lease}"
        try:
            lease = read_lease(await self.gateway.get(LEASES, self.namespace, self.lease))
        except NotFound:
            return judging.leader(name, "", None, timedelta(), self.clock.now())
        except ApiError as error:
            return _unread(f"Lease {name}", error)
        lasts = timedelta(seconds=lease.duration)
        return judging.leader(name, lease.holder, lease.renewed, lasts, self.clock.now())

    async def _machines(self) -> tuple[list[MachineView], list[Finding]]:
        views, problems = [], []
        try:
            for known in (await self._all(machines_stream(self.allowed))).values():
                if isinstance(known, Present):
                    views.append(known.value)
                elif isinstance(known, Unknown):
                    problems.append(
                        failed("ScheduledMachines", known.why, "correct it; it is left alone meanwhile")
                    )
        except FivespotError as error:
            problems.append(_unread("ScheduledMachines", error))
        return views, list(judging.few(problems))

    # Cluster API, and what machines are made of

    async def _cluster_api(self, machines: list[MachineView]) -> tuple[list[Finding], set[Resource]]:
        """What was found, and the kinds that the machines are made of."""
        found: list[Finding] = []
        try:
            capi = await self.gateway.resolve(CAPI_MACHINES.group, CAPI_MACHINES.kind, CAPI_MACHINES.version)
            found.append(ok("Machine", f"{capi.api_version} is served"))
            seen = (await self._all(CAPI_MACHINES)).values()
            ours = [known.value for known in seen if isinstance(known, Present)]
            found.append(judging.cluster_api_acts(ours, self.clock.now()))
            found += judging.clusters(machines, await self._all(CLUSTERS))
        except KindNotServed as error:
            found.append(failed("Cluster API", str(error), "install Cluster API: clusterctl init"))
        except FivespotError as error:
            found.append(_unread("Cluster API", error))
        in_use: set[Resource] = set()
        for stream, count in sorted(_made_of(machines).items(), key=lambda entry: str(entry[0])):
            found.append(await self._ingredient(stream, count, in_use))
        return found, in_use

    async def _ingredient(self, stream: Stream[Any], count: int, in_use: set[Resource]) -> Finding:
        subject = f"{stream.kind} of {stream.group}"
        try:
            resource = await self.gateway.resolve(stream.group, stream.kind, stream.version)
            in_use.add(resource)
            definition = await self._definition(resource)
        except KindNotServed as error:
            return failed(
                subject,
                f"{counted(count, 'machine needs', 'machines need')} it: {error}",
                "install the provider: clusterctl init",
            )
        except ApiError as error:
            return _unread(subject, error)
        lacking = judging.contract(definition) if definition is not None else None
        return lacking or ok(
            subject,
            f"{resource.api_version} is served, and {counted(count, 'machine uses', 'machines use')} it",
        )

    async def _rights(self, machines: list[MachineView], in_use: Iterable[Resource]) -> list[Finding]:
        made_of = {(resource.group, resource.plural) for resource in in_use}
        providers = {(kind.group, kind.plural) for kind in KINDS if kind.group == PROVIDER_GROUP}
        secrets = {(key.namespace, key.secret) for key in map(child_key, machines) if key.secret}
        # Of ours only the Lease has a place, which is where this 5-Spot has it.
        placed = [
            right
            if right.namespace is None
            else attrs.evolve(right, namespace=self.namespace, name=right.name and self.lease)
            for right in rights.controller(self.allowed)
        ]
        wanted = rights.of_secrets(rights.of_kinds(placed, made_of | providers), secrets)
        found = await permissions(self.gateway, wanted, "permissions")
        if not made_of:
            groups = ", ".join(sorted(self.allowed.every))
            text = f"those on kinds of {groups} were not asked for: no machine uses any"
            found.append(ok("permissions", text))
        return found

    # Schedules

    async def _providers(self, machines: list[MachineView]) -> list[Finding]:
        """One list for each kind that is referred to."""
        wanted: dict[Stream[Any], list[judging.ProviderKey]] = {}
        for machine in machines:
            stream, reference = provider_stream(machine), machine.intent.schedule
            if stream is not None and reference is not None:
                wanted.setdefault(stream, []).append((machine.metadata.namespace, reference))
        found: dict[judging.ProviderKey, Known[ProviderView]] = {}
        for stream, keys in wanted.items():
            missing: Known[ProviderView] = Absent(live=True, why=reasons.PROVIDER_NOT_FOUND)
            there: dict[Key, Known[ProviderView]] = {}
            try:
                there = await self._all(stream)
            except KindNotServed:
                missing = Absent(live=True, why=reasons.PROVIDER_CRD_NOT_INSTALLED)
            except FivespotError as error:
                missing = Unknown(reasons.PROVIDER_UNREADABLE, str(error))
            for namespace, reference in keys:
                found[namespace, reference] = there.get((namespace, reference.name), missing)
        return list(judging.providers(found, self.clock.now()))

    # Child clusters

    async def _children(self, machines: list[MachineView]) -> list[Finding]:
        users = Counter(child_key(machine) for machine in machines if machine.intent.cluster_name)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(key: ChildKey) -> list[Finding]:
            async with slots:
                return await self._child(key, users[key])

        keys = sorted(users, key=lambda key: (key.namespace, key.secret, key.entry))
        found = await asyncio.gather(*map(one, keys))
        return [finding for findings in found for finding in findings]

    async def _child(self, key: ChildKey, count: int) -> list[Finding]:
        subject = f"Secret {key.namespace}/{key.secret}"
        try:
            gateway = await self._child_gateway(key)
        except ApiError as error:
            return [_unread(subject, error)]
        # Whatever a tenant has put there must not keep the others from being looked at.
        except Exception as error:  # noqa: BLE001
            known = error if isinstance(error, FivespotError) else None
            why = unreachable(known, str(error) or type(error).__name__)
            fix = "put a kubeconfig with inline credentials there, as Cluster API does"
            return [
                failed(
                    subject,
                    f"{why.reason}: {why.why}; {counted(count, 'machine needs', 'machines need')} it",
                    fix,
                )
            ]
        async with gateway:
            reached = attrs.evolve(await reach(gateway), subject=subject)
            if reached.level is Level.FAILED:
                return [reached]
            denied = await permissions(gateway, rights.IN_CHILD, f"permissions by {subject}")
        return [reached, *denied]

    async def _child_gateway(self, key: ChildKey) -> Gateway:
        """As the controller reads it: by a list of one name, for which a right on all Secrets is not needed."""
        stream = secret_stream(key.namespace, key.secret)
        listed = await self.gateway.list(SECRETS, key.namespace, field_selector=stream.fields)
        for secret in listed.each():
            return await Gateway.from_kubeconfig(text_in(secret, key.entry), allow_local=self.allow_local)
        message = "it does not exist"
        raise SecretMissing(message)

    # Reading

    async def _all(self, stream: Stream[T]) -> dict[Key, T]:
        """Every object of a kind, as the controller would keep it.

        Raises:
            KindNotServed: there is no such kind.
            ApiError: it could not be read.
        """
        resource = await self.gateway.resolve(stream.group, stream.kind, stream.version)
        listed = await self.gateway.list(resource, label_selector=stream.label)
        return {key: stream.read(item, None) for item in listed.each() if (key := key_of(item)) is not None}


def _kind_of_schedule(machine: MachineView) -> str:
    return machine.intent.schedule.kind if machine.intent.schedule is not None else ""


def _made_of(machines: Iterable[MachineView]) -> Counter[Stream[Any]]:
    """The bootstrap and infrastructure kinds, and how many machines are made of each."""
    streams = (dependent_stream(machine, role) for machine in machines for role in Role)
    return Counter(stream for stream in streams if stream is not None)


def _unread(subject: str, error: FivespotError) -> Finding:
    fix = error.advice() if isinstance(error, ApiError) else ""
    return warning(subject, f"cannot be told: {error}", fix or "try again")
