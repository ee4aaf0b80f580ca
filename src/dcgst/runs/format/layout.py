"""Files of a run folder, and the life of the folder: created, resumed, replaced, removed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.files import TEMPORARY, write_text
from dcgst.graph import Graph
from dcgst.methods import Result
from dcgst.splits import Split
from dcgst.version import VERSION

FORMAT = 2
RUN, BEGUN, CHECKPOINT = "run.json", "begun.json", "checkpoint"
PREDICTIONS, HISTORY, AUDIT_TABLE = "predictions.csv", "history.csv", "audit.csv.gz"
ARRAYS, MODELS, METRICS, REPORT = "graph.npz", "model.safetensors", "metrics.json", "report.html"
FILES = (RUN, PREDICTIONS, AUDIT_TABLE, HISTORY, MODELS, ARRAYS, METRICS, REPORT, BEGUN)
"""All files; ``begun.json`` is removed last, because it marks the folder as a run folder."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a run folder."""

    info: dict[str, Any]
    graph: Graph
    split: Split
    result: Result


def identity(
    graph: Graph, split: Split, method: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What must be equal for a fit to be resumed: format, version, and a fingerprint.

    The fingerprint depends on graph, split, method and settings, but not on where it is computed.
    """
    digest = hashlib.sha256()
    features, adjacency = graph.features, graph.adjacency
    stored: tuple[Any, ...] = (features, features.shape)
    if sp.issparse(features):
        stored = (features.data, features.indices, features.indptr, features.shape)
    arrays = (adjacency.indptr, adjacency.indices, adjacency.data, *stored, split.train, split.val)
    names = np.array(graph.class_names)
    for array in (*arrays, graph.labels, graph.ids.astype("U"), names):
        digest.update(np.ascontiguousarray(array).tobytes())
    relevant = {k: v for k, v in settings.items() if k not in ("device", "chunk_size")}
    digest.update(json.dumps([method, relevant], sort_keys=True).encode())
    return {"format": FORMAT, "dcgst": VERSION, "fingerprint": digest.hexdigest()[:16]}


def prepare(
    folder: Path, identity: Mapping[str, Any], *, resume: bool = False, overwrite: bool = False
) -> bool:
    """Create the folder, or check what an earlier fit left in it.

    Returns:
        whether the folder already holds the complete run.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in folder.iterdir() if path.suffix != TEMPORARY)
        begun = BEGUN in names
        if names and not begun:
            raise InputError(f"{folder} contains other files ({names[0]}); choose another folder")
        if begun and overwrite:
            remove(folder)
            folder.mkdir(parents=True, exist_ok=True)
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
            return RUN in names
        write_text(folder / BEGUN, json.dumps(identity))
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error
    return False


def remove(folder: Path) -> None:
    """Remove the files of a run, and the folder if nothing else is in it."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    for path in folder.glob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises if the file is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged (not a JSON object); fit again with --overwrite")
    return found
