"""Where the parts of a TOML file stand."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from fivespot.core.agent.toml_lines import lines, quoted

TEXT = """# [a]
commands = [ # ,
  "x, y ]", 'z',

  ["in", ["ner"],
   "list"], {a = 1, b = 2},
  5,
]
"quoted\\u0021" = \"\"\"
not = 1 \\\"\"\"
\"\"\"\"
dotted.key = 1
[table.below]
commands = 7
other = [
 1]
"""


def test_keys_and_entries_of_the_top_level_have_their_lines() -> None:
    tomllib.loads(TEXT)
    assert lines(TEXT) == {
        ("commands", None): 2,
        ("commands", 0): 3,
        ("commands", 1): 3,
        ("commands", 2): 5,
        ("commands", 3): 6,
        ("commands", 4): 7,
        ("quoted!", None): 9,
        ("dotted", None): 12,
        ("table", None): 13,
    }


@given(st.text(), st.text())
def test_a_quoted_text_reads_back_on_its_own_line(key: str, text: str) -> None:
    document = f"# one\n{quoted(key)} = [\n{quoted(text)},\n5]"
    assert tomllib.loads(document) == {key: [text, 5]}
    assert lines(document) == {(key, None): 2, (key, 0): 3, (key, 1): 4}
