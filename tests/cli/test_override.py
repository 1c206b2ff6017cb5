"""`5spot override` before it has talked to a cluster: what it takes, and what is wrong with a line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from fivespot.adapters.files import read_documents
from fivespot.cli.output import echo_manifest
from fivespot.cli.overrides import Until
from tests.cli.running import process, run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Missing argument 'sm/NAME'"),
        ("desk-7 on", "'desk-7': write sm/NAME"),
        ("node/desk-7 on", "'node/desk-7': write sm/NAME"),
        ("sm/floor-2/desk-7 on", "'sm/floor-2/desk-7': write sm/NAME, and the namespace with -n"),
        ("sm/ on", "'' is no name of a machine: lower case letters, digits, '-' and '.', at most 63 characters"),
        ("sm/.. on", "'..' is no name of a machine"),
        ("sm/Desk on", "'Desk' is no name of a machine"),
        (f"sm/{'m' * 64} on", "is no name of a machine"),
        ("sm/desk-7 on -n ..", "'..' is no name of a namespace"),
        ("sm/desk-7", "on or off is missing (or --clear): 5spot override sm/NAME on --until 2h"),
        ("sm/desk-7 up", "'up' is not one of 'on', 'off'"),
        ("sm/desk-7 on --clear", "--clear takes an override away; leave on, off and --until out"),
        ("sm/desk-7 --clear --until 2h", "--clear takes an override away; leave on, off and --until out"),
        ("sm/desk-7 on --until six", "'six' is not an RFC 3339 instant with an offset"),
        ("sm/desk-7 on --until 2026-03-02T18:00:00", "write 2026-03-02T18:00:00Z if UTC is meant"),
        ("sm/desk-7 on --until 2020-03-02T18:00:00+01:00", "'2020-03-02T18:00:00+01:00' is not in the future: it is 20"),
        ("sm/desk-7 on --until 0s", "'0s' is not in the future"),
        ("sm/desk-7 on --until 999999w", "'999999w' is after the year 9999; leave it out for an override without an end"),
        ("sm/desk-7 on --until 9999-12-31T23:59:59.5Z", "is after the year 9999"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_a_usage_error_that_says_what_to_write(line: str, said: str) -> None:
    done = run("override", *line.split())
    assert (done.status, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    "name", ["sm/a", "SM/a", "scheduledmachine/a.b", "scheduledmachines/a-1", "scheduledmachines.5spot.finos.org/a"]
)  # fmt: skip
@pytest.mark.parametrize("rest", [("on",), ("off", "--until", "90s"), ("--clear",)], ids=" ".join)
def test_a_right_line_needs_a_kubeconfig(name: str, rest: tuple[str, ...], tmp_path: Path) -> None:
    done = process("override", name, *rest, env={"HOME": str(tmp_path), "KUBECONFIG": ""})
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "Error: no cluster to talk to: there is no ~/.kube/config, and this is no pod; name a kubeconfig with --kubeconfig\n"
    )


def test_a_cluster_that_does_not_answer_is_said(tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    done = process("override", "sm/desk-7", "on", "--kubeconfig", str(path))
    assert (done.status, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert line.startswith(
        "Error: get scheduledmachines.5spot.finos.org default/desk-7: http://127.0.0.1:1: "
    )


@pytest.mark.parametrize(
    "text", ["1e3", "0x10", "010", "on", "9:30", "2026-03-02T18:00:00Z", "desk-7", "~", "1_0"]
)
def test_manifests_are_printed_so_that_kubectl_reads_every_text_as_text(
    text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    manifest = {"apiVersion": "v1", "kind": "Any", "metadata": {"name": text}, "list": [text], "on": True}
    echo_manifest(manifest)
    echo_manifest(manifest, "# again")
    (tmp_path / "printed.yaml").write_text(capsys.readouterr().out)
    found, _ = read_documents([tmp_path])
    assert [document.body for document in found] == [manifest, manifest]


def test_until_is_the_whole_second_after_which_it_is_over() -> None:
    now = datetime(2026, 3, 2, 12, 0, 0, 250_000, tzinfo=UTC)
    assert Until("90s", timedelta(seconds=90)).after(now) == datetime(2026, 3, 2, 12, 1, 31, tzinfo=UTC)
    exact = datetime(2026, 3, 2, 18, tzinfo=UTC)
    assert Until("x", exact).after(now) == exact
