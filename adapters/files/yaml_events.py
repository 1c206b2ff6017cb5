"""The YAML parser for an interpreter whose PyYAML was built without libyaml, corrected to agree with libyaml.

kubectl's library is a port of libyaml, PyYAML's parser in Python is not: it reads some tabs and colons differently.
The corrections make both give the same events or refuse; this one is ten times slower. What events mean is the
business of `yaml.py`.
"""

from typing import Protocol

from yaml.error import Mark
from yaml.events import Event
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import ScalarToken


class Events(Protocol):
    """What tells the events of one stream, one at a time; both of PyYAML's parsers do."""

    def get_event(self) -> Event | None: ...  # noqa: D102


class PureEvents(Reader, Scanner, Parser):
    """The events of a text; YAMLError where it is not YAML."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip tabs, too, wherever they cannot be taken for indentation."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def scan_block_scalar_indentation(self) -> tuple[list[str], int, Mark]:
        """Refuse a tab before the first letter of a block, where it would become part of the text."""
        found: tuple[list[str], int, Mark] = super().scan_block_scalar_indentation()
        if self.peek() == "\t":
            problem = "found a tab character where an indentation space is expected"
            raise ScannerError("while scanning a block scalar", found[2], problem, self.get_mark())
        return found

    def scan_plain(self) -> ScalarToken:
        """Refuse `[a:]`: to PyYAML a mapping, to kubectl the string `a:`, to libyaml an error, which is best."""
        token: ScalarToken = super().scan_plain()
        if self.flow_level and self.peek() == ":" and self.peek(1) in ",[]{}?":
            raise ScannerError(
                "while scanning a plain scalar", token.start_mark, "found unexpected ':'", self.get_mark()
            )
        return token
