"""The one error type that users are meant to see."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and the remedy."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not among the known ones."""
    return InputError(f"unknown {kind} {name!r}; choose one of: {', '.join(sorted(known))}")
