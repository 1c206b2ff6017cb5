"""From JSON values to models and back."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fivespot.core.api import providers, scheduled_machine
from fivespot.core.api.codec import decode, decode_metadata, encode
from fivespot.core.api.kinds import KINDS, Kind
from fivespot.core.api.scheduled_machine import ScheduledMachine, ScheduledMachineSpec, ScheduledMachineStatus
from fivespot.core.api.schema import schema_of
from fivespot.core.errors import InvalidSpec
from tests import builders
from tests.builders import changed
from tests.core.api.models import JSON, instances

MODELS = (
    ScheduledMachineSpec,
    ScheduledMachineStatus,
    scheduled_machine.Shutdown,
    scheduled_machine.Reclaim,
    providers.TimeBasedSpec,
    providers.CapitalMarketsSpec,
    providers.ManualSpec,
    providers.CompositeSpec,
    providers.PrometheusSpec,
    providers.ProviderStatus,
)
slow_builds = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("nulls", [False, True], ids=["absent", "null"])
@slow_builds
@given(data=st.data())
def test_what_was_encoded_decodes_to_the_same(model: Any, nulls: bool, data: st.DataObject) -> None:
    value = data.draw(instances(model))
    assert decode(encode(value, nulls=nulls), model) == value


@slow_builds
@given(status=instances(ScheduledMachineStatus))
def test_a_status_with_nulls_has_exactly_the_keys_of_the_schema(status: ScheduledMachineStatus) -> None:
    """So that a merge patch clears what is gone."""
    schema = schema_of(ScheduledMachineStatus)
    written = encode(status, nulls=True)
    assert list(written) == list(schema.properties)
    for name, value in written.items():
        if isinstance(value, dict):
            assert list(value) == list(schema.properties[name].properties)


def test_a_cleared_part_is_one_null() -> None:
    assert encode(ScheduledMachineStatus(), nulls=True)["shutdown"] is None


def test_without_nulls_an_empty_status_holds_its_lists_alone() -> None:
    assert encode(ScheduledMachineStatus()) == {"conditions": [], "appliedNodeTaints": []}


@pytest.mark.parametrize(("written", "meant"), [(None, None), ([], ()), (["java"], ("java",))])
def test_kill_if_commands_absent_empty_and_set_stay_apart(written: Any, meant: Any) -> None:
    spec = decode(builders.scheduled_machine(killIfCommands=written)["spec"], ScheduledMachineSpec)
    assert spec.kill_if_commands == meant
    assert encode(spec).get("killIfCommands") == written


def test_null_means_absent_at_every_level() -> None:
    bare = builders.scheduled_machine()
    nulls = changed(
        bare,
        {
            "status": None,
            "spec.enabled": None,
            "spec.priority": None,
            "spec.nodeDrainTimeout": None,
            "spec.nodeTaints": None,
            "spec.machineTemplate": None,
            "spec.bootstrapSpec.metadata": {"labels": None},
        },
    )
    assert decode(nulls, ScheduledMachine) == decode(bare, ScheduledMachine)


def test_unknown_fields_are_passed_over() -> None:
    known = builders.scheduled_machine()
    more = changed(
        known, {"x": 1, "spec.x": [], "spec.schedule.x": {}, "metadata.x": 1, "status": {"x": None}}
    )
    assert decode(more, ScheduledMachine) == decode(known, ScheduledMachine)


def test_a_whole_number_may_have_a_fraction_of_zero() -> None:
    assert decode(builders.scheduled_machine(priority=60.0)["spec"], ScheduledMachineSpec).priority == 60


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec.enabled", "false"),
        ("spec.enabled", 0),
        ("spec.clusterName", 5),
        ("spec.priority", "50"),
        ("spec.priority", True),
        ("spec.priority", 50.5),
        ("spec.nodeDrainTimeout", "5 m"),
        ("spec.nodeDrainTimeout", 300),
        ("spec.onDrainTimeout", "force"),
        ("spec.killIfCommands", "java"),
        ("spec.killIfCommands[1]", 5),
        ("spec.nodeTaints[0]", "spot"),
        ("spec.nodeTaints[0].effect", "Never"),
        ("spec.machineTemplate.labels.team", 5),
        ("spec.bootstrapSpec.spec", []),
        ("spec.schedule", None),
        ("status.ready", "yes"),
        ("status.observedGeneration", "3"),
        ("status.lastScheduledTime", "yesterday"),
        ("status.shutdown.manner", "Slow"),
        ("status.conditions[0].type", 5),
    ],
)
def test_a_refusal_names_the_field(field: str, value: Any) -> None:
    document = changed(
        builders.scheduled_machine(
            killIfCommands=["java", "idea"],
            nodeTaints=[{"key": "spot", "effect": "NoSchedule"}],
            machineTemplate={"labels": {"team": "fx"}},
        ),
        {"status": {"conditions": [{"type": "Ready", "status": "True"}], "shutdown": {}}, field: value},
    )
    with pytest.raises(InvalidSpec) as refusal:
        decode(document, ScheduledMachine)
    assert refusal.value.field == field
    assert refusal.value.remedy


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=JSON | st.fixed_dictionaries({"metadata": JSON, "spec": JSON, "status": JSON}))
def test_garbage_is_read_or_refused_and_nothing_worse(kind: Kind, value: Any) -> None:
    try:
        decoded = decode(value, kind.model)
    except InvalidSpec as refusal:
        assert str(refusal)  # noqa: PT017 - most are refused, some are not
    else:
        assert isinstance(decoded, kind.model)


@pytest.mark.parametrize(
    "value",
    [float("nan"), 10**5000, {1: 2}, {("a",): "b"}, {"spec": {5: 6}}, object(), b"x", {"metadata"}],
    ids=lambda value: type(value).__name__,
)
def test_what_no_reader_of_json_makes_is_refused_too(value: Any) -> None:
    with pytest.raises(InvalidSpec) as refusal:
        decode(value, ScheduledMachine)
    assert str(refusal.value)


def test_a_value_nested_beyond_python_s_stack_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidSpec) as refusal:
        decode({"metadata": {"name": "x"}, "spec": deep}, ScheduledMachine)
    assert "too large to show" in str(refusal.value)
    while deep:  # or its end would use the stack up as well
        deep = deep.pop()


@given(
    value=JSON
    | st.dictionaries(
        st.sampled_from(
            ["name", "labels", "finalizers", "ownerReferences", "generation", "creationTimestamp"]
        ),
        JSON,
    )
)
def test_metadata_is_read_or_refused(value: Any) -> None:
    try:
        metadata = decode_metadata(value)
    except InvalidSpec:
        return
    assert all(isinstance(text, str) for text in metadata.labels.values())
    assert all(isinstance(text, str) for text in metadata.finalizers)
