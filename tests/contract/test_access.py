"""Who may ask what, and how a refusal is put."""

from __future__ import annotations

import pytest

from fivespot.adapters.kube.errors import Forbidden, Unauthorized
from fivespot.adapters.kube.resources import LEASES, NODES, PODS
from tests.contract.apis import Given, contract
from tests.contract.definitions import WIDGETS


@contract
async def test_a_token_that_nobody_issued_is_unauthorized(given: Given) -> None:
    async with given.account(given.server.with_token("wrong")) as gateway:
        with pytest.raises(Unauthorized) as refused:
            await gateway.get(PODS, given.namespace, "a")
        assert (refused.value.status, refused.value.reason, refused.value.message) == (
            401,
            "Unauthorized",
            "Unauthorized",
        )


@contract
async def test_a_refusal_names_user_verb_resource_group_and_namespace(given: Given) -> None:
    user, ns = f"user-{given.unique}", given.namespace
    async with given.account(given.server.kubeconfig(user)) as gateway:
        said = f'User "{user}" cannot'
        here = f'in the namespace "{ns}"'
        widgets, leases = f'API group "{WIDGETS.group}"', 'API group "coordination.k8s.io"'
        for attempt, message, details in (
            (
                gateway.get(PODS, ns, "a"),
                f'pods "a" is forbidden: {said} get resource "pods" in API group "" {here}',
                {"name": "a", "kind": "pods"},
            ),
            (
                gateway.list(NODES),
                f'nodes is forbidden: {said} list resource "nodes" in API group "" at the cluster scope',
                {"kind": "nodes"},
            ),
            (
                gateway.list(WIDGETS),
                f'{WIDGETS.label} is forbidden: {said} list resource "widgets" in {widgets} at the cluster scope',
                {"group": WIDGETS.group, "kind": "widgets"},
            ),
            (
                gateway.create(LEASES, ns, {"metadata": {"name": "a"}}),
                f'{LEASES.label} is forbidden: {said} create resource "leases" in {leases} {here}',
                {"group": "coordination.k8s.io", "kind": "leases"},
            ),
            (
                gateway.merge_patch(WIDGETS, ns, "a", {}, "status"),
                f'{WIDGETS.label} "a" is forbidden: {said} patch resource "widgets/status" in {widgets} {here}',
                {"name": "a", "group": WIDGETS.group, "kind": "widgets"},
            ),
            (
                gateway.evict(ns, "a"),
                f'pods "a" is forbidden: {said} create resource "pods/eviction" in API group "" {here}',
                {"name": "a", "kind": "pods"},
            ),
            (
                gateway.delete(NODES, None, "a"),
                f'nodes "a" is forbidden: {said} delete resource "nodes" in API group "" at the cluster scope',
                {"name": "a", "kind": "nodes"},
            ),
        ):
            with pytest.raises(Forbidden) as refused:
                await attempt
            assert (refused.value.status, refused.value.message) == (403, message)
            assert refused.value.details == details


@contract
async def test_a_watch_without_rights_does_not_begin(given: Given) -> None:
    async with given.account(given.server.kubeconfig(f"user-{given.unique}")) as gateway:
        with pytest.raises(Forbidden, match="cannot watch resource"):
            async for _ in gateway.watch(PODS, given.namespace, resource_version="0", timeout_seconds=5):
                pass


@contract
async def test_rights_are_asked_for_before_the_kind_is_looked_up(given: Given) -> None:
    async with given.account(given.server.kubeconfig(f"user-{given.unique}")) as gateway:
        answer = gateway._document("/apis/nothing.5spot.test/v1/things")
        with pytest.raises(
            Forbidden, match=r'cannot list resource "things" in API group "nothing\.5spot\.test"'
        ):
            await answer


@contract
async def test_everybody_may_discover(given: Given) -> None:
    async with given.account(given.server.kubeconfig(f"user-{given.unique}")) as gateway:
        assert await gateway.resolve("", "Pod") == PODS
        await gateway.version()
