"""Reading a run folder."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.graph.csr import MAX_ROWS, checked_csr
from dcgst.io.input import Input, StoreReference
from dcgst.io.npz import read_npz_arrays
from dcgst.io.store import is_store, open_store
from dcgst.methods import Result
from dcgst.methods.core.row_models import RowModel
from dcgst.methods.core.storage import DESCRIPTION, restore, restore_network
from dcgst.methods.core.trace import CANDIDATE, EDGE_PROBABILITIES
from dcgst.nn import Backbone
from dcgst.numerics.graph_tensors import Learned
from dcgst.runs.format.layout import (
    ARRAYS,
    BEGUN,
    FORMAT,
    HISTORY,
    MODELS,
    NODE_TABLE,
    PREDICTORS,
    PROBABILITIES,
    RUN,
    Stored,
    read_json,
)
from dcgst.runs.format.validation import check_arrays, check_info, verify_digests
from dcgst.runs.format.writing import check_finite
from dcgst.splits import Split

DAMAGED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that reading a damaged file may raise."""


def read(folder: Path) -> Stored:
    """Read a complete run folder; raises if it is incomplete, damaged or of a newer format."""
    try:
        complete, begun = (folder / RUN).is_file(), (folder / BEGUN).is_file()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} is not a run folder: {error}") from error
    if not complete:
        if begun:
            raise InputError(f"{folder} contains an interrupted run; continue it with --resume")
        raise InputError(f"{folder} is not a run folder: it has no run.json; see dcgst fit")
    info = read_json(folder / RUN)
    if info.get("format") != FORMAT:
        raise InputError(
            f"{folder} has format {info.get('format')} (dcgst {info.get('dcgst')}), this version "
            f"reads format {FORMAT}; fit again, or use the version that wrote it"
        )
    verify_digests(folder, info)
    del info["digest"]
    try:
        return _read(folder, info)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(
            f"{folder} is damaged ({type(error).__name__}: {error}); fit again with --overwrite"
        ) from error


def _read(folder: Path, info: dict[str, Any]) -> Stored:
    arrays = read_npz_arrays(folder / ARRAYS)
    graph, store = _graph_of(arrays, folder, info)
    if store is not None:
        arrays["proba"] = read_probabilities(folder)
    check_info(info)
    check_arrays(arrays, graph)
    split = Split.of(arrays["train"], arrays["val"], arrays["pool"])
    if (arrays["test"] != split.test(graph)[0]).any():
        split = replace(split, official_test=arrays["test"][None])
    predictors: tuple[RowModel, ...] = ()
    learned = None
    if info.get("predictors"):
        predictors, learned = _read_predictors(folder / PREDICTORS, info["predictors"])
    result = Result(
        proba=arrays["proba"],
        given=np.where(split.given[0], graph.labels, UNKNOWN),
        labeled_stage=arrays["labeled_stage"],
        agreement=arrays["agreement"],
        history=_read_history(folder / HISTORY),
        stop_reason=info["stop_reason"],
        candidates=_table_of(arrays, "candidates", CANDIDATE),
        edge_probabilities=_table_of(arrays, "edge_probabilities", EDGE_PROBABILITIES),
        member_weights=info.get("member_weights", {}),
        expectation=info.get("expectation", {}),
        models=_read_models(folder / MODELS, info["models"]),
        predictors=predictors,
        learned=learned,
    )
    return Stored(info, graph, split, result, store=store)


def read_node_table(folder: Path) -> dict[str, list[str]]:
    """The columns of the node table by name; raises if the file is damaged."""
    csv.field_size_limit(2**31 - 1)
    try:
        with gzip.open(folder / NODE_TABLE, "rt", newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return dict(zip(names, columns, strict=True))
    except DAMAGED as error:
        raise InputError(
            f"{folder / NODE_TABLE} is damaged ({error}); fit again with --overwrite"
        ) from error


def read_probabilities(folder: Path) -> NDArray[np.float32]:
    """The probabilities of a run whose graph is in a store, memory-mapped."""
    proba: NDArray[np.float32] = np.load(folder / PROBABILITIES, mmap_mode="r", allow_pickle=False)
    return proba


def _graph_of(
    arrays: Mapping[str, NDArray[Any]], folder: Path, info: Mapping[str, Any]
) -> tuple[Graph, StoreReference | None]:
    """The graph, and its store if it is in one.

    It has masks if more labels are known than were given.
    """
    given = arrays["train"] | arrays["val"]
    all_given = ((arrays["labels"] != UNKNOWN) == given).all()
    masks = {} if all_given else {"train": arrays["train"], "val": arrays["val"]}
    names = tuple(str(class_name) for class_name in arrays["class_names"])
    if info.get("store"):
        data = _open_store(folder, info["store"])
        graph = data.graph.with_labels(arrays["labels"], class_names=names, masks=masks)
        return graph, data.store
    n = len(arrays["labels"])
    parts = tuple(arrays[f"features_{part}"] for part in ("data", "indices", "indptr"))
    features = checked_csr(parts, arrays["features_shape"], "features")
    links = tuple(arrays[f"adjacency_{part}"] for part in ("data", "indices", "indptr"))
    graph = Graph(
        checked_csr(links, (n, n), "adjacency", MAX_ROWS),
        features.toarray() if arrays["features_dense"] else features,
        arrays["labels"],
        names,
        arrays["ids"],
        masks=masks,
        name=str(info["name"]),
        columns_weighted=info.get("encoder") is not None,
    )
    return graph, None


def _open_store(folder: Path, stored: Mapping[str, Any]) -> Input:
    """The store of a run: at its path, or at the same place relative to the run folder."""
    paths = (Path(stored["path"]), folder / stored["relative_path"])
    others = []
    for path in filter(is_store, paths):
        data = open_store(path)
        if data.store is not None and data.store.digest == stored["digest"]:
            return data
        others.append(path)
    if others:
        raise InputError(
            f"{others[0]} is not the store that {folder} was fitted on: its content differs; put "
            "the old one back, or fit again with --overwrite"
        )
    raise InputError(
        f"the graph of {folder} is in the store {paths[0]}, which does not exist; put it back, or "
        f"move it to {paths[1]}, or import the tables again"
    )


def _table_of(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: np.dtype[np.void]
) -> NDArray[np.void]:
    columns = {column: arrays[f"{name}_{column}"] for column in dtype.names or ()}
    table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for column, values in columns.items():
        table[column] = values
    return table


def _read_history(path: Path) -> list[dict[str, float]]:
    with open(path, newline="", encoding="utf-8") as file:
        records = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    required = {"replica", "stage", "labeled", "cmd"}
    if not records or any(
        not required <= record.keys() or not np.isfinite(list(record.values())).all()
        for record in records
    ):
        raise ValueError(f"{path.name} does not have the columns of a history")
    return records


def _read_predictors(path: Path, count: int) -> tuple[tuple[RowModel, ...], Learned]:
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            description = json.loads((file.metadata() or {})[DESCRIPTION])
        check_finite(tensors)
        predictors, learned = restore(description, tensors)
        if not (isinstance(learned, Learned) and all(map(callable, predictors))):
            raise ValueError("its content is not a model")
        if len(predictors) != count:
            raise ValueError(f"it has {len(predictors)} models instead of {count}")
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    return tuple(predictors), learned


def _read_models(path: Path, configs: Sequence[Mapping[str, Any]]) -> tuple[Backbone, ...]:
    if not configs:
        return ()
    try:
        tensors = load_file(path)
        check_finite(tensors)
        networks = []
        for index, config in enumerate(configs):
            prefix = f"{index}."
            state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            networks.append(restore_network(config, state))
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    return tuple(networks)
