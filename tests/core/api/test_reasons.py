"""The words of conditions and Events."""

from fivespot.core.api import reasons


def test_every_word_says_what_it_means() -> None:
    words = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert words == set(reasons.CONDITION_TYPES) | set(reasons.REASONS) | set(reasons.PROVIDER_REASONS)


def test_words_are_such_as_kubernetes_takes() -> None:
    words = (*reasons.CONDITION_TYPES, *reasons.REASONS, *reasons.PROVIDER_REASONS)
    assert all(word.isalnum() and word[0].isupper() for word in words)
