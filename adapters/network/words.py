"""What may stand in a header or a URL as it is."""


def is_one_word(text: str) -> bool:
    """Whether a text is printable ASCII without a blank; an empty one is."""
    return text.isascii() and text.isprintable() and " " not in text
