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
import numpy.lib.format as npy
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from dcgst.errors import InputError
from dcgst.files import replacing, rows_to_csv, write_bytes, write_text
from dcgst.graph import Graph
from dcgst.memory import forget
from dcgst.methods import Result
from dcgst.methods.core.storage import DESCRIPTION, dump
from dcgst.methods.core.trace import CANDIDATE
from dcgst.numerics.arrays import row_ranges
from dcgst.runs.format.layout import (
    ARRAYS,
    CANDIDATE_TABLE,
    CHECKPOINT,
    HISTORY,
    METRICS,
    MODELS,
    NODE_TABLE,
    OF_STORE,
    PREDICTIONS,
    PREDICTIONS_PARQUET,
    PREDICTORS,
    PROBABILITIES,
    RUN,
    Stored,
    digest_of,
    digest_of_file,
    seal,
)
from dcgst.runs.predictions import Predictions


def write(
    folder: Path,
    stored: Stored,
    predictions: Predictions,
    metrics: Mapping[str, Any],
    *,
    spreadsheet: bool,
) -> None:
    """Write all files, ``run.json`` last, and remove the checkpoint.

    Args:
        folder: the run folder.
        stored: what to write; the digests of the files are added to its ``info``.
        predictions: content of ``predictions.csv`` or, if the graph is in a store,
            ``predictions.parquet``.
        metrics: content of ``metrics.json``.
        spreadsheet: whether ``predictions.csv`` must be safe to open in a spreadsheet.
    """
    result = stored.result
    if not all(np.isfinite(list(record.values())).all() for record in result.history):
        raise InputError("training diverged: the shift is not finite; try a smaller lr")
    if stored.info.get("store"):
        written: tuple[str, ...] = OF_STORE
        _write_probabilities(folder / PROBABILITIES, result.proba)
        predictions.write_parquet(folder / PREDICTIONS_PARQUET)
    else:
        written = (PREDICTIONS,)
        predictions.write_csv(folder / PREDICTIONS, spreadsheet=spreadsheet)
    contents = {
        HISTORY: rows_to_csv(result.history).encode(),
        CANDIDATE_TABLE: _candidates_to_csv(result.candidates, stored.graph),
        ARRAYS: _arrays_to_npz(stored),
        METRICS: (json.dumps(metrics, indent=1, allow_nan=False) + "\n").encode(),
    }
    stored.info["node_columns"] = list(stored.table)
    if stored.table:
        columns = list(stored.table.values())
        # With this terminator, values with any kind of line break are quoted.
        contents[NODE_TABLE] = _to_csv(list(stored.table), columns, "\r\n")
    if result.models:
        contents[MODELS] = save(_tensors_of(result))
    stored.info["predictors"] = len(result.predictors)
    if result.predictors:
        contents[PREDICTORS] = _predictors_to_bytes(result)
    for name, content in contents.items():
        write_bytes(folder / name, content)
    stored.info["files"] = {
        **{name: digest_of_file(folder / name) for name in written},
        **{name: digest_of(content) for name, content in contents.items()},
    }
    write_text(folder / RUN, json.dumps(seal(stored.info), indent=1, allow_nan=False) + "\n")
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def _predictors_to_bytes(result: Result) -> bytes:
    """What predicts other graphs: tensors, and a description as metadata."""
    description, tensors = dump((result.predictors, result.learned))
    check_finite(tensors)
    return save(tensors, {DESCRIPTION: json.dumps(description, allow_nan=False)})


def _write_probabilities(path: Path, proba: NDArray[np.float32]) -> None:
    """Write an ``.npy`` file in blocks."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        header = npy.header_data_from_array_1_0(proba)
        npy.write_array_header_2_0(file, {**header, "fortran_order": False})
        for nodes in row_ranges(len(proba)):
            file.write(np.ascontiguousarray(proba[nodes]).tobytes())
            forget(proba)


def _tensors_of(result: Result) -> dict[str, Tensor]:
    """The parameters of all networks; raises if one is not finite."""
    tensors = {  # clones, because networks may share tensors and the format does not
        f"{index}.{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for index, network in enumerate(result.models)
        for name, tensor in network.state_dict().items()
    }
    check_finite(tensors)
    return tensors


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise if a parameter is NaN or infinite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InputError(f"parameter {name} of the network has values that are not finite")


def _candidates_to_csv(candidates: NDArray[np.void], graph: Graph) -> bytes:
    """The candidates for people: ids and class names instead of numbers, without the truth."""
    names = [name for name in CANDIDATE.names or () if name != "truth"]
    columns = []
    for name in names:
        if name == "node":
            columns.append(graph.ids[candidates["node"]].tolist())
        elif name == "label":
            columns.append([graph.class_names[code] for code in candidates["label"]])
        elif candidates[name].dtype == np.float32:
            columns.append(["" if np.isnan(v) else f"{v:.6g}" for v in candidates[name]])
        else:
            columns.append(candidates[name].tolist())
    return _to_csv(names, columns)


def _to_csv(
    names: Sequence[str], columns: Sequence[Sequence[Any]], lineterminator: str = "\n"
) -> bytes:
    """A compressed CSV file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=lineterminator)
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    content = buffer.getvalue().encode("utf-8", "backslashreplace")
    return gzip.compress(content, compresslevel=4, mtime=0)


def _arrays_to_npz(stored: Stored) -> bytes:
    """The arrays of graph, split and result; without those that are in a store or another file."""
    graph, split, result = stored.graph, stored.split, stored.result
    tables = {"candidates": result.candidates, "edge_probabilities": result.edge_probabilities}
    columns = {
        f"{table}_{name}": rows[name]
        for table, rows in tables.items()
        for name in rows.dtype.names or ()
    }
    arrays: dict[str, Any] = dict(
        labels=graph.labels,
        class_names=np.array(graph.class_names, dtype="U"),
        train=split.train[0],
        val=split.val[0],
        pool=split.pool[0],
        test=split.test(graph)[0],
        labeled_stage=result.labeled_stage,
        agreement=result.agreement,
        **columns,
    )
    if not stored.info.get("store"):
        arrays |= _graph_arrays(graph) | {"proba": result.proba}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _graph_arrays(graph: Graph) -> dict[str, Any]:
    features = sp.csr_array(graph.features)
    return {
        "adjacency_data": graph.adjacency.data,
        "adjacency_indices": graph.adjacency.indices,
        "adjacency_indptr": graph.adjacency.indptr,
        "features_data": features.data,
        "features_indices": features.indices,
        "features_indptr": features.indptr,
        "features_shape": np.array(features.shape),
        "features_dense": np.array(not sp.issparse(graph.features)),
        "ids": graph.ids.astype("U") if graph.ids.dtype == object else graph.ids,
    }
