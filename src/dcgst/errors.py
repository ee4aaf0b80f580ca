"""Error types. The command line shows their messages without a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Invalid input. The message says what was given, what is allowed and how to fix it."""


class UnregisteredError(InputError):
    """A file names code that is neither registered nor imported."""


class EmptyTableError(InputError):
    """A table has no rows."""


class UnknownNodeError(InputError):
    """An edge leads to a node that does not exist."""

    def __init__(self, message: str, node_id: str) -> None:
        super().__init__(message)
        self.node_id = node_id


class WriteError(InputError):
    """A file cannot be written, for example because the disk is full. Nothing that exists is lost:
    after the problem is fixed, the same command can be repeated or resumed.
    """


class NumericalError(ArithmeticError):
    """A computation failed although its input is valid; a second attempt may succeed."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among the known ones.

    Example:
        >>> print(unknown_name("method", "gnc", ["gcn", "em"]))
        unknown method 'gnc'; did you mean 'gcn'? Known names: em, gcn
    """
    names = sorted(known)
    similar = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {similar[0]!r}? Known names" if similar else "choose one of"
    return InputError(f"unknown {kind} {name!r}; {hint}: {', '.join(names)}")
