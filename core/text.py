"""Words for people: what strangers write, made fit to be shown, and how many there are of something."""


def one_line(said: str, most: int | None = None) -> str:
    """A text on one line, without what cannot be printed.

    Args:
        said: the text; line ends of every kind become blanks.
        most: characters; what is longer is cut, and ends in dots. None for any number.
    """
    # Nobody has to look through a megabyte for what is cut anyway.
    few = said if most is None else said[: 2 * most]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in few).split())
    return line if most is None or len(line) <= most else f"{line[: most - 3]}..."


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 machine`, `2 machines`; `many` where that is not `one` with an s."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"
