"""Writing a run folder."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.torch import save

from dcgst.files import write_bytes, write_rows, write_text
from dcgst.graph import Graph
from dcgst.methods.core.trace import AUDIT
from dcgst.runs.format.layout import (
    ARRAYS,
    AUDIT_TABLE,
    CHECKPOINT,
    HISTORY,
    METRICS,
    MODELS,
    PREDICTIONS,
    RUN,
    Stored,
)


def write(
    folder: Path,
    stored: Stored,
    predictions: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
) -> None:
    """Write all files, ``run.json`` last, and remove the checkpoint."""
    result = stored.result
    write_rows(folder / PREDICTIONS, predictions)
    write_rows(folder / HISTORY, result.history)
    write_bytes(folder / AUDIT_TABLE, _audit_to_csv(result.audit, stored.graph))
    if result.models:
        tensors = {
            f"{index}.{name}": tensor.detach().cpu().contiguous()
            for index, network in enumerate(result.models)
            for name, tensor in network.state_dict().items()
        }
        write_bytes(folder / MODELS, save(tensors))
    write_bytes(folder / ARRAYS, _arrays_to_npz(stored))
    write_text(folder / METRICS, json.dumps(metrics, indent=1) + "\n")
    write_text(folder / RUN, json.dumps(stored.info, indent=1) + "\n")
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def _audit_to_csv(audit: NDArray[np.void], graph: Graph) -> bytes:
    """The audit for people: ids and class names instead of numbers, without the truth."""
    names = [name for name in AUDIT.names or () if name != "truth"]
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
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    return gzip.compress(buffer.getvalue().encode(), mtime=0)


def _arrays_to_npz(stored: Stored) -> bytes:
    graph, split, result = stored.graph, stored.split, stored.result
    features = sp.csr_array(graph.features)
    tables = {"audit": result.audit, "edge_probabilities": result.edge_probabilities}
    columns = {
        f"{table}_{name}": rows[name]
        for table, rows in tables.items()
        for name in rows.dtype.names or ()
    }
    buffer = io.BytesIO()
    arrays: dict[str, Any] = dict(
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
        train=split.train[0],
        val=split.val[0],
        pool=split.pool[0],
        test=split.test(graph)[0],
        proba=result.proba,
        labeled_stage=result.labeled_stage,
        agreement=result.agreement,
        **columns,
    )
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
