"""Text from users and files, made safe for a terminal."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t\u200c\u200d"  # the last two join letters in Persian, Hindi and emoji
_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories: control and format characters, surrogates, private use, separators."""


def printable(text: str) -> str:
    r"""Replace characters that could control the terminal by their escape sequences.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _KEPT or unicodedata.category(character) not in _UNSAFE
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
