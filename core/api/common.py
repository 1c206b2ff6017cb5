"""Values that several kinds share: names and their bounds, metadata, conditions, references."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.core.api.schema import Bounds, Rule, prop
from fivespot.core.names import RESERVED_DOMAINS, is_reserved

_LABEL_NAME: Final = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX_LENGTH: Final = 253
_KEY_LENGTH: Final = _PREFIX_LENGTH + 1 + 63
# Kubernetes checks the length of the whole name alone, not 63 for each label as DNS would.
_SUBDOMAIN: Final = "[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*"

OBJECT_NAME: Final = Bounds(
    pattern=f"^{_SUBDOMAIN}$",
    min_length=1,
    max_length=253,
    remedy="write an RFC 1123 name: lower case letters, digits, '-' and '.', at most 253 characters",
)
KIND_NAME: Final = Bounds(
    pattern="^[A-Z][A-Za-z0-9]{0,62}$",
    min_length=1,
    max_length=63,
    remedy="write the kind in PascalCase, such as TimeBasedSpotSchedule",
)
QUALIFIED_KEY: Final = Bounds(
    pattern=f"^({_SUBDOMAIN}/)?{_LABEL_NAME}$",
    min_length=1,
    max_length=_KEY_LENGTH,
    remedy="write a qualified name such as example.com/role: an optional DNS prefix, '/', and at most 63 characters",
)
LABEL_VALUE: Final = Bounds(
    pattern=f"^({_LABEL_NAME})?$",
    max_length=63,
    remedy="write at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
)

_RESERVED: Final = f"^([^/]*[.])?({'|'.join(RESERVED_DOMAINS).replace('.', '[.]')})/"
RESERVED_REMEDY: Final = (
    f"choose another prefix; {', '.join(RESERVED_DOMAINS)} and their sub-domains are reserved"
)


def is_qualified_key(key: str) -> bool:
    """Whether `key` can be the key of a label, an annotation or a taint."""
    prefix = key.rpartition("/")[0]
    return len(prefix) <= _PREFIX_LENGTH and re.fullmatch(str(QUALIFIED_KEY.pattern), key) is not None


def no_reserved_keys(value: Mapping[str, Any]) -> bool:
    """Whether no key of a labels or annotations mapping lies in a reserved domain."""
    return not any(is_reserved(key) for key in value)


NO_RESERVED_KEYS: Final = Rule(
    cel=f"self.all(key, !key.matches('{_RESERVED}'))",
    holds=no_reserved_keys,
    remedy=RESERVED_REMEDY,
)
QUALIFIED_KEYS: Final = Rule(
    cel=f"self.all(key, key.indexOf('/') <= {_PREFIX_LENGTH} && key.matches('{QUALIFIED_KEY.pattern}'))",
    holds=lambda value: all(is_qualified_key(key) for key in value),
    remedy=f"every key must be a qualified name: {QUALIFIED_KEY.remedy}",
)
KEY_PREFIX_LENGTH: Final = Rule(
    cel=f"self.indexOf('/') <= {_PREFIX_LENGTH}",
    holds=lambda value: len(value.rpartition("/")[0]) <= _PREFIX_LENGTH,
    remedy=f"write at most {_PREFIX_LENGTH} characters before the '/'",
)
NOT_RESERVED_KEY: Final = Rule(
    cel=f"!self.matches('{_RESERVED}')",
    holds=lambda value: not is_reserved(value),
    remedy=RESERVED_REMEDY,
)


@attrs.frozen(kw_only=True)
class Condition:
    """A condition after metav1.Condition: merged by type; the time moves only when `status` does."""

    type: str = prop("Type of the condition.", bounds=Bounds(min_length=1, max_length=316))
    status: str = prop("True, False or Unknown.", bounds=Bounds(enum=("True", "False", "Unknown")))
    reason: str = prop("One word for the cause.", default="", bounds=Bounds(max_length=1024))
    message: str = prop("One sentence for people.", default="", bounds=Bounds(max_length=32768))
    last_transition_time: datetime | None = prop("When `status` last changed.", default=None)
    observed_generation: int | None = prop("The generation of the spec this speaks of.", default=None)


@attrs.frozen(kw_only=True)
class ObjectReference:
    """An object in the machine's own namespace."""

    api_version: str = prop("Group and version.", default="")
    kind: str = prop("Kind.", default="")
    name: str = prop("Name.", default="")
    uid: str | None = prop("Unique id of the object that was meant.", default=None)


@attrs.frozen(kw_only=True)
class OwnerReference:
    """An entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


@attrs.frozen(kw_only=True)
class Metadata:
    """What the core reads of `metadata`. Instants are UTC; `managedFields` never gets here."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()
    created_at: datetime | None = None
    deleting_since: datetime | None = None

    @property
    def deleting(self) -> bool:
        """Whether the object has a deletion timestamp."""
        return self.deleting_since is not None


MESSAGE_LENGTH: Final = 4096
"""Characters of a condition's message. The CRD takes more, and refuses the whole status for one that is too long."""


def in_brief(message: str, limit: int = MESSAGE_LENGTH) -> str:
    """A message that is no longer than people read, and a server takes: others' words are in it."""
    return message if len(message) <= limit else f"{message[: limit - 3]}..."


def condition(conditions: Sequence[Condition], of_type: str) -> Condition | None:
    """The condition of that type, or None."""
    return next((entry for entry in conditions if entry.type == of_type), None)
