"""Files of a run folder, and the life of the folder: created, resumed, replaced, removed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError, WriteError
from dcgst.files import TEMPORARY, write_text
from dcgst.graph import Graph
from dcgst.io.files import open_file, read_bytes
from dcgst.io.input import StoreReference
from dcgst.memory import in_gib
from dcgst.methods import Result
from dcgst.splits import Split
from dcgst.version import VERSION

FORMAT = 3
RUN, BEGUN, CHECKPOINT, LOCK = "run.json", "begun.json", "checkpoint", ".lock"
PREDICTIONS, HISTORY, CANDIDATE_TABLE = "predictions.csv", "history.csv", "candidates.csv.gz"
ARRAYS, MODELS, NODE_TABLE = "graph.npz", "model.safetensors", "nodes.csv.gz"
PREDICTORS = "predictors.safetensors"
METRICS, REPORT = "metrics.json", "report.html"
PREDICTIONS_PARQUET, PROBABILITIES = "predictions.parquet", "probabilities.npy"
"""Files of a run whose graph is in a store."""

OF_TABLES = (PREDICTIONS, NODE_TABLE)
OF_STORE = (PREDICTIONS_PARQUET, PROBABILITIES)
ALWAYS = (CANDIDATE_TABLE, HISTORY, MODELS, PREDICTORS, ARRAYS, METRICS)

FILES = (RUN, *OF_TABLES, *OF_STORE, *ALWAYS, REPORT, BEGUN)
"""All files; ``begun.json`` is removed last, because it marks the folder as a run folder."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a run folder.

    Attributes:
        info: content of ``run.json``; its entry ``store`` says whether the graph is in a store.
        graph: the graph.
        split: training, validation and pool nodes.
        result: the result of the fit.
        table: columns of the node table; read separately, by :func:`read_node_table`.
        store: where the graph is; None if it is in the folder.
    """

    info: dict[str, Any]
    graph: Graph
    split: Split
    result: Result
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)
    store: StoreReference | None = None


def identity(
    graph: Graph,
    split: Split,
    method: str,
    settings: Mapping[str, Any],
    store: StoreReference | None = None,
) -> dict[str, Any]:
    """What must be equal for a fit to be resumed: format, version, and a fingerprint.

    The fingerprint depends on graph, split, method and settings, but not on where it is computed.
    """
    digest = hashlib.sha256()
    arrays: list[Any] = [split.train, split.val, graph.labels, np.array(graph.class_names)]
    arrays.append(np.array(graph.columns_weighted))
    if store is not None:
        digest.update(store.digest.encode())
    else:
        features, adjacency = graph.features, graph.adjacency
        arrays += [adjacency.indptr, adjacency.indices, adjacency.data, graph.ids.astype("U")]
        arrays += [features.shape]
        if sp.issparse(features):
            arrays += [features.data, features.indices, features.indptr]
        else:
            arrays += [features]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    relevant = {k: v for k, v in settings.items() if k not in ("device", "chunk_size")}
    digest.update(json.dumps([method, relevant], sort_keys=True).encode())
    return {"format": FORMAT, "dcgst": VERSION, "fingerprint": digest.hexdigest()[:16]}


def digest_of(content: bytes) -> str:
    """SHA-256 digest of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path) -> str:
    """SHA-256 digest of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def seal(info: Mapping[str, Any]) -> dict[str, Any]:
    """``run.json`` with the digest of its own content."""
    content = {key: value for key, value in info.items() if key != "digest"}
    return {**content, "digest": digest_of(json.dumps(content, sort_keys=True).encode())}


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder and keep other processes from writing to it at the same time."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        existed = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        _check_own(folder)
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"another process is fitting into {folder}; wait for it, or choose another folder"
        ) from error
    except InputError:
        raise
    except NotImplementedError:
        pass  # a network file system without locks
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise WriteError(f"{folder} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise WriteError(f"{str(folder)!r} is not a folder name: {error}") from error
    try:
        yield
    finally:
        # Removed while it is held, so that no other process can hold it. Windows refuses that; the
        # file then stays, which does no harm.
        with contextlib.suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
        lock.release()
        if not existed:
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()


def _check_own(folder: Path) -> list[str]:
    """The names of the files in the folder; raises if there are files of another origin."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix != TEMPORARY)
    names = [name for name in names if name != LOCK]
    if names and BEGUN not in names:
        raise InputError(f"{folder} contains other files ({names[0]}); choose another folder")
    return names


def prepare(folder: Path, identity: Mapping[str, Any], *, resume: bool, overwrite: bool) -> bool:
    """Prepare a locked folder, or check what an earlier fit left in it.

    Returns:
        whether the folder already holds the complete run.
    """
    try:
        names = _check_own(folder)
        begun = BEGUN in names
        if begun and overwrite:
            remove(folder)
        elif begun and not resume:
            what = "a run" if RUN in names else "an interrupted run"
            raise InputError(
                f"{folder} already contains {what}; use --resume to continue it, --overwrite to "
                "replace it, or another folder"
            )
        elif begun:
            if read_json(folder / BEGUN) != identity:
                raise InputError(
                    f"{folder} was started with another graph, other labels or settings, or by "
                    "another version; use --overwrite to replace it"
                )
            _remove_temporary(folder)
            if RUN in names:
                shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
            return RUN in names
        _remove_temporary(folder)
        write_text(folder / BEGUN, json.dumps(identity))
    except OSError as error:
        raise WriteError(f"{folder} cannot be written: {error.strerror or error}") from error
    return False


def stored_steps(folder: Path) -> str:
    """What an interrupted fit left in a folder, for the user; empty if there is nothing."""
    files = [path for path in (folder / CHECKPOINT).rglob("*") if path.is_file()]
    steps = sum(path.suffix == ".step" for path in files)
    matrices = [path for path in files if path.suffix == ".f32"]
    size = sum(path.stat().st_size for path in matrices)
    parts = [f"{steps} trained or selected steps"] if steps else []
    parts += [f"{len(matrices)} blocks of propagated features ({in_gib(size)})"] if matrices else []
    return " and ".join(parts)


def remove(folder: Path) -> None:
    """Remove the files of a run; other files stay."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    _remove_temporary(folder)
    for name in FILES:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)


def _remove_temporary(folder: Path) -> None:
    """Remove temporary files that a killed process left behind."""
    for path in folder.rglob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises if the file is damaged."""
    try:
        found = json.loads(read_bytes(path), parse_constant=_refuse_constant)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged (not a JSON object); fit again with --overwrite")
    return found
