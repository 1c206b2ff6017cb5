"""A fleet read from documents: machines, providers, and everything that is wrong with them.

Bad documents are refused whole: a machine or provider with a problem is not part of the fleet.
"""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import attrs

from fivespot.core.api.admission import problems_of_document
from fivespot.core.api.allowed import DEFAULT_GROUPS, AllowedGroups
from fivespot.core.api.kinds import SCHEDULED_MACHINE, kind_of, scheduled_machine
from fivespot.core.decision.observation import MachineView
from fivespot.core.decision.reading import read_machine
from fivespot.core.errors import InvalidSpec, shown
from fivespot.core.names import MACHINE_GROUP, PROVIDER_GROUP, group_of

DEFAULT_NAMESPACE = "default"
_OURS: Final = (MACHINE_GROUP, PROVIDER_GROUP)
_NAMED: Final = 10
"""How many machines a message lists."""


@runtime_checkable
class Sourced(Protocol):
    """A decoded document that knows where it came from."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The document."""

    @property
    def file(self) -> str:
        """The file it was read from."""

    @property
    def line_of(self) -> Callable[[str], int]:
        """The line of a field path, counted from 1."""


@attrs.frozen(kw_only=True)
class Origin:
    """Where a document was read: the file, and the line of any field in it; line 0 means nobody knows."""

    file: str = ""
    line_of: Callable[[str], int] = attrs.field(default=lambda _: 0, eq=False, repr=False)


def one_line(file: str, line: int, *parts: str) -> str:
    """Where something stands, and what is said about it; parts that are empty are left out.

    A file that was not read has no line.
    """
    place = f"{file}:{line}" if line else file
    return ": ".join(part for part in (place, *parts) if part)


@attrs.frozen(kw_only=True)
class Problem:
    """Something that admission would refuse, or that could not be read at all.

    Attributes:
        file: as it was named or found; empty for documents that came from no file.
        line: from 1; 0 when nobody knows.
        object: kind, namespace and name, as far as the document has them.
        field: path of the field, such as `spec.windows[0].start`; empty for the whole.
        value: what stood there; None when it is missing.
        remedy: what to do about it.
    """

    file: str
    line: int
    object: str
    field: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        # A file that cannot be read is its own value: to name it once is enough.
        nothing = self.value is None or self.value == self.file
        said = self.remedy if nothing else f"{shown(self.value)} is refused: {self.remedy}"
        return one_line(self.file, self.line, self.object, self.field, said)


@attrs.frozen(kw_only=True)
class Provider:
    """A provider object of any kind in the provider group."""

    kind: str
    api_version: str
    namespace: str
    name: str
    body: Mapping[str, Any] = attrs.field(eq=False, repr=False)
    origin: Origin = Origin()

    @property
    def label(self) -> str:
        """As people say it: `TimeBasedSpotSchedule floor-2/nights`."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace, name."""
        return self.kind, self.namespace, self.name


@attrs.frozen(kw_only=True)
class Machine:
    """A ScheduledMachine and where it was read."""

    view: MachineView
    origin: Origin = Origin()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.view.metadata.namespace}/{self.view.metadata.name}"

    @property
    def provider_key(self) -> tuple[str, str, str] | None:
        """Kind, namespace and name of the provider it refers to."""
        schedule = self.view.intent.schedule
        return (schedule.kind, self.view.metadata.namespace, schedule.name) if schedule is not None else None


@attrs.frozen(kw_only=True)
class Fleet:
    """Machines and providers that a cluster would accept, and the problems of those that it would not.

    Attributes:
        skipped: kinds that are not ours, with how many objects of each there were.
    """

    machines: tuple[Machine, ...] = ()
    providers: tuple[Provider, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: Mapping[str, int] = attrs.field(factory=dict)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Mapping[str, Any] | Sourced],
        problems: Iterable[Problem] = (),
        allowed: AllowedGroups = DEFAULT_GROUPS,
    ) -> "Fleet":
        """Sort decoded documents into machines, providers, problems and the rest.

        `problems` are those of reading the documents, kept in front. Objects without a namespace are in `default`.
        `allowed` are the groups that the cluster lets machines be made of.
        """
        reader = _Reader(problems=list(problems), allowed=allowed)
        for document in documents:
            reader.add(document)
        return cls(
            machines=tuple(reader.machines),
            providers=tuple(reader.providers),
            problems=tuple(reader.problems),
            skipped=dict(sorted(reader.skipped.items())),
        )

    def only(self, names: Iterable[str]) -> "Fleet":
        """The fleet with just the machines called so (`name` or `namespace/name`), and every provider.

        Raises:
            InvalidSpec: no machine has one of the names.
        """
        wanted = {name: self.called(name) for name in names}
        for name, found in wanted.items():
            if not found:
                raise InvalidSpec("machine", name, self.whom_else(name))
        kept = {machine.key for found in wanted.values() for machine in found}
        return attrs.evolve(self, machines=tuple(m for m in self.machines if m.key in kept))

    def called(self, name: str) -> tuple[Machine, ...]:
        """The machines called NAME, in any namespace, or NAMESPACE/NAME."""
        return tuple(m for m in self.machines if name in (m.key, m.view.metadata.name))

    def whom_else(self, name: str) -> str:
        """What to say about a name that no machine has."""
        known = sorted(machine.key for machine in self.machines)
        near = difflib.get_close_matches(name, [*known, *(key.partition("/")[2] for key in known)], n=1)
        if near:
            return f"no machine is called so; did you mean {near[0]}?"
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        return f"no machine is called so; there are {', '.join(known[:_NAMED]) or 'none'}{more}"


def _defines_ours(body: Mapping[str, Any], kind: str) -> bool:
    """Whether it is the CustomResourceDefinition of a kind of ours, or of a stranger's provider."""
    spec = body.get("spec")
    return kind == "CustomResourceDefinition" and isinstance(spec, Mapping) and spec.get("group") in _OURS


@attrs.define(kw_only=True)
class _Reader:
    problems: list[Problem]
    allowed: AllowedGroups
    machines: list[Machine] = attrs.field(factory=list)
    providers: list[Provider] = attrs.field(factory=list)
    skipped: Counter[str] = attrs.field(factory=Counter)
    seen: dict[tuple[str, str, str], Origin] = attrs.field(factory=dict)

    def add(self, document: Mapping[str, Any] | Sourced) -> None:
        if isinstance(document, Mapping):
            body, origin = document, Origin()
        else:
            body, origin = document.body, Origin(file=document.file, line_of=document.line_of)
        kind, api_version = body.get("kind"), body.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(api_version, str):
            field = "apiVersion" if not isinstance(api_version, str) else "kind"
            self._refuse(
                body,
                origin,
                [InvalidSpec(field, body.get(field), "every document needs apiVersion and kind")],
            )
            return
        group = group_of(api_version)
        if group not in _OURS:
            # What a kind of these groups looks like is said beside its objects, and nothing of a fleet.
            if not _defines_ours(body, kind):
                self.skipped[kind] += 1
            return
        strange = group == PROVIDER_GROUP and kind_of(api_version, kind) is None
        found = problems_of_stranger(body) if strange else problems_of_document(body, self.allowed)
        if found:
            self._refuse(body, origin, found)
            return
        self._accept(body, origin, kind, api_version)

    def _accept(self, body: Mapping[str, Any], origin: Origin, kind: str, api_version: str) -> None:
        meta = body["metadata"]
        namespace, name = meta.get("namespace") or DEFAULT_NAMESPACE, meta["name"]
        before = self.seen.setdefault((kind, namespace, name), origin)
        if before is not origin:
            where = (
                f"{before.file}:{before.line_of('metadata.name')}" if before.file else "an earlier document"
            )
            remedy = f"{where} already defines this object; rename one of the two, or leave one out"
            self._refuse(body, origin, [InvalidSpec("metadata.name", name, remedy)])
            return
        if kind == SCHEDULED_MACHINE.name:
            placed = {**body, "metadata": {**meta, "namespace": namespace}}
            known = scheduled_machine(self.allowed)
            try:
                self.machines.append(Machine(view=read_machine(placed, kind=known), origin=origin))
            except InvalidSpec as error:
                self._refuse(body, origin, [error])
            return
        self.providers.append(
            Provider(
                kind=kind, api_version=api_version, namespace=namespace, name=name, body=body, origin=origin
            )
        )

    def _refuse(self, body: Mapping[str, Any], origin: Origin, found: Iterable[InvalidSpec]) -> None:
        label = object_label(body)
        for problem in found:
            self.problems.append(
                Problem(
                    file=origin.file,
                    line=origin.line_of(problem.field),
                    object=label,
                    field=problem.field,
                    value=problem.value,
                    remedy=problem.remedy,
                )
            )


def problems_of_stranger(body: Mapping[str, Any]) -> tuple[InvalidSpec, ...]:
    """What is wrong with a provider of a kind that is not ours: nothing but its name can be judged."""
    name = (body.get("metadata") or {}).get("name") if isinstance(body.get("metadata"), Mapping) else None
    if isinstance(name, str) and name:
        return ()
    return (InvalidSpec("metadata.name", name, "required: the name of the provider"),)


def object_label(body: Mapping[str, Any]) -> str:
    """`Kind namespace/name` of a document, as far as it has them."""
    meta = body.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = "/".join(str(meta[part]) for part in ("namespace", "name") if meta.get(part))
    return " ".join(part for part in (str(body.get("kind") or ""), name) if part)
