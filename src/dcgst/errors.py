"""Error types. The command line shows their messages without a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_names: Callable[[str], str] | None = None


@contextmanager
def options_named_by(names: Callable[[str], str]) -> Iterator[None]:
    """Name options in messages as another program does; the command line uses this."""
    global _names
    before, _names = _names, names
    try:
        yield
    finally:
        _names = before


def as_flag(name: str) -> str:
    """An argument of Python as an option of the command line.

    Example:
        >>> as_flag("drop_unknown"), as_flag("kinds")
        ('--drop-unknown', '--kind')
    """
    return "--kind" if name == "kinds" else f"--{name.replace('_', '-')}"


def option(name: str, value: str | bool | None = None) -> str:
    """An option as the user gives it, for messages: in Python, an argument.

    Example:
        >>> option("overwrite", True), option("edge_type", "none"), option("label")
        ('overwrite=True', "edge_type='none'", 'label')
    """
    if _names is None:
        return name if value is None else f"{name}={value!r}"
    return _names(name) if value is None or value is True else f"{_names(name)} {value}"


class InputError(ValueError):
    """Invalid input. The message says what was given, what is allowed and how to fix it.

    Example:
        >>> from dcgst import InputError, load
        >>> try:
        ...     load("coora")
        ... except InputError as error:
        ...     print(str(error).split(";")[0])
        unknown dataset 'coora'
    """


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
