"""Datasets of the registry, and their files: given, cached, or downloaded."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.registry import Registry


@dataclass(frozen=True)
class Dataset:
    """A dataset: its name and how to load it.

    Attributes:
        name: its name.
        load: returns the graph.
        available: whether the files are on this machine.
        origin: where the data come from.
        nodes: number of nodes, if known; likewise ``edges``, ``features`` and ``classes``.

    Example:
        >>> from dcgst.datasets import DATASETS
        >>> DATASETS["digits"].nodes, DATASETS["digits"].available()
        (1797, True)
    """

    name: str
    load: Callable[[], Graph]
    available: Callable[[], bool] = lambda: True
    origin: str = ""
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None


def _check_dataset(item: Any) -> None:
    if not isinstance(item, Dataset):
        raise InputError(f"expected a dcgst.datasets.Dataset, got {item!r}")


DATASETS: Registry[Dataset] = Registry("dataset", "dcgst.datasets", _check_dataset)


TIMEOUT = 30
"""Seconds to wait for a server."""


@dataclass(frozen=True)
class Source:
    """A folder of files with one origin.

    Attributes:
        folder: name of the folder below the data folder.
        origin: where the files come from.
        url: prefix of their addresses; ``None`` if they cannot be downloaded automatically.
        remedy: how a user can get them.
    """

    folder: str
    origin: str
    url: str | None = None
    remedy: str = ""

    def checksum(self, name: str) -> str | None:
        """SHA-256 of the original file, if known. Only such files are downloaded."""
        listing = files("dcgst.datasets") / f"{self.folder}.sha256"
        if not listing.is_file():
            return None
        pairs = (line.split() for line in listing.read_text(encoding="utf-8").splitlines())
        return next((digest for digest, file in pairs if file == name), None)


def data_folders() -> list[Path]:
    """Folders to search, in order: ``$DCGST_DATA``, then the cache."""
    own = os.environ.get("DCGST_DATA")
    return [*([Path(own).expanduser()] if own else []), cache_folder()]


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/dcgst``, by default ``~/.cache/dcgst``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "dcgst"


def find(source: Source, name: str) -> Path | None:
    """The file, or ``None`` if it is not on this machine."""
    paths = (folder / source.folder / name for folder in data_folders())
    return next((path for path in paths if path.is_file()), None)


def locate(source: Source, name: str) -> Path:
    """The file, downloaded into the cache if needed; raises with advice if that is impossible."""
    path, digest = find(source, name), source.checksum(name)
    if path is not None:
        if digest is not None and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            warnings.warn(
                f"{path} is not the published file (its SHA-256 differs); results are not "
                "comparable with published ones",
                stacklevel=2,
            )
        return path
    paths = " or ".join(str(folder / source.folder / name) for folder in data_folders())
    if source.url is None or digest is None:
        remedy = source.remedy or f"get it from {source.origin}"
        raise InputError(f"{source.folder}/{name} is missing; {remedy} and put it at {paths}")
    return _download(source, name, digest, paths)


def _download(source: Source, name: str, digest: str, paths: str) -> Path:
    import pooch

    url = f"{source.url}/{name}"
    try:
        return Path(
            pooch.retrieve(
                url,
                known_hash=f"sha256:{digest}",
                fname=name,
                path=cache_folder() / source.folder,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
            )
        )
    except ValueError as error:
        raise InputError(
            f"{url} is not the expected file (its SHA-256 differs); nothing was stored"
        ) from error
    except OSError as error:
        raise InputError(
            f"{source.folder}/{name} is missing and {url} cannot be reached ({error}); put the "
            f"file at {paths}, or set DCGST_DATA to a folder that contains {source.folder}/{name}"
        ) from error
