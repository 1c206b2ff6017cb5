"""The configuration file, read with errors that name it."""

from pathlib import Path

from fivespot.core.agent.config import MAX_BYTES, AgentConfig, InvalidConfig, parse
from fivespot.core.errors import FivespotError


class UnusableConfig(FivespotError):  # noqa: N818 - it states a fact about the file
    """The configuration file is not there, cannot be read, or is refused; the message names it and says what to do."""


def load(path: str) -> AgentConfig:
    """Read the agent's configuration.

    Raises:
        UnusableConfig: with the path, the line and the remedy.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        message = (
            f"there is no configuration at {path}; write one there, such as\n"
            f'  match_commands = ["java", "steam"]\n'
            f"or name another with --config"
        )
        raise UnusableConfig(message) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UnusableConfig(f"{path} cannot be read: {why}; check the path and its permissions") from None
    try:
        return parse(data)
    except InvalidConfig as error:
        raise UnusableConfig(f"{path}, {error}" if error.line else f"{path}: {error}") from None
