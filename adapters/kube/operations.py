"""What can be asked of an API server: the methods of the gateway, without how it is reached.

Writes that carry a decision carry a precondition too: a resourceVersion in the body, a uid, or a `test` in a JSON
patch. None is ever repeated; after Unavailable it is not known whether it was done.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fivespot.adapters.kube import bodies
from fivespot.adapters.kube.errors import Asked, Conflict, Invalid
from fivespot.adapters.kube.reads import Reads, decoded
from fivespot.adapters.kube.resources import PODS, Object, Resource
from fivespot.core.names import FIELD_MANAGER

Propagation: TypeAlias = Literal["Foreground", "Background", "Orphan"]


class Operations(Reads):
    """Everything that reads can do, and create, update, patch, apply, delete, evict."""

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: Mapping[str, Any],
        field_manager: str = FIELD_MANAGER,
    ) -> Object:
        """POST a new object; apiVersion and kind may be left out.

        Raises:
            AlreadyExists: somebody's object has that name.
            Invalid: the object is wrong.
        """
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        asked = Asked("create", resource.label, namespace, name)
        query = {"fieldManager": field_manager}
        with self._learning(resource):
            return await self._write(
                asked, "POST", resource.path(namespace), bodies.typed(resource, body), query
            )

    async def update(
        self,
        resource: Resource,
        namespace: str | None,
        body: Mapping[str, Any],
        field_manager: str = FIELD_MANAGER,
    ) -> Object:
        """PUT: replace a whole object, which has to be as it was read: its `metadata.resourceVersion` is required.

        Raises:
            ValueError: the body names no object, or no version of it; a mistake of the caller that would overwrite
                what nobody has looked at.
            Conflict: the object has another resourceVersion, or another uid.
            NotFound: it is not there.
        """
        name, version = (body["metadata"].get(field) for field in ("name", "resourceVersion"))
        if not name or not version:
            message = f"an update of {resource.label} {name!r} needs the resourceVersion that it replaces"
            raise ValueError(message)
        asked = Asked("update", resource.label, namespace, name)
        query = {"fieldManager": field_manager}
        path = resource.path(namespace, name)
        with self._learning(resource):
            return await self._write(asked, "PUT", path, bodies.typed(resource, body), query)

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        subresource: str | None = None,
        *,
        field_manager: str = FIELD_MANAGER,
    ) -> Object:
        """RFC 7386: None removes, a list replaces. A `metadata.resourceVersion` in it makes it conditional.

        Raises:
            Conflict: the object has another resourceVersion.
        """
        content_type = "application/merge-patch+json"
        query = {"fieldManager": field_manager}
        return await self._patch((resource, namespace, name, subresource), query, body, content_type)

    async def json_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        subresource: str | None = None,
        *,
        field_manager: str = FIELD_MANAGER,
    ) -> Object:
        """RFC 6902.

        Raises:
            Conflict: a `test` fails, or another operation does not apply to the object as it is.
            Invalid: the object would be wrong afterwards.
        """
        content_type = "application/json-patch+json"
        query = {"fieldManager": field_manager}
        try:
            return await self._patch(
                (resource, namespace, name, subresource), query, operations, content_type
            )
        except Invalid as error:
            # The server says Invalid for both, but for an object that is wrong it says in the details what is.
            if error.details:
                raise
            raise Conflict(
                error.asked, status=error.status, reason=error.reason, message=error.message
            ) from error

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        field_manager: str = FIELD_MANAGER,
        *,
        force: bool = False,
        subresource: str | None = None,
    ) -> Object:
        """Server-side apply: these fields are ours, those that we had and left out go. Creates what is missing.

        Raises:
            Conflict: a field belongs to somebody else, and `force` is off.
        """
        metadata = {**body.get("metadata", {}), "name": name}
        whole = bodies.typed(resource, {**body, "metadata": metadata})
        content_type = "application/apply-patch+yaml"
        query = {"fieldManager": field_manager, **({"force": "true"} if force else {})}
        return await self._patch((resource, namespace, name, subresource), query, whole, content_type)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        uid: str | None = None,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Object | None:
        """Ask for an object to go; finalizers and grace may keep it for a while.

        Returns:
            The object if the server shows it, terminating or for the last time; None when it only says that it is
            done.

        Raises:
            NotFound: it is not there.
            Conflict: the object of that name has another uid.
        """
        asked = Asked("delete", resource.label, namespace, name)
        options = bodies.delete_options(uid, grace_seconds)
        if propagation is not None:
            options["propagationPolicy"] = propagation
        with self._learning(resource):
            answer = await self._write(asked, "DELETE", resource.path(namespace, name), options)
        return None if answer.get("kind") == "Status" else answer

    async def evict(
        self, namespace: str, name: str, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Ask for a pod to go, if its disruption budgets allow.

        Raises:
            Throttled: they do not for now (`cause` is DisruptionBudget), or the server has too much to do.
            NotFound: it is gone.
            Conflict: the pod of that name has another uid.
        """
        asked = Asked("create", f"{PODS.label}/eviction", namespace, name)
        body = bodies.eviction(namespace, name, uid, grace_seconds)
        await self._write(asked, "POST", PODS.path(namespace, name, "eviction"), body)

    async def _patch(
        self,
        target: tuple[Resource, str | None, str, str | None],
        query: Mapping[str, str],
        body: object,
        content_type: str,
    ) -> Object:
        resource, namespace, name, subresource = target
        label = f"{resource.label}/{subresource}" if subresource else resource.label
        asked = Asked("patch", label, namespace, name)
        path = resource.path(namespace, name, subresource)
        with self._learning(resource):
            answer = await self._exchange.once(
                asked, "PATCH", path, params=query, body=body, content_type=content_type
            )
        return decoded(asked, answer)

    async def _write(
        self, asked: Asked, method: str, path: str, body: object, query: Mapping[str, str] | None = None
    ) -> Object:
        return decoded(asked, await self._exchange.once(asked, method, path, params=query, body=body))
