"""What an API server, or the way to it, can answer instead of an object.

The type is decided by the `reason` of the server's Status first, and by the HTTP code where there is none (a proxy, a
filter in front of the API): a 409 alone does not say whether the object exists or has changed.

The message is for people: what was asked of which object, what the server said, what to do about it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from fivespot.core.errors import FivespotError

BUDGET: str = "DisruptionBudget"
"""The cause of a refused eviction: a PodDisruptionBudget, not the server's load."""

_SHOWN = 600
"""How much of a server's own words a message repeats."""


@attrs.frozen
class Asked:
    """What was asked of the server: the words of a permission rule, and of a message.

    Attributes:
        verb: as in RBAC: get, list, watch, create, update, patch, delete.
        resource: `machines.cluster.x-k8s.io`, `pods/eviction`, or a path.
        namespace: None for cluster-wide requests.
        name: None for collections.
    """

    verb: str
    resource: str
    namespace: str | None = None
    name: str | None = None

    @property
    def writes(self) -> bool:
        """Whether it would have changed something."""
        return self.verb not in ("get", "list", "watch")

    def __str__(self) -> str:
        target = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {self.resource}{f' {target}' if target else ''}"


class ApiError(FivespotError):
    """The request did not succeed.

    Attributes:
        asked: the request.
        status: HTTP code; 0 when no answer came.
        reason: the Status' reason; empty when the answer was no Status.
        message: what the server, or the transport, said.
        details: the Status' details: `causes`, `kind`, `uid`, ...
        retry_after: seconds that the server asks to wait, if it does.
    """

    remedy: ClassVar[str] = ""

    def __init__(
        self,
        asked: Asked,
        *,
        status: int = 0,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(asked, status, reason, message)
        self.asked = asked
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    @property
    def causes(self) -> tuple[str, ...]:
        """The reasons in the Status' `details.causes`, in the server's order."""
        causes = self.details.get("causes")
        if not isinstance(causes, list):
            return ()
        return tuple(str(cause.get("reason", "")) for cause in causes if isinstance(cause, dict))

    def advice(self) -> str:
        """What to do about it, as a sentence without a full stop; empty when there is nothing to add."""
        return self.remedy

    def __str__(self) -> str:
        said = self.message.strip() or self.reason or "no explanation"
        said = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."
        code = f" ({self.status} {self.reason}".rstrip() + ")" if self.status else ""
        advice = self.advice()
        return f"{self.asked}: {said}{code}{f'; {advice}' if advice else ''}"


class NotFound(ApiError):  # noqa: N818 - the server's own word, as are the names below
    """There is no such object, or no such kind."""

    @property
    def kind_not_served(self) -> bool:
        """Whether the path itself is unknown: a web server's plain 404, or in a built-in group a Status about nothing."""
        return not self.reason or not self.details

    def advice(self) -> str:
        """For a kind that is not served: how to see why."""
        if not self.kind_not_served:
            return ""
        return f"the cluster does not serve {self.asked.resource}: is its CustomResourceDefinition installed?"


class AlreadyExists(ApiError):  # noqa: N818
    """An object of that name is there already; whose it is has to be looked at."""


class Conflict(ApiError):  # noqa: N818
    """A resourceVersion, a uid or a field owner is not what the request was made for."""

    remedy = "read the object again and decide anew"


class Forbidden(ApiError):  # noqa: N818
    """The account may not do that, or admission refuses the object. It is not tried again."""

    def advice(self) -> str:
        """The permission to grant, in the words of an RBAC rule."""
        # What RBAC says has exactly this form; everything else under 403 is an admission plugin's own text.
        if f'cannot {self.asked.verb} resource "' not in self.message:
            return "admission refuses it; the message says why"
        plural, _, rest = self.asked.resource.partition(".")
        group, slash, sub = rest.partition("/")
        plural = f"{plural}/{sub}" if slash else plural
        where = f"in namespace {self.asked.namespace}" if self.asked.namespace else "in a ClusterRole"
        return f'grant verb "{self.asked.verb}" on resource "{plural}" in API group "{group}" {where}'


class Unauthorized(ApiError):  # noqa: N818
    """The server does not know the caller: token or certificate is wrong, or has expired."""

    remedy = "renew the token or the client certificate"


class Gone(ApiError):  # noqa: N818
    """The resourceVersion is too old to continue from."""

    remedy = "list again"


class Invalid(ApiError):  # noqa: N818
    """The object, patch or request is wrong as it stands; trying it again changes nothing."""


class Throttled(ApiError):  # noqa: N818
    """The server asks to come back later (`retry_after`), or a disruption budget forbids an eviction for now."""

    @property
    def cause(self) -> str:
        """`DisruptionBudget` when an eviction has to wait for a budget; empty when the server has too much to do."""
        return BUDGET if BUDGET in self.causes else ""


class Unavailable(ApiError):  # noqa: N818
    """No answer, or 5xx. On a write this says nothing about the world: it may have been done.

    Attributes:
        sent: whether the request may have reached the server.
    """

    def __init__(self, asked: Asked, *, sent: bool = True, **answer: Any) -> None:
        super().__init__(asked, **answer)
        self.sent = sent

    @property
    def outcome_unknown(self) -> bool:
        """Whether the change may have happened."""
        return self.sent and self.asked.writes

    def advice(self) -> str:
        """For writes: that nothing is known."""
        return "it may have been done all the same: read before trying again" if self.outcome_unknown else ""


class KindNotServed(FivespotError):  # noqa: N818
    """The cluster serves no such kind, in any version of the group."""

    def __init__(self, group: str, kind: str) -> None:
        super().__init__(group, kind)
        self.group = group
        self.kind = kind

    def __str__(self) -> str:
        where = f"group {self.group}" if self.group else "the core group"
        return f"the cluster serves no kind {self.kind} in {where}; install its CustomResourceDefinition"


class NoCluster(FivespotError):  # noqa: N818
    """There is nothing to connect with: no kubeconfig, an unusable one, or a context that is not in it."""


class LeadershipLost(FivespotError):  # noqa: N818 - a fact about this process
    """This process does not lead, or not any more, and may not change anything."""


_BY_REASON: dict[str, type[ApiError]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "Gone": Gone,
    "Expired": Gone,
    "Invalid": Invalid,
    "BadRequest": Invalid,
    "RequestEntityTooLarge": Invalid,
    "TooManyRequests": Throttled,
    "ServerTimeout": Unavailable,
    "Timeout": Unavailable,
    "InternalError": Unavailable,
    "ServiceUnavailable": Unavailable,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
    429: Throttled,
}
_SERVER_ERROR = 500


def error_of(
    asked: Asked, code: int, body: Mapping[str, Any] | str, retry_after: str | None = None
) -> ApiError:
    """The error that an answer means.

    Args:
        asked: the request.
        code: HTTP code of the answer, or of a Status inside a watch.
        body: the Status as decoded JSON, or text when it was none.
        retry_after: the header of that name.
    """
    status = body if isinstance(body, Mapping) and body.get("kind") == "Status" else {}
    reason = str(status.get("reason") or "")
    found = status.get("details")
    details: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    message = str(status.get("message") or "") or (body if isinstance(body, str) else "")
    kind = (
        _BY_REASON.get(reason) or _BY_CODE.get(code) or (Unavailable if code >= _SERVER_ERROR else ApiError)
    )
    return kind(
        asked,
        status=code,
        reason=reason,
        message=message,
        details=details,
        retry_after=_seconds(retry_after) or _seconds(details.get("retryAfterSeconds")),
    )


def _seconds(value: object) -> float | None:
    """Seconds, when the server named a positive number; HTTP dates are not used by any API server."""
    try:
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None
