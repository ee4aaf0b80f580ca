"""A run folder as it is written; see docs/run-folder.md."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.torch import save

from dcgst.errors import InputError
from dcgst.evaluate.calibration import expected_calibration_error
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods import Method
from dcgst.methods.stages import AUDIT
from dcgst.nn.base import Backbone
from dcgst.runs.files import write_bytes, write_rows, write_text
from dcgst.runs.predictions import GIVEN_LABEL, PREDICTED, PSEUDO_LABEL, sources_of
from dcgst.runs.run import Run

FILES = (
    "run.json",
    "predictions.csv",
    "audit.csv.gz",
    "history.csv",
    "model.safetensors",
    "graph.npz",
    "metrics.json",
    "report.html",
    "begun.json",  # the last to go: it says that the folder is ours
)


def write_run(run: Run, model: Method) -> None:
    """Everything, ``run.json`` last: where it is, the others are."""
    folder = run.folder
    try:
        write_rows(folder / "predictions.csv", run.predictions)
        write_rows(folder / "history.csv", run.history)
        write_bytes(folder / "audit.csv.gz", _audit_bytes(model.audit_, run.graph))
        if model.models_:
            tensors = {
                f"{place}.{name}": tensor.detach().cpu().contiguous()
                for place, network in enumerate(model.models_)
                for name, tensor in network.state_dict().items()
            }
            write_bytes(folder / "model.safetensors", save(tensors))
        write_bytes(folder / "graph.npz", _graph_bytes(run))
        write_text(folder / "metrics.json", json.dumps(metrics(run), indent=1) + "\n")
        write_text(folder / "run.json", json.dumps(run.info, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error


def metrics(run: Run) -> dict[str, Any]:
    """The run in figures; accuracy and ECE where classes are known that did not train."""
    own = run.split.train[0] | run.split.val[0]
    sources = sources_of(own, run.stage).tolist()
    final = list({record["replica"]: record for record in run.history}.values())
    figures: dict[str, Any] = {
        "nodes": run.graph.num_nodes,
        "edges": run.graph.num_edges,
        "classes": run.graph.num_classes,
        **{source: sources.count(source) for source in (GIVEN_LABEL, PSEUDO_LABEL, PREDICTED)},
        "mean_probability": _mean(run.proba.max(axis=1)[~own]),
        "mean_agreement": _mean(run.agreement[~own]),
        "shift_of_given": round(float(np.mean([r.get("cmd_before", r["cmd"]) for r in final])), 4),
        "shift_in_the_end": round(float(np.mean([r["cmd"] for r in final])), 4),
    }
    known = checkable(run)
    if known.any():
        proba, truth = run.proba[known], run.graph.labels[known]
        figures["checked_on"] = int(known.sum())
        figures["checked_on_validation"] = bool(run.split.val[0][known].any())
        figures["accuracy"] = round(float((proba.argmax(axis=1) == truth).mean()), 4)
        figures["ece"] = round(expected_calibration_error(proba, truth), 4)
    return figures


def checkable(run: Run) -> NDArray[np.bool_]:
    """Nodes whose class is known and that had no part in the fit; else those that validated."""
    known = run.graph.labels != UNKNOWN
    untouched: NDArray[np.bool_] = known & run.split.pool[0]
    return untouched if untouched.any() else known & run.split.val[0]


def _mean(values: NDArray[np.float32]) -> float | None:
    return round(float(values.mean()), 4) if values.size else None


def _audit_bytes(audit: NDArray[np.void], graph: Graph) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = [name for name in AUDIT.names or () if name != "truth"]
    writer.writerow(names)
    columns = []
    for name in names:
        if name == "node":
            columns.append(graph.ids[audit["node"]].tolist())
        elif name == "label":
            columns.append([graph.class_names[code] for code in audit["label"]])
        elif audit[name].dtype == np.float32:
            columns.append(["" if np.isnan(v) else f"{v:.6g}" for v in audit[name]])
        else:
            columns.append(audit[name].tolist())
    writer.writerows(zip(*columns, strict=True))
    return gzip.compress(buffer.getvalue().encode(), mtime=0)


def _graph_bytes(run: Run) -> bytes:
    graph = run.graph
    features = sp.csr_array(graph.features)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        adjacency_data=graph.adjacency.data,
        adjacency_indices=graph.adjacency.indices,
        adjacency_indptr=graph.adjacency.indptr,
        features_data=features.data,
        features_indices=features.indices,
        features_indptr=features.indptr,
        features_shape=np.array(features.shape),
        features_dense=np.array(not sp.issparse(graph.features)),
        labels=graph.labels,
        ids=graph.ids.astype("U") if graph.ids.dtype == object else graph.ids,
        class_names=np.array(graph.class_names, dtype="U"),
        train=run.split.train[0],
        val=run.split.val[0],
        pool=run.split.pool[0],
        proba=run.proba,
        found=run.labels,
        stage=run.stage,
        agreement=run.agreement,
    )
    return buffer.getvalue()


def describe(network: Backbone) -> dict[str, Any]:
    """What it takes to build a network again."""
    activation = network.activation.__name__
    return {
        "backbone": type(network).__name__.lower(),
        "replicas": network.replicas,
        "features": network.num_features,
        "hidden": network.hidden,
        "classes": network.num_classes,
        "dropout": network.dropout,
        "activation": activation,
    }


def empty(folder: Path) -> None:
    """Remove what a fit leaves, and nothing else."""
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    for name in FILES:
        for path in (folder / name, folder / f"{name}.part"):
            path.unlink(missing_ok=True)
