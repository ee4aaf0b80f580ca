"""Text from users and files, made safe for a terminal."""

from __future__ import annotations

import re
import unicodedata

_KEPT = "\n\t\u200c\u200d"  # the last two join letters in Persian, Hindi and emoji
_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories: control and format characters, surrogates, private use, separators."""


_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>[^\s\"'`<>|]*)", re.IGNORECASE)
_SECRETS = re.compile(
    r"([a-z_]*(?:password|passwd|pwd|secret|passfile|token)=)[^&\s\"']*", re.IGNORECASE
)
_PAGES = ("http", "https", "file")
"""Addresses without passwords: the address of the label page has a token that its user needs."""


def without_passwords(text: str) -> str:
    """A text in which addresses of databases have no passwords.

    Example:
        >>> without_passwords("cannot read postgresql://ann:secret@db.example/bank: timeout")
        'cannot read postgresql://ann@db.example/bank: timeout'
        >>> without_passwords("MySQL+driver://ann:s@cr:e/t@db/bank?sslmode=require&password=x")
        'MySQL+driver://ann@db/bank?sslmode=require&password='
        >>> without_passwords("http://127.0.0.1:8000/?token=abc")
        'http://127.0.0.1:8000/?token=abc'
    """
    if "://" not in text:
        return text

    def redact(found: re.Match[str]) -> str:
        if found["scheme"].lower() in _PAGES:
            return found[0]
        # A password may contain any of :/?#@ unescaped, so the host follows the last @.
        login, at, rest = found["rest"].rpartition("@")
        user = login.partition(":")[0].partition("?")[0]
        return f"{found['scheme']}://{user}{at}" + _SECRETS.sub(r"\1", rest)

    return _ADDRESS.sub(redact, text)


def printable(text: str) -> str:
    r"""Replace characters that could control the terminal, and remove passwords from addresses.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    text = without_passwords(text)
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _KEPT or unicodedata.category(character) not in _UNSAFE
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
