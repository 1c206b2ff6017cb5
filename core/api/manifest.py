"""`metadata` as the API server checks it on every object, in the vocabulary of our own schemas.

It serves the verdict on files (`admission.py`); no CRD is made from it, since a CRD may not constrain metadata. The rules
are those of `ValidateObjectMeta` in k8s.io/apimachinery.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from fivespot.core.api.common import LABEL_VALUE, OBJECT_NAME, QUALIFIED_KEY, QUALIFIED_KEYS, is_qualified_key
from fivespot.core.api.schema import Bounds, Rule, prop, rules

_ANNOTATION_BYTES: Final = 256 * 1024


def _small(annotations: Mapping[str, str]) -> bool:
    return sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) <= _ANNOTATION_BYTES


def _one_controller(metadata: Mapping[str, Any]) -> bool:
    return sum(owner.get("controller") is True for owner in metadata.get("ownerReferences") or ()) <= 1


_ANNOTATIONS: Final = Bounds(
    rules=(
        Rule(
            cel="",
            # Only of annotations the server takes upper case in a prefix.
            holds=lambda value: all(is_qualified_key(key.lower()) for key in value),
            remedy=f"every key must be a qualified name: {QUALIFIED_KEY.remedy}",
        ),
        Rule(cel="", holds=_small, remedy="keys and values together may have 256 KiB"),
    )
)
_NOT_EMPTY: Final = Bounds(min_length=1, remedy="write what it names")


@attrs.frozen(kw_only=True)
class ManifestOwner:
    """An entry of `ownerReferences`."""

    api_version: str = prop("Group and version of the owner.", bounds=_NOT_EMPTY)
    kind: str = prop("Kind of the owner.", bounds=_NOT_EMPTY)
    name: str = prop("Name of the owner.", bounds=_NOT_EMPTY)
    uid: str = prop("Unique id of the owner.", bounds=_NOT_EMPTY)
    controller: bool | None = prop("Whether it is the one that manages the object.", default=None)
    block_owner_deletion: bool | None = prop("Whether a foreground deletion waits.", default=None)


@rules(
    Rule(
        cel="",
        holds=_one_controller,
        remedy="at most one owner may be the controller",
        field="ownerReferences",
    )
)
@attrs.frozen(kw_only=True)
class ManifestMetadata:
    """What a file may say in `metadata`; what the server alone writes is taken when it is well-formed."""

    name: str = prop("The name of the object.", bounds=OBJECT_NAME)
    namespace: str | None = prop(
        "The namespace of the object.",
        default=None,
        bounds=Bounds(
            pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
            max_length=63,
            remedy="write an RFC 1123 label: at most 63 lower case letters, digits and '-'",
        ),
    )
    labels: Mapping[str, str] = prop(
        "Labels.", default=attrs.Factory(dict), bounds=Bounds(item=LABEL_VALUE, rules=(QUALIFIED_KEYS,))
    )
    annotations: Mapping[str, str] = prop("Annotations.", default=attrs.Factory(dict), bounds=_ANNOTATIONS)
    finalizers: tuple[str, ...] = prop("Finalizers.", default=(), bounds=Bounds(item=QUALIFIED_KEY))
    owner_references: tuple[ManifestOwner, ...] = prop("Owners.", default=())
    generate_name: str | None = prop("Not used when there is a name.", default=None)
    uid: str | None = prop("The server's.", default=None)
    resource_version: str | None = prop("The server's.", default=None)
    generation: int | None = prop("The server's.", default=None)
    creation_timestamp: datetime | None = prop("The server's.", default=None)
    deletion_timestamp: datetime | None = prop("The server's.", default=None)
    deletion_grace_period_seconds: int | None = prop("The server's.", default=None)
    managed_fields: tuple[Mapping[str, Any], ...] = prop("The server's.", default=())
    self_link: str | None = prop("No longer used.", default=None)
