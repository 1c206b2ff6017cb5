"""The `5spot` command."""


def main() -> None:
    """Entry point."""
