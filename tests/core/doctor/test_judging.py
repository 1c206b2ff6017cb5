"""What was read of a cluster, judged: each kind of trouble by its own words, and what is well by none."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from fivespot.core.api.allowed import AllowedGroups
from fivespot.core.api.kinds import KINDS, SCHEDULED_MACHINE, crd
from fivespot.core.api.scheduled_machine import ScheduleReference
from fivespot.core.decision.knowledge import Absent, Present, Unknown
from fivespot.core.decision.observation import ClusterView, MachineView, ProviderView
from fivespot.core.decision.reading import read_capi_machine, read_machine
from fivespot.core.doctor import judging
from fivespot.core.doctor.finding import Finding, Level, failed, ok, warning, worst
from tests import builders

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NIGHTS = ScheduleReference(
    api_version="spotschedules.5spot.finos.org/v1alpha1", kind="TimeBasedSpotSchedule", name="nights"
)


def machine(name: str = "desk-1", **spec: Any) -> MachineView:
    body = builders.scheduled_machine(name, **spec)
    body["metadata"]["namespace"] = "floor"
    return read_machine(body)


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


# Kinds


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_crd_of_this_version_lacks_nothing(kind: Any) -> None:
    assert judging.kind_installed(kind, crd(kind)).level is Level.OK


def test_fields_that_an_older_crd_would_drop_are_named() -> None:
    old = copy.deepcopy(crd(SCHEDULED_MACHINE))
    properties = schema_of(old)["properties"]
    del properties["status"]["properties"]["reclaim"]
    del properties["spec"]["properties"]["nodeTaints"]["items"]["properties"]["effect"]
    found = judging.kind_installed(SCHEDULED_MACHINE, old)
    assert found.level is Level.FAILED
    assert "lacks spec.nodeTaints.effect, status.reclaim, which" in found.message
    assert "5spot crds" in found.fix


def test_a_schema_that_keeps_all_fields_lacks_none_and_a_newer_one_is_no_trouble() -> None:
    lax = copy.deepcopy(crd(SCHEDULED_MACHINE))
    schema_of(lax)["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema_of(lax)["properties"]["spec"]["properties"]["invented"] = {"type": "string"}
    assert judging.kind_installed(SCHEDULED_MACHINE, lax).level is Level.OK


def test_a_crd_for_other_api_groups_than_the_controllers_is_told_of() -> None:
    allowed = AllowedGroups(infrastructure=("infra.example.com",))
    own = attrs.evolve(SCHEDULED_MACHINE, allowed=allowed)
    assert judging.kind_installed(own, crd(own)).level is Level.OK
    for kind, installed in ((own, SCHEDULED_MACHINE), (SCHEDULED_MACHINE, own)):
        found = judging.kind_installed(kind, crd(installed))
        assert found.level is Level.WARNING
        assert "spec.infrastructureSpec.apiVersion" in found.message
    found = judging.kind_installed(own, crd(SCHEDULED_MACHINE))
    assert "5spot crds --bootstrap-group bootstrap.cluster.x-k8s.io" in found.fix
    assert "--infrastructure-group infra.example.com |" in found.fix


def test_a_version_that_is_not_installed_lacks_everything() -> None:
    other = copy.deepcopy(crd(SCHEDULED_MACHINE))
    other["spec"]["versions"][0]["name"] = "v1alpha1"
    assert judging.kind_installed(SCHEDULED_MACHINE, other).level is Level.FAILED


# Who leads


@pytest.mark.parametrize(
    ("holder", "ago", "level", "words"),
    [
        ("", 0, Level.WARNING, "nobody leads"),
        ("box_1", 3, Level.OK, "box_1 leads"),
        ("box_1", 45, Level.OK, "box_1 leads"),
        ("box_1", 46, Level.WARNING, "box_1 leads, and has not renewed it since 2026-03-02T11:59:14Z"),
        ("box_1", None, Level.WARNING, "box_1 leads, and has not renewed it at any time"),
    ],
)
def test_a_lease_says_whether_somebody_leads(holder: str, ago: int | None, level: Level, words: str) -> None:
    renewed = None if ago is None else NOW - timedelta(seconds=ago)
    found = judging.leader("5spot-system/5spot-leader", holder, renewed, timedelta(seconds=15), NOW)
    assert (found.level, found.message) == (level, words)


# Machines and Clusters


def test_an_invalid_spec_is_named_with_its_field() -> None:
    bad = machine("odd", clusterName="", nodeTaints=[{"key": "a", "effect": "Never"}])
    (found,) = judging.specs([machine(), bad])
    assert found.level is Level.FAILED
    assert found.message.startswith("floor/odd: spec.")


def test_of_many_alike_the_first_ten_are_told_and_the_rest_counted() -> None:
    found = list(judging.specs([machine(f"odd-{n}", clusterName="") for n in range(14)]))
    assert len(found) == 11
    assert found[-1].message == "and 4 more like this"
    assert found[-1].level is Level.FAILED


def test_a_cluster_that_is_missing_paused_or_going_is_told_with_its_machines() -> None:
    machines = [machine(f"m-{name}", clusterName=name) for name in ("gone", "paused", "going", "well", "odd")]
    known = {
        ("floor", "paused"): Present(ClusterView(paused=True)),
        ("floor", "going"): Present(ClusterView(deleting=True, paused=True)),
        ("floor", "well"): Present(ClusterView()),
        ("floor", "odd"): Unknown("ReferencesInvalid", "it cannot be decoded"),
        ("elsewhere", "gone"): Present(ClusterView()),
    }
    found = {
        finding.subject: (finding.level, finding.message) for finding in judging.clusters(machines, known)
    }
    assert found == {
        "Cluster floor/gone": (Level.FAILED, "does not exist, and 1 machine names it"),
        "Cluster floor/paused": (Level.WARNING, "is paused, and so is 1 machine"),
        "Cluster floor/going": (Level.WARNING, "is being deleted, and 1 machine goes with it"),
        "Cluster floor/odd": (Level.WARNING, "it cannot be decoded"),
    }


def test_clusters_that_are_well_are_counted() -> None:
    found = list(
        judging.clusters([machine(), machine("desk-2")], {("floor", "grid"): Present(ClusterView())})
    )
    assert found == [ok("Clusters", "1 in use")]


# Cluster API


def capi(name: str, age: float, phase: str) -> Any:
    created = f"{NOW - timedelta(seconds=age):%Y-%m-%dT%H:%M:%SZ}"
    meta = {"name": name, "namespace": "floor", "creationTimestamp": created}
    return read_capi_machine({"metadata": meta, "status": {"phase": phase}})


def test_machines_that_cluster_api_leaves_lying_tell_that_it_does_not_run() -> None:
    seen = [capi("a", 3600, "Running"), capi("b", 121, ""), capi("c", 119, "")]
    found = judging.cluster_api_acts(seen, NOW)
    assert found.level is Level.FAILED
    assert found.message == "1 Machine has had no phase for minutes: floor/b"
    assert judging.cluster_api_acts([seen[0], seen[2]], NOW).level is Level.OK
    assert judging.cluster_api_acts([], NOW) == ok("Cluster API", "there is no Machine of ours to tell by")


def test_a_crd_without_a_contract_label_is_not_read_by_cluster_api() -> None:
    name = "remotemachines.infrastructure.cluster.x-k8s.io"
    labels = {"cluster.x-k8s.io/v1beta2": "v1beta1", "other": "x"}
    assert judging.contract({"metadata": {"name": name, "labels": labels}}) is None
    for none in ({}, {"labels": None}, {"labels": {"cluster.x-k8s.io/provider": "k0smotron"}}):
        found = judging.contract({"metadata": {"name": name, **none}})
        assert found is not None
        assert (found.level, found.subject) == (Level.FAILED, name)


# Schedules


def published(**status: Any) -> Present[ProviderView]:
    return Present(ProviderView(generation=1, status=status))


@pytest.mark.parametrize(
    ("provider", "level", "words"),
    [
        (published(active=True), Level.OK, "1 in use answers"),
        (Absent(live=True, why="ProviderNotFound"), Level.FAILED, "does not exist"),
        (
            Absent(live=True, why="ProviderCRDNotInstalled"),
            Level.FAILED,
            "no TimeBasedSpotSchedule is served",
        ),
        (Unknown("ProviderUnreadable", "403"), Level.FAILED, "could not be read: 403"),
        (published(), Level.FAILED, "publishes no boolean status.active"),
        (published(active=True, nextTransitionTime="2026-03-02T11:56:00Z"), Level.OK, "1 in use answers"),
        (
            published(active=True, nextTransitionTime="2026-03-02T11:55:00Z"),
            Level.FAILED,
            "should have changed at 2026-03-02T11:55:00Z, and has not",
        ),
    ],
)
def test_a_schedule_without_an_answer_and_one_that_nobody_keeps_are_told(
    provider: Any, level: Level, words: str
) -> None:
    (found,) = judging.providers({("floor", NIGHTS): provider}, NOW)
    assert found.level is level
    assert words in found.message


def test_the_worst_of_a_report_is_what_counts() -> None:
    findings: list[Finding] = []
    assert worst(findings) is Level.OK
    findings.append(warning("a", "b", "c"))
    assert worst([*findings, ok("a", "b")]) is Level.WARNING
    assert worst([failed("a", "b", "c"), *findings]) is Level.FAILED


def test_a_kind_that_nobody_needs_need_not_be_there() -> None:
    assert judging.kind_missing(SCHEDULED_MACHINE, needed=True).level is Level.FAILED
    assert judging.kind_missing(SCHEDULED_MACHINE, needed=False).level is Level.WARNING


def test_a_cluster_without_a_name_is_told_of_with_the_spec_alone() -> None:
    assert list(judging.clusters([machine("odd", clusterName="")], {})) == []
