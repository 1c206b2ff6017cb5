"""Asks an API server which permissions the account has that we talk as."""

import asyncio
from collections.abc import Iterable

from fivespot.adapters.kube.errors import ApiError
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.resources import Resource
from fivespot.core.doctor.finding import Finding, failed, ok, warning
from fivespot.core.doctor.rights import Right, told

_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


async def permissions(gateway: Gateway, rights: Iterable[Right], subject: str) -> list[Finding]:
    """A finding for each resource on which something is missing, or one that says that all is there."""
    asked = list(dict.fromkeys(rights))
    try:
        allowed = await asyncio.gather(*(_allowed(gateway, right) for right in asked))
    except ApiError as error:
        return [warning(subject, f"cannot be asked for: {error}", error.advice() or "try again")]
    denied = [right for right, granted in zip(asked, allowed, strict=True) if not granted]
    if not denied:
        return [ok(subject, f"all {len(asked)} are granted")]
    return [failed(subject, missing, fix) for missing, fix in told(denied)]


async def _allowed(gateway: Gateway, right: Right) -> bool:
    plural, _, sub = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": plural,
        "subresource": sub,
        "verb": right.verb,
        "namespace": right.namespace or "",
        "name": right.name,
    }
    review = await gateway.create(_REVIEWS, None, {"spec": {"resourceAttributes": attributes}})
    return review.get("status", {}).get("allowed") is True
