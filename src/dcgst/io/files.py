"""Open files for reading, with errors that name the file and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dcgst.errors import InputError


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes.

    Raises:
        InputError: if the file cannot be read. The message names the file and the reason.
    """
    try:
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; a file is required") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; errors as in :func:`open_file`."""
    with open_file(path) as file:
        return file.read()
