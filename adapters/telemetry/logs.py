"""How log lines look: text for a person at a terminal, one JSON object a line for everything else.

The modules log as libraries do, with the standard library, a sentence and fields (`extra`). This is the one place that
decides what becomes of it. Nothing secret gets out: what looks like a token or a key is struck out, and what is as long
as an object is cut short, whoever logged it.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO, TypeAlias

import structlog

Format: TypeAlias = Literal["auto", "text", "json"]
LONGEST: Final = 4000
"""Characters of one value; a status message of ours is far below, an object of anybody's above."""
STRUCK: Final = "[struck out]"

# A JWT, a PEM block (its line ends may be escaped), an Authorization header, and base64 that is longer than any name.
_SECRET: Final = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)"
    r"|(?<=[Bb]earer )[\w.~+/=-]{8,}"
    r"|(?<=[Bb]asic )[\w+/=]{8,}"
    r"|[A-Za-z0-9+/]{200,}={0,2}",
    re.DOTALL,
)


def configure(level: str, form: Format, stream: TextIO | None = None) -> None:
    """Send every log record to `stream`, standard error by default; may be called again.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        form: `auto` is text on a terminal.
        stream: where to.
    """
    to = stream or sys.stderr
    terminal = to.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if form == "text" or (form == "auto" and terminal):
        rendering: list[structlog.typing.Processor] = [
            _careful,
            structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=structlog.dev.plain_traceback),
        ]
    else:
        rendering = [
            structlog.processors.format_exc_info,
            _careful,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ]
    handler = logging.StreamHandler(to)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # A line for each request is what a debugger of the transport wants, and nobody else.
    for name in ("httpx", "httpcore", "aiohttp.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def careful(text: str) -> str:
    """Without what looks like a secret, and no longer than LONGEST."""
    clean = _SECRET.sub(STRUCK, text)
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}... ({len(clean)} characters)"


def _careful(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: careful(value) if isinstance(value, str) else value for name, value in event.items()}
