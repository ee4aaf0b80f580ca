"""From a graph to a run folder, with a way back after interruptions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dcgst.engine.training import Callback
from dcgst.errors import InputError
from dcgst.evaluate.calibration import calibrate
from dcgst.graph import UNKNOWN, Graph
from dcgst.io import Input, read
from dcgst.methods import METHODS, Method
from dcgst.runs.checks import check_graph, check_memory, set_aside
from dcgst.runs.files import write_text
from dcgst.runs.run import FORMAT, Run, open_run, read_json
from dcgst.runs.writing import describe, empty, write_run
from dcgst.splits import Split
from dcgst.version import VERSION, versions

if TYPE_CHECKING:
    from torch_geometric.data import Data


REPLICAS = 5
"""Runs whose probabilities are averaged, unless the method says otherwise."""


def fit(
    source: Input | Graph | Data,
    folder: str | Path,
    model: Method | None = None,
    *,
    validate: float = 0.0,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Fit a method and leave what it finds in a folder.

    Args:
        source: what :func:`dcgst.read` gave, a :class:`Graph` or PyG ``Data``.
        folder: where to; it must not be there yet.
        model: the method; DC-GST with five replicas by default.
        validate: share of the given labels to set aside: the method does not train on them, but
            chooses and calibrates by them.
        resume: go on with a fit that was interrupted.
        overwrite: begin anew where there is a run already.
        callbacks: told of every epoch and stage.
    """
    if resume and overwrite:
        raise InputError("--resume goes on and --overwrite begins anew: choose one")
    found = read(source)
    model = model or METHODS["dcgst"](replicas=REPLICAS)
    graph = found.graph
    check_graph(graph)
    split = set_aside(graph, validate, model.seed)
    model.check(graph, split)
    check_memory(graph, model)
    folder = Path(folder)
    begun = {
        "format": FORMAT,
        "dcgst": VERSION,
        "fingerprint": fingerprint(graph, split, model),
    }
    if prepare(folder, begun, resume, overwrite):
        return open_run(folder)
    start = time.perf_counter()
    try:
        model.fit(graph, split, callbacks=callbacks, checkpoint=folder / "checkpoint")
    except InputError:  # it will not work the next time either: nothing is left behind
        empty(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise
    run = _found(found, model, folder)
    run.info.update(
        validate=validate,
        seconds=round(time.perf_counter() - start, 1),
        fingerprint=begun["fingerprint"],
    )
    write_run(run, model)
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return run


def _found(source: Input, model: Method, folder: Path) -> Run:
    """What a fitted method found, with honest probabilities."""
    graph, split = model.graph_, model.split_
    val_labels = np.where(split.val[0], graph.labels, UNKNOWN)
    calibration = calibrate(model.proba_, val_labels, model.usual_temperature)
    if calibration.nodes and "train" not in graph.masks:
        words = f"{calibration.words}, which are as biased as the labels that they were taken from"
        calibration = replace(calibration, words=words)
    info = {
        "format": FORMAT,
        "name": graph.name,
        "dcgst": VERSION,
        "versions": versions(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "method": model.name,
        "settings": model.get_params(),
        "calibration": asdict(calibration),
        "columns": asdict(source.columns),
        "recipe": source.recipe.to_json() if source.recipe else None,
        "spectral": source.spectral,
        "notes": list(source.notes),
        "stop_reason": model.stop_reason_,
        "models": [describe(m) for m in model.models_],
    }
    return Run(
        folder,
        info,
        graph,
        split,
        calibration.apply(model.proba_),
        model.labels_,
        model.labeled_stage_,
        model.agreement_,
        model.history_,
    )


def prepare(folder: Path, begun: Mapping[str, Any], resume: bool, overwrite: bool) -> bool:
    """Make the folder, or find what an earlier fit left there; whether that one is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir() if path.suffix != ".part")
        ours = "begun.json" in there
        if there and not ours:
            raise InputError(f"{folder} holds other files ({there[0]}); choose another folder")
        if ours and overwrite:
            empty(folder)
        elif ours and not resume:
            done = "a run" if "run.json" in there else "an interrupted run"
            raise InputError(
                f"{folder} holds {done} already; --resume goes on, --overwrite begins anew, or "
                "choose another folder"
            )
        elif ours:
            kept = read_json(folder / "begun.json")
            if kept != begun:
                raise InputError(
                    f"{folder} was begun with another graph, labels or settings, or by another "
                    "version; --overwrite begins anew"
                )
            return "run.json" in there
        write_text(folder / "begun.json", json.dumps(begun))
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error
    return False


def fingerprint(graph: Graph, split: Split, model: Method) -> str:
    """Different for any other graph, labels or settings."""
    digest = hashlib.sha256()
    features = graph.features
    stored: tuple[Any, ...] = (features, features.shape)
    if sp.issparse(features):
        stored = (features.data, features.indices, features.indptr, features.shape)
    adjacency = graph.adjacency
    arrays = (adjacency.indptr, adjacency.indices, adjacency.data, *stored, split.train, split.val)
    names = np.array(graph.class_names)
    for array in (*arrays, graph.labels, graph.ids.astype("U"), names):
        digest.update(np.ascontiguousarray(array).tobytes())
    settings = {k: v for k, v in model.get_params().items() if k not in ("device", "chunk")}
    digest.update(json.dumps([model.name, settings], sort_keys=True).encode())
    return digest.hexdigest()[:16]
