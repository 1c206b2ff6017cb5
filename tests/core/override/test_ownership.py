"""Who owns a field, by the traces that are there."""

from typing import Any

import pytest

from fivespot.core.override.ownership import evidence
from tests.core.override.site import machine

FIELD = ("spec", "schedule")
OWNS: dict[str, Any] = {"f:spec": {"f:schedule": {".": {}, "f:name": {}}}}
ELSEWHERE: dict[str, Any] = {"f:spec": {"f:priority": {}}, "f:metadata": {"f:labels": {}}}


def seen(**metadata: Any) -> list[str]:
    """The traces on a machine with this metadata."""
    return [str(trace) for trace in evidence(machine(metadata=metadata), FIELD)]


def entry(manager: str, fields: dict[str, Any] = OWNS, **more: Any) -> dict[str, Any]:
    """An entry of managedFields."""
    return {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("manager", "tool"),
    [
        ("argocd-controller", "Argo CD"),
        ("argocd-application-controller", "Argo CD"),
        ("kustomize-controller", "Flux"),
        ("helm-controller", "Flux"),
        ("helm", "Helm"),
        ("fleetagent", "Fleet"),
        ("kapp-controller", "kapp"),
        ("Terraform", "Terraform"),
        ("pulumi-kubernetes-3f9a01b2", "Pulumi"),
    ],
)
def test_a_field_manager_that_applies_again_is_named(manager: str, tool: str) -> None:
    assert seen(managedFields=[entry(manager)]) == [f"{tool}: field manager {manager} owns spec.schedule"]


@pytest.mark.parametrize(
    "manager",
    ["kubectl-client-side-apply", "kubectl-edit", "kubectl", "Go-http-client", "5spot-controller", "5spot-override"],
)  # fmt: skip
def test_people_and_their_programs_are_no_tool(manager: str) -> None:
    assert seen(managedFields=[entry(manager)]) == []


def test_a_tool_that_owns_other_fields_does_not_count() -> None:
    status = entry("argocd-controller", OWNS, subresource="status")
    assert seen(managedFields=[entry("argocd-controller", ELSEWHERE), status]) == []


@pytest.mark.parametrize("broken", [[None], [{}], [{"manager": "helm"}], [entry("helm", {"f:spec": None})]])
def test_entries_that_say_nothing_are_passed_over(broken: list[Any]) -> None:
    assert seen(managedFields=broken) == []


def test_a_manager_with_several_entries_is_told_once() -> None:
    assert len(seen(managedFields=[entry("helm"), entry("helm", operation="Update")])) == 1


@pytest.mark.parametrize(
    ("where", "key", "value", "tool"),
    [
        ("annotations", "argocd.argoproj.io/tracking-id", "fleet:5spot.finos.org/ScheduledMachine:a/b", "Argo CD"),
        ("labels", "argocd.argoproj.io/instance", "fleet", "Argo CD"),
        ("labels", "kustomize.toolkit.fluxcd.io/name", "fleet", "Flux"),
        ("labels", "helm.toolkit.fluxcd.io/name", "fleet", "Flux"),
        ("annotations", "objectset.rio.cattle.io/id", "default-fleet", "Fleet"),
        ("annotations", "configsync.gke.io/resource-id", "5spot.finos.org_scheduledmachine_a_b", "Config Sync"),
        ("annotations", "configmanagement.gke.io/managed", "enabled", "Config Sync"),
        ("labels", "kapp.k14s.io/app", "1700000000", "kapp"),
        ("annotations", "meta.helm.sh/release-name", "fleet", "Helm"),
        ("labels", "app.kubernetes.io/managed-by", "Helm", "Helm"),
    ],
)  # fmt: skip
def test_the_mark_of_a_tool_is_named_with_its_value(where: str, key: str, value: str, tool: str) -> None:
    assert seen(**{where: {key: value}}) == [f"{tool}: {where[:-1]} {key}: {value!r}"]


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("labels", "app.kubernetes.io/managed-by", "me"),
        ("labels", "app.kubernetes.io/instance", "fleet"),
        ("annotations", "configmanagement.gke.io/managed", "disabled"),
        ("annotations", "kubectl.kubernetes.io/last-applied-configuration", "{}"),
    ],
)
def test_what_people_write_too_is_no_mark(where: str, key: str, value: str) -> None:
    assert seen(**{where: {key: value}}) == []


def test_marks_say_nothing_of_a_value_that_somebody_else_has_set() -> None:
    body = machine(metadata={"managedFields": [entry("me")], "labels": {"kapp.k14s.io/app": "1"}})
    assert evidence(body, FIELD, but_for="me") == ()
    assert len(evidence(body, FIELD, but_for="another")) == 1
