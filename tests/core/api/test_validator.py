"""What the validator says: where, what stood there, and what to do."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fivespot.core.api.admission import problems_of_document, problems_of_update
from fivespot.core.api.kinds import KINDS, Kind
from fivespot.core.errors import InvalidSpec
from tests import builders
from tests.builders import ABSENT, changed
from tests.core.api.models import JSON


def messages(document: Any) -> list[str]:
    return [str(problem) for problem in problems_of_document(document)]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("spec.enabled", "false", ["'false'", "true or false, without quotes"]),
        ("spec.priority", 256, ["256", "0 to 255"]),
        ("spec.nodeDrainTimeout", "25h", ["'25h'", "at most 24h"]),
        ("spec.clusterName", ABSENT, ["missing", "the Cluster it joins"]),
        ("spec.schedule.apiVersion", "apps/v1", ["'apps/v1'", "spotschedules.5spot.finos.org/v1alpha1"]),
        ("spec.bootstrapSpec.apiVersion", "v1", ["bootstrap.cluster.x-k8s.io or k0smotron.io"]),
        ("spec.bootstrapSpec.metadata.name", "x", ["'x'", "leave `name` out"]),
        (
            "spec.machineTemplate.labels",
            {"node.k8s.io/x": ""},
            ["node.k8s.io/x", "another prefix", "sub-domains"],
        ),
        ("spec.killifCommands", [], ["unknown field", "did you mean `killIfCommands`?"]),
        ("spec.xyzzy", 1, ["unknown field", "known here", "clusterName"]),
        ("metadata.name", "Desk 42", ["'Desk 42'", "lower case letters"]),
        ("apiVersion", "5spot.finos.org/v1", ["'5spot.finos.org/v1'", "write 5spot.finos.org/v1beta1"]),
        ("kind", "ScheduleMachine", ["did you mean ScheduledMachine?"]),
    ],
)
def test_a_message_names_field_value_and_remedy(field: str, value: Any, words: list[str]) -> None:
    (message,) = messages(changed(builders.scheduled_machine(), {field: value}))
    assert message.startswith(f"{field}: ")
    assert [word for word in words if word not in message] == [], message


def test_every_problem_is_told_at_once_in_the_order_of_the_document() -> None:
    document = changed(
        builders.scheduled_machine(),
        {"metadata.name": "X", "spec.clusterName": "-", "spec.priority": -1, "spec.kubeconfigSecretRef": {}},
    )
    assert [problem.field for problem in problems_of_document(document)] == [
        "metadata.name",
        "spec.clusterName",
        "spec.priority",
        "spec.kubeconfigSecretRef.name",
    ]


def test_the_engine_s_refusals_carry_their_place_in_the_document() -> None:
    (message,) = messages(builders.time_based(timezone="Europe/Lodon"))
    assert message.startswith("spec.timezone: 'Europe/Lodon' is refused: did you mean Europe/London")


def test_a_huge_value_makes_a_short_message() -> None:
    (message,) = messages(builders.scheduled_machine(killIfCommands=["x"] * 100_000))
    assert len(message) < 300


@pytest.mark.parametrize("value", [None, [], "text", 5, {}, {"apiVersion": 1, "kind": []}, {5: 6}])
def test_what_is_no_manifest_is_refused(value: Any) -> None:
    assert len(messages(value)) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=st.fixed_dictionaries({"metadata": JSON, "spec": JSON}, optional={"status": JSON, "x": JSON}))
def test_garbage_gets_a_verdict_and_nothing_worse(kind: Kind, parts: dict[str, Any]) -> None:
    problems = problems_of_document({"apiVersion": kind.api_version, "kind": kind.name, **parts})
    assert problems
    assert all(isinstance(problem, InvalidSpec) and str(problem) for problem in problems)


@pytest.mark.parametrize("name", list(builders.scheduled_machine()["spec"]))
@given(value=JSON)
@settings(deadline=None)
def test_garbage_in_one_field_gets_a_verdict(name: str, value: Any) -> None:
    for problem in problems_of_document(changed(builders.scheduled_machine(), {f"spec.{name}": value})):
        assert problem.field.startswith(f"spec.{name}")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**5000], ids=["nan", "inf", "huge"])
def test_numbers_that_json_has_not_are_refused(number: Any) -> None:
    assert [
        problem.field for problem in problems_of_document(builders.scheduled_machine(priority=number))
    ] == ["spec.priority"]


def test_a_change_that_is_not_allowed_says_which_field_and_what_to_do() -> None:
    stored = {**builders.scheduled_machine(), "status": {"machineRef": {"name": "desk-042"}}}
    (problem,) = problems_of_update(builders.scheduled_machine(clusterName="other"), stored)
    assert str(problem).startswith("spec.clusterName: 'other' is refused: ")
    assert "delete the machine first" in str(problem)
