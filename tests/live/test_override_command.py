"""`5spot override` against a real server, with the real controllers: a person keeps a machine in or out for a while."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest
import yaml

from fivespot.core.instant import format_instant, parse_instant
from tests import builders
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.live import product
from tests.live.product import ADMINS, CONTROLLER, ROOT, Process, World, machine

NAMESPACE, USER = "overriding", "test:person"
MANUAL, COMPOSITE, MACHINES = "mss", "css", "machines.cluster.x-k8s.io"
REVIEWS = "selfsubjectaccessreviews"


@attrs.frozen
class Site:
    """A fleet at work, somebody who overrides, and the process that answers for overrides."""

    world: World
    kubeconfig: Path
    answers: Process

    def line(self, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        """The command."""
        where = ("--kubeconfig", str(kubeconfig or self.kubeconfig), "-n", NAMESPACE)
        return [sys.executable, "-m", "fivespot", "override", *arguments, *where]

    def override(self, *arguments: str, kubeconfig: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run it to its end, without a terminal."""
        line = self.line(*arguments, kubeconfig=kubeconfig)
        return subprocess.run(
            line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
        )

    def done(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run it, and it succeeds."""
        ended = self.override(*arguments, "--yes")
        assert ended.returncode == 0, ended.stderr
        return ended

    def machine(self, name: str, *, opened: bool, **metadata: Any) -> None:
        """A machine of its own, in or out by its schedule `day` or `night`."""
        made = machine(NAMESPACE, name, schedule=builders.reference("day" if opened else "night"))
        made["metadata"] |= metadata
        self.world.apply(made)
        self.world.wait_for_phases(NAMESPACE, {name: "Active" if opened else "Inactive"})

    def schedule(self, name: str) -> str:
        """What a machine refers to, as `kind/name`."""
        found = self.world.get(NAMESPACE, "sm", name)["spec"]["schedule"]
        return f"{found['kind']}/{found['name']}"

    def left(self, name: str) -> list[str]:
        """Which of the two schedules of an override are there."""
        return [kind for kind in (MANUAL, COMPOSITE) if self.world.get(NAMESPACE, kind, f"{name}-override")]

    def versions(self, name: str) -> list[str | None]:
        """Of the machine's intent and the two schedules; a status that is written changes none of it."""
        found = [
            self.world.get(NAMESPACE, "sm", name),
            *(self.world.get(NAMESPACE, kind, f"{name}-override") for kind in (MANUAL, COMPOSITE)),
        ]
        return [str(body["metadata"]["generation"]) if body else None for body in found]


@pytest.fixture(scope="module")
def site(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The product, with a process for manual and composite schedules beside the one for the calendars."""
    folder = tmp_path_factory.mktemp("product")
    with product.world(control_plane, folder) as world:
        line = [sys.executable, "-m", "fivespot", "provider", "run", "manual", "composite"]
        identity = str(control_plane.kubeconfig("test:answers", ADMINS))
        answers = Process(
            [*line, "--kubeconfig", identity, "--lease-name", NAMESPACE], folder / "answers.log"
        )
        answers.start()
        try:
            product.namespace_with_cluster(world, NAMESPACE, "grid")
            for name, made in (
                ("day", product.open_now(NAMESPACE)),
                ("night", product.closed_now(NAMESPACE)),
            ):
                made["metadata"]["name"] = name
                world.apply(made)
            yield Site(world, control_plane.kubeconfig(USER, ADMINS), answers)
        finally:
            answers.stop()


@pytest.fixture
def silent(site: Site) -> Iterator[Process]:
    """Nobody answers for overrides until the test lets them."""
    site.answers.stop()
    yield site.answers
    resume(site.answers)


def resume(process: Process) -> None:
    """Start it again, if it does not run."""
    assert process.popen is not None
    if process.popen.poll() is not None:
        process.start()


def writes_about(site: Site, name: str) -> list[tuple[str, str]]:
    """What the controller wrote about the CAPI Machine of a machine."""
    return [
        (event["verb"], event["objectRef"]["resource"])
        for event in site.world.writes(CONTROLLER)
        if event["objectRef"].get("name") == name and event["verb"] in ("create", "delete")
    ]


# The main job


def test_a_machine_that_its_calendar_keeps_out_comes_in_and_goes_out_by_itself(site: Site) -> None:
    site.machine("guest", opened=False)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=10)
    zoned = f"{until + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}+01:00"
    ended = site.done("sm/guest", "on", "--until", zoned)
    assert f"until: {format_instant(until)} ({zoned}), in " in ended.stderr
    assert "sm/guest in namespace overriding: it is Inactive now, and comes in" in ended.stderr
    assert "then: TimeBasedSpotSchedule/night decides" in ended.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(ended.stdout)]
    assert kinds == ["ManualSpotSchedule", "CompositeSpotSchedule", "ScheduledMachine"]

    def let_go() -> bool:
        made = writes_about(site, "guest")
        return ("delete", "machines") in made and site.world.phases(NAMESPACE)["guest"] == "Inactive"

    wait_until(let_go, seconds=60, what="it was in, and is out again", every=0.2)
    assert writes_about(site, "guest").count(("create", "machines")) == 1
    found = site.world.get(NAMESPACE, COMPOSITE, "guest-override")["status"]
    assert found["active"] is False
    assert parse_instant(found["lastTransitionTime"]) >= until
    assert site.schedule("guest") == "CompositeSpotSchedule/guest-override"


def test_off_drains_on_again_keeps_in_and_clearing_gives_back_the_schedule(site: Site) -> None:
    site.machine("desk", opened=True)
    ended = site.done("scheduledmachine/desk", "off")
    assert "note: without --until it stands until somebody takes it away with --clear" in ended.stderr
    site.world.wait_for_phases(NAMESPACE, {"desk": "Inactive"})
    assert ("delete", "machines") in writes_about(site, "desk")
    composite = site.world.get(NAMESPACE, COMPOSITE, "desk-override")

    ended = site.done("scheduledmachines/desk", "on", "--until", "2h")
    (document,) = yaml.safe_load_all(ended.stdout)
    assert (document["kind"], document["spec"]["active"]) == ("ManualSpotSchedule", True)
    site.world.wait_for_phases(NAMESPACE, {"desk": "Active"})
    again = site.world.get(NAMESPACE, COMPOSITE, "desk-override")
    assert again["spec"] == composite["spec"]
    assert again["metadata"]["generation"] == 1

    before = site.world.get(NAMESPACE, MACHINES, "desk")["metadata"]["uid"]
    ended = site.done("sm/desk", "--clear")
    assert "now: TimeBasedSpotSchedule/day decides" in ended.stderr
    assert site.schedule("desk") == "TimeBasedSpotSchedule/day"
    assert site.left("desk") == []
    wait_until(
        lambda: (
            site.world.get(NAMESPACE, "sm", "desk")["status"]["spotSchedule"]["heldFrom"]
            == "TimeBasedSpotSchedule/day"
        ),
        seconds=20,
        what="the machine has read its own schedule again",
    )
    assert site.world.phases(NAMESPACE)["desk"] == "Active"
    assert site.world.get(NAMESPACE, MACHINES, "desk")["metadata"]["uid"] == before

    ended = site.override("sm/desk", "--clear")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "sm/desk in namespace overriding: nothing to clear\n"


def test_both_schedules_go_with_the_machine(site: Site) -> None:
    site.machine("leaver", opened=False)
    site.done("sm/leaver", "off")
    assert site.left("leaver") == [MANUAL, COMPOSITE]
    site.world.plane.kubectl("delete", "sm", "leaver", "-n", NAMESPACE)
    wait_until(lambda: site.left("leaver") == [], seconds=30, what="they are collected")


# Looking first


def test_a_dry_run_prints_what_the_server_would_take_and_writes_nothing(site: Site) -> None:
    site.machine("dry", opened=False)
    before = site.versions("dry")
    person = site.world.plane.kubeconfig("test:dry", ADMINS)
    ended = site.override("sm/dry", "on", "--until", "3h", "--dry-run", kubeconfig=person)
    assert ended.returncode == 0
    assert "1. create ManualSpotSchedule overriding/dry-override" in ended.stderr
    asked = [event["verb"] for event in site.world.requests("test:dry")]
    assert sorted(set(asked)) == ["get"]
    assert site.versions("dry") == before
    manual, composite, part = yaml.safe_load_all(ended.stdout)
    stream = yaml.safe_dump_all([manual, composite])
    site.world.plane.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=stream)
    line = ("patch", "sm", "dry", "-n", NAMESPACE, "--dry-run=server", "--type=merge", "-p")
    site.world.plane.kubectl(*line, json.dumps({"spec": part["spec"]}))


def test_without_a_terminal_and_without_yes_nothing_is_changed(site: Site) -> None:
    site.machine("shy", opened=False)
    ended = site.override("sm/shy", "on")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "Error: nothing was changed: there is no terminal to ask on; --yes applies it, --dry-run only prints it"
    )
    assert site.left("shy") == []


def test_where_nobody_reads_what_would_be_applied_it_is_not(site: Site) -> None:
    site.machine("unread", opened=False)
    reads, writes = os.pipe()
    os.close(reads)
    line = site.line("sm/unread", "on", "--yes")
    ended = subprocess.run(line, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writes)
    assert (ended.returncode, ended.stderr) == (
        1,
        "Error: nothing was changed: nobody reads what would be applied\n",
    )
    assert site.left("unread") == []


@attrs.frozen
class AtTerminal:
    """The command as a person at a terminal has it, when it has asked and waits."""

    process: "subprocess.Popen[bytes]"
    ours: int
    said: str

    def answer(self, text: str) -> None:
        """Type a line."""
        os.write(self.ours, f"{text}\n".encode())

    def ended(self) -> tuple[int, str]:
        """The exit status, and all that was said; what was printed are manifests and nothing else."""
        printed, rest = self.process.communicate(timeout=60)
        kinds = [document["kind"] for document in yaml.safe_load_all(printed)]
        assert kinds == ["ManualSpotSchedule", "CompositeSpotSchedule", "ScheduledMachine"]
        return self.process.returncode, self.said + rest.decode()


@contextlib.contextmanager
def at_terminal(line: list[str]) -> Iterator[AtTerminal]:
    """Run the command until it asks."""
    ours, theirs = pty.openpty()
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=theirs, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        os.close(theirs)
        try:
            said = b""
            assert process.stderr is not None
            while not said.endswith(b"Apply this? [y/N]: "):
                piece = process.stderr.read(1)
                assert piece, said.decode()
                said += piece
            # Between asking and reading Python sees no signal: it has to sleep in the read.
            asleep = psutil.Process(process.pid)
            wait_until(lambda: asleep.status() == psutil.STATUS_SLEEPING, seconds=20, what="it reads")
            yield AtTerminal(process, ours, said.decode())
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.parametrize(
    ("answer", "status", "last", "left"),
    [
        ("y", 0, "done; to take it away: 5spot override sm/asked-y --clear -n overriding", [MANUAL, COMPOSITE]),
        ("n", 1, "Error: nothing was changed", []),
    ],
)  # fmt: skip
def test_at_a_terminal_it_asks(site: Site, answer: str, status: int, last: str, left: list[str]) -> None:
    name = f"asked-{answer}"
    site.machine(name, opened=False)
    with at_terminal(site.line(f"sm/{name}", "on", "--until", "1h")) as at:
        at.answer(answer)
        ended, said = at.ended()
    # What is typed is the terminal's to show.
    assert (ended, said.removesuffix("\n").endswith(last)) == (status, True), said
    assert site.left(name) == left


def test_ctrl_c_at_the_question_changes_nothing(site: Site) -> None:
    site.machine("torn", opened=False)
    with at_terminal(site.line("sm/torn", "on")) as at:
        at.process.send_signal(signal.SIGINT)
        ended, said = at.ended()
    assert ended == 130
    assert "nothing was changed" in said
    assert "Traceback" not in said
    assert site.left("torn") == []


# Interruptions, and others


@contextlib.contextmanager
def _waiting(site: Site, name: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """The command, once it has made the composite, and waits for an answer that does not come."""
    line = site.line(f"sm/{name}", *arguments, "--yes")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(
                lambda: site.left(name) == [MANUAL, COMPOSITE], seconds=20, what="the composite is made"
            )
            yield process
        finally:
            process.kill()


def test_killed_after_the_composite_was_made_it_is_completed_by_the_same_command(
    site: Site, silent: Process
) -> None:
    site.machine("cut", opened=True)
    with _waiting(site, "cut", "off") as process:
        process.kill()
    assert site.schedule("cut") == "TimeBasedSpotSchedule/day"
    made = {
        kind: site.world.get(NAMESPACE, kind, "cut-override")["metadata"]["uid"]
        for kind in (MANUAL, COMPOSITE)
    }
    resume(silent)
    ended = site.done("sm/cut", "off")
    assert [document["kind"] for document in yaml.safe_load_all(ended.stdout)] == ["ScheduledMachine"]
    site.world.wait_for_phases(NAMESPACE, {"cut": "Inactive"})
    assert made == {
        kind: site.world.get(NAMESPACE, kind, "cut-override")["metadata"]["uid"]
        for kind in (MANUAL, COMPOSITE)
    }


def test_one_that_was_interrupted_can_be_cleared_and_another_way_does_not_flap_the_machine(
    site: Site, silent: Process
) -> None:
    """The composite that is left says `inactive`; the machine must not go out for it when it is told to stay in."""
    site.machine("steady", opened=True)
    with _waiting(site, "steady", "off") as process:
        process.kill()
    resume(silent)
    wait_until(
        lambda: (
            site.world.get(NAMESPACE, COMPOSITE, "steady-override").get("status", {}).get("active") is False
        ),
        seconds=20,
        what="what is left is answered for",
    )
    before = site.world.get(NAMESPACE, MACHINES, "steady")["metadata"]["uid"]
    site.done("sm/steady", "on")
    wait_until(
        lambda: (
            site.world.get(NAMESPACE, "sm", "steady")["status"]["spotSchedule"]["heldFrom"]
            == "CompositeSpotSchedule/steady-override"
        ),
        seconds=20,
        what="the machine has read the override",
    )
    assert site.world.get(NAMESPACE, MACHINES, "steady")["metadata"]["uid"] == before
    assert writes_about(site, "steady").count(("delete", "machines")) == 0
    assert site.world.phases(NAMESPACE)["steady"] == "Active"


def test_ctrl_c_in_the_middle_says_how_to_go_on(site: Site, silent: Process) -> None:
    site.machine("stopped", opened=False)
    with _waiting(site, "stopped", "on") as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "what is done stands; the same command goes on from there, and --clear takes it back" in said
    assert "Traceback" not in said
    ended = site.done("sm/stopped", "--clear")
    assert "is left as it is" in ended.stderr
    assert site.left("stopped") == []
    assert site.schedule("stopped") == "TimeBasedSpotSchedule/night"


def test_a_schedule_that_somebody_changes_meanwhile_is_not_overwritten(site: Site, silent: Process) -> None:
    site.machine("shared", opened=False)
    with _waiting(site, "shared", "on") as process:
        site.world.patch(NAMESPACE, "sm", "shared", {"spec": {"schedule": builders.reference("elsewhere")}})
        resume(silent)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.splitlines()[-1] == (
        "Error: ScheduledMachine overriding/shared has been changed by somebody else just now, and is left as it is; "
        "look at it, and try again"
    )
    assert site.schedule("shared") == "TimeBasedSpotSchedule/elsewhere"
    site.done("sm/shared", "on")
    site.done("sm/shared", "--clear")
    assert site.schedule("shared") == "TimeBasedSpotSchedule/elsewhere"


def test_where_nobody_answers_the_machine_is_left_alone(site: Site, silent: Process) -> None:
    site.machine("unheard", opened=False)
    ended = site.override("sm/unheard", "on", "--yes")
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(
        "Error: no active from CompositeSpotSchedule overriding/unheard-override within 20 s: "
    )
    assert last.endswith("does `5spot provider run` answer for ManualSpotSchedule and CompositeSpotSchedule?")
    assert site.schedule("unheard") == "TimeBasedSpotSchedule/night"


@pytest.mark.parametrize("kind", ["ManualSpotSchedule", "CompositeSpotSchedule"])
def test_an_object_of_that_name_in_the_way_is_named_and_nothing_is_made(site: Site, kind: str) -> None:
    name = f"blocked-by-{kind[:6].lower()}"
    site.machine(name, opened=False)
    spec: Mapping[str, Any] = (
        {"active": True} if kind.startswith("Manual") else {"anyOf": [builders.reference("day")]}
    )
    theirs = builders.provider(kind, f"{name}-override", **spec)
    theirs["metadata"]["namespace"] = NAMESPACE
    site.world.apply(theirs)
    before = site.versions(name)
    ended = site.override(f"sm/{name}", "on", "--yes")
    assert ended.returncode == 1
    assert f"{kind} overriding/{name}-override is in the way" in ended.stderr
    assert site.versions(name) == before


# Git


def _as_git(site: Site, document: Mapping[str, Any]) -> None:
    """As Argo CD applies what is in Git, with Server-Side Apply."""
    line = ("apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-")
    site.world.plane.kubectl(*line, input=json.dumps(document))


def test_a_machine_that_git_owns_is_left_alone_and_what_is_printed_does_it_when_committed(site: Site) -> None:
    manifest = machine(NAMESPACE, "kept", schedule=builders.reference("night"))
    _as_git(site, manifest)
    site.world.wait_for_phases(NAMESPACE, {"kept": "Inactive"})
    before = site.versions("kept")
    ended = site.override("sm/kept", "on", "--until", "2h", "--yes")
    assert ended.returncode == 1
    assert "  Argo CD: field manager argocd-controller owns spec.schedule\n" in ended.stderr
    assert "commit what is printed on standard output" in ended.stderr
    assert site.versions("kept") == before

    manual, composite, part = yaml.safe_load_all(ended.stdout)
    committed = {**manifest, "spec": {**manifest["spec"], **part["spec"]}}
    for document in (committed, composite, manual):
        _as_git(site, document)
    site.world.wait_for_phases(NAMESPACE, {"kept": "Active"})

    ended = site.override("sm/kept", "off", "--yes")
    assert ended.returncode == 1
    assert "Argo CD: field manager argocd-controller owns spec\n" in ended.stderr
    ended = site.override("sm/kept", "--clear", "--yes")
    assert ended.returncode == 1
    (back,) = yaml.safe_load_all(ended.stdout)
    assert back["spec"]["schedule"] == builders.reference("night")
    assert (
        "and take away CompositeSpotSchedule overriding/kept-override and ManualSpotSchedule overriding/kept-override"
        in ended.stderr
    )
    assert site.left("kept") == [MANUAL, COMPOSITE]


def test_a_mark_of_flux_counts_and_going_on_nevertheless_is_possible(site: Site) -> None:
    site.machine("marked", opened=False, labels={"kustomize.toolkit.fluxcd.io/name": "fleet"})
    ended = site.override("sm/marked", "on", "--yes")
    assert ended.returncode == 1
    assert "  Flux: label kustomize.toolkit.fluxcd.io/name: 'fleet'\n" in ended.stderr
    ended = site.done("sm/marked", "on", "--even-if-reverted")
    assert "note: it will be undone by Flux" in ended.stderr
    site.world.wait_for_phases(NAMESPACE, {"marked": "Active"})
    # What was written against Git is taken back without a word: it is what Git says.
    site.done("sm/marked", "--clear")
    assert site.schedule("marked") == "TimeBasedSpotSchedule/night"


# Rights


def _documented_role() -> dict[str, Any]:
    """The Role in docs/operating.md."""
    text = (ROOT / "docs" / "operating.md").read_text()
    block = next(part for part in text.split("```yaml\n")[1:] if "kind: Role" in part).partition("```")[0]
    found: dict[str, Any] = yaml.safe_load(block)
    return found


def test_what_is_not_allowed_is_told_before_anything_is_changed_and_the_documented_role_is_enough(
    site: Site,
) -> None:
    site.machine("granted", opened=False)
    role = _documented_role()
    role["metadata"]["namespace"] = NAMESPACE
    read = {**role, "rules": [{**rule, "verbs": ["get"]} for rule in role["rules"]]}
    site.world.apply(read)
    plane, person = site.world.plane, "test:less"
    name = role["metadata"]["name"]
    plane.kubectl("create", "rolebinding", name, f"--role={name}", f"--user={person}", "-n", NAMESPACE)
    identity = plane.kubeconfig(person)
    ended = site.override("sm/granted", "on", "--yes", kubeconfig=identity)
    assert ended.returncode == 1
    assert "Error: nothing was changed, since not all of it is allowed:" in ended.stderr
    assert "may not patch scheduledmachines.5spot.finos.org granted in namespace overriding" in ended.stderr
    assert "may not create manualspotschedules.spotschedules.5spot.finos.org" in ended.stderr
    assert site.left("granted") == []

    site.world.apply(role)
    for arguments in (("on", "--until", "1h"), ("off",), ("--clear",)):
        wait_until(
            lambda: site.override("sm/granted", *arguments, "--yes", kubeconfig=identity).returncode == 0,  # noqa: B023
            seconds=30,
            what="the authorizer has seen the role",
        )
    assert site.schedule("granted") == "TimeBasedSpotSchedule/night"


def test_an_account_that_may_not_read_is_told_what_to_grant(site: Site) -> None:
    ended = site.override("sm/any", "on", kubeconfig=site.world.plane.kubeconfig("test:blind"))
    assert ended.returncode == 1
    assert (
        'grant verb "get" on resource "scheduledmachines" in API group "5spot.finos.org" in namespace'
        in ended.stderr
    )


def test_somebody_elses_eyes_can_be_borrowed(site: Site) -> None:
    ended = site.override("sm/any", "on", "--as", "test:blind")
    assert 'User "test:blind" cannot get resource "scheduledmachines"' in ended.stderr


# What it cannot do


def test_an_unknown_machine_is_said(site: Site) -> None:
    ended = site.override("sm/nobody", "on", "--yes")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "Error: there is no ScheduledMachine overriding/nobody; is it another namespace (-n), or another cluster "
        "(--context)?\n"
    )


def test_a_machine_whose_kill_switch_is_set_is_not_overridden(site: Site) -> None:
    site.world.apply(machine(NAMESPACE, "killed", killSwitch=True))
    ended = site.override("sm/killed", "on", "--yes")
    assert ended.returncode == 1
    assert "spec.killSwitch is true, which no override outweighs; set it to false first" in ended.stderr
    assert site.left("killed") == []
