"""Files with the options of commands, in TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcgst.errors import InputError

INPUTS = "inputs"
"""Key of the arguments of a command, which have no names."""

OPTION = "--config"

MOST_BYTES = 1_000_000
"""Size of the largest file of options that is read."""


def expand(arguments: Sequence[str], verbs: Sequence[str]) -> list[str]:
    """Replace ``--config FILE`` after a command by the options in the file.

    Options on the command line replace those in the file.

    Args:
        arguments: of the command line, without the name of the program.
        verbs: the commands.
    """
    start = next((i for i, text in enumerate(arguments) if text in verbs), None)
    if start is None or arguments[start] == "config":
        return list(arguments)
    verb, rest = arguments[start], list(arguments[start + 1 :])
    for place, text in enumerate(rest):
        name, equals, path = text.partition("=")
        if name != OPTION:
            continue
        if not equals:
            if place + 1 == len(rest):
                raise InputError(f"{OPTION} needs a file")
            path = rest.pop(place + 1)
        del rest[place]
        if rest and not rest[0].startswith("-") and INPUTS in _content(Path(path), verb):
            raise InputError(
                f"{path} has {INPUTS} already; remove {rest[0]!r} from the command line, or "
                f"{INPUTS} from the file"
            )
        given = {word.partition("=")[0] for word in rest if word.startswith("--")}
        return [*arguments[: start + 1], *read_options(Path(path), verb, given), *rest]
    return list(arguments)


def read_options(path: Path, verb: str, replaced: Collection[str] = ()) -> list[str]:
    """The options of a command in a file, as on the command line.

    Args:
        path: TOML file; the options are in a table with the name of the command, or at the top.
        verb: the command.
        replaced: options to leave out.

    Raises:
        InputError: if the file cannot be read, or has no options of the command.
    """
    given = _content(path, verb)
    inputs = given.pop(INPUTS, [])
    words = [str(value) for value in (inputs if isinstance(inputs, list) else [inputs])]
    for key, value in given.items():
        option = _option(path, key, value)
        words += option if not option or option[0] not in replaced else []
    return words


def _content(path: Path, verb: str) -> dict[str, Any]:
    """The options of a command and those of all commands in a file."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes; is it a file of options?")
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the path") from error
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as TOML: {error}") from error
    top = {key: value for key, value in content.items() if not isinstance(value, dict)}
    own = content.get(verb, {})
    if not isinstance(own, dict):
        raise InputError(f"{path}: {verb} must be a table, [{verb}], got {type(own).__name__}")
    given = {**top, **own}
    if not given:
        raise InputError(f"{path} has no options of {verb}; add a table [{verb}]")
    return given


def _option(path: Path, key: str, value: Any) -> list[str]:
    flag = f"--{key.replace('_', '-')}"
    if isinstance(value, dict):
        raise InputError(f"{path}: {key} must be a value, got a table")
    if isinstance(value, bool):
        return [flag] if value else []
    values = value if isinstance(value, list) else [value]
    return [word for item in values for word in (flag, str(item))]


def options_of(context: Any) -> dict[str, Any]:
    """What the user gave on the command line, by the names of a file.

    Args:
        context: of a parsed command.
    """
    found: dict[str, Any] = {}
    inputs = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params.get(parameter.name)
        if parameter.param_type_name == "argument":
            inputs += [str(item) for item in (value if isinstance(value, list) else [value])]
        elif value is False and parameter.secondary_opts:  # such as --no-report
            found[max(parameter.secondary_opts, key=len).lstrip("-")] = True
        elif value is not None:
            found[max(parameter.opts, key=len).lstrip("-")] = _plain(value)
    return {INPUTS: inputs, **found} if inputs else found


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float)) else str(value)


def to_toml(verb: str, options: Mapping[str, Any]) -> str:
    """A table of options.

    Example:
        >>> print(to_toml("fit", {"inputs": ["n.csv"], "label": "topic", "seed": 3}), end="")
        [fit]
        inputs = ["n.csv"]
        label = "topic"
        seed = 3
    """
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    return "\n".join([f"[{verb}]", *lines]) + "\n"
