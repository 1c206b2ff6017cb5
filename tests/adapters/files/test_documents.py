"""Which files are read, in which order, and what is said about those that are not. Real files throughout."""

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fivespot.adapters.files import Document, FileProblem, read_documents
from fivespot.adapters.files.paths import MAX_BYTES


def machine(name: str) -> str:
    return f"apiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\nmetadata: {{name: {name}}}\n"


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def names(documents: list[Document]) -> list[str]:
    return [document.body["metadata"]["name"] for document in documents]


def only(found: tuple[list[Document], list[FileProblem]]) -> FileProblem:
    documents, problems = found
    assert documents == []
    (problem,) = problems
    return problem


def test_a_folder_is_read_with_all_below_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c/d.json", "c/a.yaml", "c.yaml", "B.yaml", "é.yaml"):
        put(tmp_path / name, machine(name))
    documents, problems = read_documents([tmp_path])
    assert problems == []
    assert names(documents) == ["B.yaml", "a.yml", "b.yaml", "c/a.yaml", "c/d.json", "c.yaml", "é.yaml"]
    assert documents[3].file == str(tmp_path / "c/a.yaml")


def test_a_folder_gives_no_files_that_kubectl_would_not_read(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", machine("a"))
    for name in (
        "README.md",
        "x.YAML",
        "yaml",
        ".git/x.yaml",
        "..data/x.yaml",
        "kustomization.yaml",
        "b/kustomization.yml",
    ):
        put(tmp_path / name, "this: [is no manifest")
    documents, problems = read_documents([str(tmp_path)])
    assert (names(documents), problems) == (["a"], [])


def test_a_file_that_is_named_is_read_whatever_its_ending(tmp_path: Path) -> None:
    named = [put(tmp_path / name, machine("m" + name[0])) for name in ("a.txt", "b", "kustomization.yaml")]
    documents, problems = read_documents(named)
    assert (names(documents), problems) == (["ma", "mb", "mk"], [])


def test_paths_are_read_in_the_order_given_and_every_file_once(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        put(tmp_path / name, machine(name))
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    documents, problems = read_documents([tmp_path / "b.yaml", tmp_path, str(tmp_path / "a.yaml")])
    assert (names(documents), problems) == (["b.yaml", "a.yaml"], [])


def test_a_mounted_config_map_is_read(tmp_path: Path) -> None:
    put(tmp_path / "..2026_03_02/a.yaml", machine("a"))
    (tmp_path / "..data").symlink_to("..2026_03_02")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    documents, problems = read_documents([tmp_path])
    assert (names(documents), problems) == (["a"], [])


def test_a_file_with_a_fault_gives_nothing_and_the_others_go_on(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", machine("a"))
    put(tmp_path / "b.yaml", machine("b") + "---\n" + machine("c") + "spec: [half")
    put(tmp_path / "c.yaml", machine("d") + "---\nkind: Thing\n")
    put(tmp_path / "d.json", '{"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "e"}}')
    documents, problems = read_documents([tmp_path])
    assert names(documents) == ["a", "e"]
    assert [(problem.file, problem.line) for problem in problems] == [
        (str(tmp_path / "b.yaml"), 8),
        (str(tmp_path / "c.yaml"), 5),
    ]


def test_standard_input_is_read_where_a_dash_stands(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", machine("a"))
    given = io.TextIOWrapper(io.BytesIO(machine("é").encode()), encoding="ascii")
    documents, problems = read_documents(["-", tmp_path, "-"], given)
    assert (names(documents), problems) == (["é", "a"], [])
    assert [document.file for document in documents] == ["<stdin>", str(tmp_path / "a.yaml")]
    assert names(read_documents(["-"], io.StringIO(machine("text")))[0]) == ["text"]


def test_standard_input_that_is_not_there_or_broken_is_a_problem() -> None:
    assert (
        str(only(read_documents(["-"]))) == "<stdin> is refused: there is no standard input here; name a file"
    )
    for half in "\udcff\ud800":
        assert only(read_documents(["-"], io.StringIO(f"a: {half}"))).line == 1
    closed = io.TextIOWrapper(io.BytesIO(b""))
    closed.close()
    assert "closed" in str(only(read_documents(["-"], closed)))


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment\n", "---\n---\n", "null\n", "~", " \n", "\ufeff"]
)
def test_a_file_that_says_nothing_is_fine(tmp_path: Path, text: str) -> None:
    assert read_documents([put(tmp_path / "a.yaml", text)]) == ([], [])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_understood(tmp_path: Path, encoding: str) -> None:
    documents, problems = read_documents([put(tmp_path / "a.yaml", machine("é").encode(encoding))])
    assert (names(documents), problems) == (["é"], [])


@pytest.mark.parametrize(
    ("data", "line", "remedy"),
    [
        (b"a: 1\nb: \xff\n", 2, "it is not utf-8; save it as UTF-8"),
        (b"a: 1\n\nb: \xe2\x82", 3, "it is not utf-8; save it as UTF-8"),
        (b"\xff\xfea", 1, "it is not utf-16"),
        (b"\x7fELF\n\n\0\0", 3, "it is no text"),
        ("a: é".encode("latin-1"), 1, "it is not utf-8; save it as UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(
    tmp_path: Path, data: bytes, line: int, remedy: str
) -> None:
    problem = only(read_documents([put(tmp_path / "a.yaml", data)]))
    assert problem.line == line
    assert problem.remedy.startswith(remedy)


def test_a_path_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    missing = tmp_path / "nope.yaml"
    assert (
        str(only(read_documents([missing])))
        == f"{missing} is refused: there is no such file or folder; check the path"
    )
    for impossible in ("a\0b", "x" * 5000, "", "\ud800"):
        problem = only(read_documents([impossible]))
        assert problem.line == 0
        str(problem).encode()
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    assert "no such file" in str(only(read_documents([tmp_path])))


def test_a_folder_without_manifests_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path / "README.md", "x")
    assert "holds no manifests" in str(only(read_documents([tmp_path])))


def test_links_to_folders_are_not_followed_and_loops_are_told(tmp_path: Path) -> None:
    put(tmp_path / "in/a.yaml", machine("a"))
    put(tmp_path / "aside/b.yaml", machine("b"))
    (tmp_path / "in/aside").symlink_to(tmp_path / "aside")
    (tmp_path / "in/deep").mkdir()
    (tmp_path / "in/deep/loop").symlink_to("..")
    (tmp_path / "in/self.yaml").symlink_to("self.yaml")
    documents, problems = read_documents([tmp_path / "in"])
    assert names(documents) == ["a"]
    assert [Path(problem.file).name for problem in problems] == ["loop", "self.yaml"]
    assert "leads back" in problems[0].remedy
    assert "symbolic links" in problems[1].remedy
    (tmp_path / "named").symlink_to("in")
    assert names(read_documents([tmp_path / "named"])[0]) == ["a"]


@pytest.mark.timeout(10)
def test_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(tmp_path)  # a socket's path may be no longer than 107 bytes
    try:
        server.bind("socket.yaml")
    finally:
        os.chdir(here)
        server.close()
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    documents, problems = read_documents([tmp_path, tmp_path / "pipe.yaml", "/dev/zero"])
    assert documents == []
    assert [Path(problem.file).name for problem in problems] == ["pipe.yaml", "socket.yaml", "zero.yaml"]
    assert {problem.remedy.split(";")[0] for problem in problems} == {"it is a device, a socket or a pipe"}


@pytest.mark.timeout(10)
def test_process_substitution_is_read() -> None:
    read, write = os.pipe()
    os.write(write, machine("piped").encode())
    os.close(write)
    try:
        documents, problems = read_documents([f"/dev/fd/{read}"])
    finally:
        os.close(read)
    assert (names(documents), problems) == (["piped"], [])


@pytest.fixture
def unreadable(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "in"
    put(folder / "a.yaml", machine("a"))
    put(folder / "closed/b.yaml", machine("b"))
    put(folder / "c.yaml", machine("c")).chmod(0)
    (folder / "closed").chmod(0)
    yield folder
    (folder / "closed").chmod(0o700)


READ_AS_NOBODY = """
import json, os, sys
from fivespot.adapters.files import read_documents
os.chdir(sys.argv[1])
if os.geteuid() == 0:  # root may read everything
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
documents, problems = read_documents(["."])
print(json.dumps([[it.body["metadata"]["name"] for it in documents], [str(it) for it in problems]]))
"""


def test_what_may_not_be_read_is_a_problem_and_the_rest_goes_on(unreadable: Path) -> None:
    unreadable.chmod(0o755)
    run = subprocess.run(
        [sys.executable, "-c", READ_AS_NOBODY, str(unreadable)], capture_output=True, text=True, check=True
    )
    found, said = json.loads(run.stdout)
    assert found == ["a"]
    assert said == [
        f"./{name} is refused: it may not be read; check its permissions" for name in ("c.yaml", "closed")
    ]


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "more than 64 MiB" in str(only(read_documents([tmp_path])))
    assert "more than 64 MiB" in str(only(read_documents(["-"], io.StringIO("a" * (MAX_BYTES + 1)))))


def test_a_name_that_is_no_unicode_can_be_printed(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml")
    try:
        put(Path(name), "kind: A")
    except OSError:
        pytest.skip("this file system takes no such names")
    assert only(read_documents([tmp_path])).file.encode().endswith(b"/\\xff.yaml")


def test_folders_may_nest_deeper_than_calls(tmp_path: Path) -> None:
    here, deep = Path.cwd(), 1200
    os.chdir(tmp_path)
    try:
        for _ in range(deep):
            Path("d").mkdir()
            os.chdir("d")
        Path("a.yaml").write_text(machine("deep"))
        os.chdir(tmp_path)
        documents, problems = read_documents(["d"])
    finally:  # by hand: shutil.rmtree, and so pytest, calls itself once per folder
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
        os.chdir(here)
    assert (names(documents), problems) == (["deep"], [])


def test_a_list_gives_its_items_and_typed_lists_say_what_they_hold(tmp_path: Path) -> None:
    text = """
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineList
items:
- metadata: {name: a}
- {apiVersion: other/v1, kind: Other, metadata: {name: b}}
---
{apiVersion: v1, kind: List, items: []}
---
{apiVersion: v1, kind: List, items: null}
---
{apiVersion: v1, kind: PodList, metadata: {name: c}}
---
{apiVersion: v1, kind: Bundle, items: [{apiVersion: v1, kind: Pod, metadata: {name: d}}]}
"""
    documents, problems = read_documents([put(tmp_path / "a.yaml", text)])
    assert problems == []
    assert [(it.body["apiVersion"], it.body["kind"], it.body["metadata"]["name"]) for it in documents] == [
        ("5spot.finos.org/v1alpha1", "ScheduledMachine", "a"),
        ("other/v1", "Other", "b"),
        ("v1", "PodList", "c"),
        ("v1", "Pod", "d"),
    ]


def test_documents_and_problems_are_values(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", machine("a"))
    (first,), _ = read_documents([tmp_path])
    (again,), _ = read_documents([tmp_path])
    assert first == again == Document(first.body, first.file, 1)
    assert Document(first.body, "x", 7).line_of("metadata.name") == 7
    assert str(FileProblem("a.yaml", 3, "spec.x", 5, "write 6")) == "a.yaml:3: spec.x: 5 is refused: write 6"
