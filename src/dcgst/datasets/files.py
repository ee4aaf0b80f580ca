"""Finding the files of a data set: the user's folder, the cache, else the original source."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from dcgst.errors import InputError

TIMEOUT_S = 30


@dataclass(frozen=True)
class Source:
    """A folder of files with one origin.

    Attributes:
        folder: the folder's name below the data folder.
        origin: where the files come from, for people.
        url: prefix of their addresses; ``None`` if they cannot be fetched automatically.
        remedy: what a user without them should do.
    """

    folder: str
    origin: str
    url: str | None = None
    remedy: str = ""

    def checksum(self, name: str) -> str | None:
        """The SHA-256 of the original file, if known: only such files are downloaded."""
        listing = files("dcgst.datasets") / f"{self.folder}.sha256"
        if not listing.is_file():
            return None
        pairs = (line.split() for line in listing.read_text().splitlines())
        return next((digest for digest, file in pairs if file == name), None)


def data_folders() -> list[Path]:
    """Where files are looked for, in order: ``$DCGST_DATA``, then the cache."""
    own = os.environ.get("DCGST_DATA")
    return [*([Path(own).expanduser()] if own else []), cache_folder()]


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "dcgst"


def find(source: Source, name: str) -> Path | None:
    """The file if it is on this machine, else ``None``."""
    places = (folder / source.folder / name for folder in data_folders())
    return next((path for path in places if path.is_file()), None)


def locate(source: Source, name: str) -> Path:
    """The file, downloaded into the cache if need be; the error says which file to put where."""
    path = find(source, name)
    if path is not None:
        return path
    digest = source.checksum(name)
    places = " or ".join(str(folder / source.folder / name) for folder in data_folders())
    remedy = source.remedy or f"fetch it from {source.origin}"
    if source.url is None or digest is None:
        raise InputError(f"{source.folder}/{name} is not here; {remedy} and put it at {places}")
    url = f"{source.url}/{name}"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            content: bytes = response.read()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise InputError(
            f"{source.folder}/{name} is not here and {url} cannot be reached ({error}); put the "
            f"file at {places}, or set DCGST_DATA to a folder that holds {source.folder}/{name}"
        ) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{url} is not the expected file (its SHA-256 differs); nothing was kept")
    return write_atomically(cache_folder() / source.folder / name, content)


def write_atomically(path: Path, content: bytes) -> Path:
    """Write the whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
