"""Open files for reading, with errors that name the file and the reason."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dcgst.errors import InputError
from dcgst.memory import available_memory, check_memory, in_gib

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 22


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes.

    Raises:
        InputError: if the file cannot be read. The message names the file and the reason.
    """
    try:
        _check_kind(path)
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; a file is required") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if "null byte" in str(error):
            raise InputError(f"{str(path)!r} is not a file name: {error}") from error
        raise


def read_bytes(path: Path, memory_factor: float = 2.0) -> bytes:
    """Return the content of a file; compressed files (gzip, zstd) are decompressed.

    Args:
        path: the file.
        memory_factor: memory that the content needs once it is parsed, as a multiple of its size.

    Raises:
        InputError: as in :func:`open_file`, or if the memory does not suffice.
    """
    most = available_memory() / memory_factor
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        check_memory(
            size * memory_factor, f"{path} needs", "use a machine with more memory, or fewer rows"
        )
        content = _read_at_most(path, file, most)
    if content.startswith(ZSTD):
        return _from_zstd(path, content, most)
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as compressed:
            return _read_at_most(path, compressed, most)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} is not a valid gzip file: {error}") from error


def _from_zstd(path: Path, content: bytes, most: float) -> bytes:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(f"reading {path} requires pyarrow: pip install 'dcgst[io]'") from error
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            return _read_at_most(path, stream, most)
    except OSError as error:
        raise InputError(f"{path} is not a valid zstd file: {error}") from error


def _check_kind(path: Path) -> None:
    """Raise for devices, and for named pipes, which may wait forever for a writer."""
    mode = os.stat(path).st_mode
    from_shell = str(path) == "/dev/stdin" or any(
        path.is_relative_to(folder) for folder in ("/dev/fd", "/proc/self/fd")
    )
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and from_shell):
        return
    kind = "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    raise InputError(f"{path} is {kind}; a regular file is required")


def _read_at_most(path: Path, file: Any, most: float) -> bytes:
    blocks, total = [], 0
    while block := file.read(_BLOCK):
        blocks.append(block)
        total += len(block)
        if total > most:
            raise InputError(
                f"{path} has more than {in_gib(total)} of content, too much for the available "
                "memory; use a machine with more memory, or fewer rows"
            )
    return b"".join(blocks)
