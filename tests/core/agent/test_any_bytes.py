"""Whatever a process calls itself, and whatever a file says, there is an answer or our own refusal."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.agent.config import MAX_PATTERN_BYTES, AgentConfig, InvalidConfig, Scope, parse
from fivespot.core.agent.match import MISS, Field, Hit, Matcher, Miss, Undecided
from fivespot.core.agent.near import NearMisses
from fivespot.core.agent.process import ProcessFacts, is_pod_cgroup
from fivespot.core.agent.programs import INTERPRETERS, interpreter
from tests.core.agent.corpus import facts

WORDS = st.sampled_from(
    [b"java", b"sh", b"-c", b"--", b"-", b"", b"busybox", b"env", b"/", b"\\", b"wine", b"-jar", b"=", b"-o"]
)
NAMES = st.one_of(st.binary(max_size=20), WORDS, st.lists(WORDS, max_size=4).map(b"".join))
PATTERNS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=3, max_size=20).filter(
    str.strip
)


@st.composite
def processes(draw: st.DrawFn) -> ProcessFacts:
    return ProcessFacts(
        pid=draw(st.integers(1, 9)),
        ppid=draw(st.integers(0, 9)),
        comm=draw(NAMES)[:15],
        exe=draw(st.none() | NAMES),
        argv=tuple(draw(st.lists(NAMES, max_size=6))),
        cgroup=draw(st.none() | st.binary(max_size=60)),
        state=draw(st.sampled_from("RSDZTtXI?")),
        is_kernel_thread=draw(st.booleans()),
        lineage=draw(st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple)),
    )


@st.composite
def configs(draw: st.DrawFn) -> AgentConfig:
    return AgentConfig(
        match_commands=tuple(draw(st.lists(PATTERNS, max_size=4, unique=True))),
        match_argv_substrings=tuple(draw(st.lists(PATTERNS, max_size=4, unique=True))),
        scope=draw(st.sampled_from(Scope)),
        ignore_case=draw(st.booleans()),
    )


@given(config=configs(), process=processes(), announced=st.booleans())
def test_any_process_gives_an_answer(config: AgentConfig, process: ProcessFacts, announced: bool) -> None:
    found = Matcher(config).match(process, announced=announced)
    assert isinstance(found, Hit | Miss | Undecided)
    if isinstance(found, Hit):
        assert found.pattern in (*config.match_commands, *config.match_argv_substrings)
        assert not process.is_kernel_thread
    near = NearMisses(config).of(process)
    assert near is None or near.pattern in (*config.match_commands, *config.match_argv_substrings)


@given(program=PATTERNS.filter(lambda text: "/" not in text and "\\" not in text))
def test_every_program_is_hit_by_its_own_name(program: str) -> None:
    process = facts(program.encode()[:15], b"/usr/bin/" + program.encode(), [program])
    assert Matcher(AgentConfig(match_commands=(program,))).match(process) == Hit(program, Field.EXE)


@given(word=PATTERNS, around=st.sampled_from([b"a", b"Z", b"0", b"\xc3"]))
def test_a_word_inside_a_longer_one_is_no_word(word: str, around: bytes) -> None:
    name = around + word.encode().replace(b"/", b"_").replace(b"\\", b"_") + around
    words = Matcher(AgentConfig(match_commands=(word,)))
    if word.encode() not in name[1:-1] or not word.isalnum() or not word.isascii():
        return
    assert words.match(facts(name[:15], b"/usr/bin/" + name, [name])) == MISS


@given(text=st.binary(max_size=200), where=st.integers(0, 200))
def test_a_pod_is_found_in_any_text_around_its_component(text: bytes, where: int) -> None:
    component = b"/kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice/"
    assert is_pod_cgroup(text[:where] + component + text[where:])


@given(name=st.binary(max_size=12), version=st.from_regex(rb"[0-9.]{0,6}", fullmatch=True))
def test_an_interpreter_is_known_by_its_name_with_or_without_a_version(name: bytes, version: bytes) -> None:
    assert interpreter(b"python" + version) == b"python"
    assert interpreter(name) in INTERPRETERS or interpreter(name) == name


# configuration

KEYS = st.sampled_from(
    [
        "match_commands",
        "match_argv_substrings",
        "poll_interval_ms",
        "scope",
        "ignore_case",
        '"match_commands"',
        "x",
        "a.b",
    ]
)
VALUES = st.recursive(
    st.sampled_from(
        [
            "1",
            "-1",
            "1.5",
            "true",
            '"host"',
            "'all'",
            '"""a\n"b"""',
            "'''\n'''",
            "1979-05-27",
            "inf",
            '""',
            '"\\u0000"',
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda values: "[" + ",\n # ]\n".join(values) + "]")
        | inner.map(lambda value: f"{{a = {value}, b = 1}}".replace("\n", " "))
    ),
    max_leaves=6,
)
TOML = st.lists(
    st.tuples(KEYS, VALUES).map(" = ".join) | st.sampled_from(["[x]", "[[x.y]]", "# [", ""]), max_size=6
)


FILES = TOML.map("\n".join).map(str.encode)


def refusal_of(data: bytes) -> InvalidConfig | None:
    try:
        found = parse(data)
    except InvalidConfig as refused:
        return refused
    assert all(len(each.encode()) <= MAX_PATTERN_BYTES for each in found.match_commands)
    return None


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")) | FILES
)
def test_any_file_is_read_or_refused_with_a_remedy(data: bytes) -> None:
    refused = refusal_of(data)
    assert refused is None or (refused.remedy and 0 <= refused.line <= data.count(b"\n") + 1 and str(refused))


@given(FILES)
def test_a_refusal_of_sound_toml_names_the_line_of_its_key(data: bytes) -> None:
    try:
        tomllib.loads(data.decode())
    except ValueError:
        return
    refused = refusal_of(data)
    if refused is not None:
        key = refused.field.partition("[")[0]
        assert refused.line > 0
        assert any(key in line for line in data.decode().split("\n")[: refused.line])
