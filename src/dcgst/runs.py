"""Run folders: what a fit found, in files that stay readable; see docs/run-folder.md."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from dcgst.engine.random import derive
from dcgst.engine.training import Callback
from dcgst.errors import InputError
from dcgst.evaluate.calibration import Calibration, calibrate
from dcgst.graph import UNKNOWN, Graph
from dcgst.io import Columns, Input, read
from dcgst.io.features import Recipe
from dcgst.methods import METHODS, Method, method
from dcgst.methods.stages import AUDIT, GIVEN, NEVER
from dcgst.nn import backbone
from dcgst.nn.base import Backbone
from dcgst.splits import Split
from dcgst.version import VERSION

if TYPE_CHECKING:
    from torch_geometric.data import Data

FORMAT = 1
"""Of the folder; a folder of another format is refused."""

REPLICAS = 5
"""Runs whose probabilities are averaged, unless the method says otherwise."""

GIVEN_LABEL, PSEUDO_LABEL, PREDICTED = "given", "pseudo", "predicted"
"""Where a node's class comes from: the user, a pseudo-label that was trained on, the model."""


@dataclass(frozen=True)
class Run:
    """What a fit found, and the graph it was found on.

    Attributes:
        folder: where it lies.
        info: method, settings, versions, calibration and more, as in ``run.json``.
        graph: the graph with its given labels.
        split: which of them trained and which validated.
        proba: ``(n, C)`` calibrated probabilities.
        labels: ``(n,)`` class codes; given labels stay.
        stage: ``(n,)`` when a node joined the training set: 0 given, -1 never.
        agreement: ``(n,)`` share of replicas that found the same class.
        history: one record per replica and stage.
    """

    folder: Path
    info: Mapping[str, Any]
    graph: Graph
    split: Split
    proba: NDArray[np.float32]
    labels: NDArray[np.int64]
    stage: NDArray[np.int64]
    agreement: NDArray[np.float32]
    history: list[dict[str, float]]

    @property
    def predictions(self) -> list[dict[str, Any]]:
        """One record per node, as in ``predictions.csv``."""
        return prediction_rows(
            self.graph, self.proba, self.labels, self.stage, self.agreement, self.split
        )

    @cached_property
    def audit(self) -> NDArray[np.void]:
        """Every candidate of every stage; see :data:`dcgst.methods.stages.AUDIT`."""
        return _read_audit(self.folder / "audit.csv.gz", self.graph)

    @cached_property
    def method(self) -> Method:
        """The method as it was fitted; it predicts on other graphs of the same features."""
        fitted = method(self.info["method"], **self.info["settings"])
        fitted.set_params(device="cpu")
        fitted.graph_, fitted.split_ = self.graph, self.split
        fitted.proba_, fitted.labels_ = self.proba, self.labels
        fitted.classes_ = self.graph.class_names
        fitted.models_ = _load_models(self.folder, self.info["models"])
        return fitted

    @property
    def calibration(self) -> Calibration:
        return Calibration(**self.info["calibration"])

    def node(self, node_id: object) -> int:
        """The place of a node, by its id."""
        found = np.flatnonzero(self.graph.ids.astype(str) == str(node_id))
        if not found.size:
            raise InputError(f"no node has the id {str(node_id)!r}; ids are as in predictions.csv")
        return int(found[0])

    def predict(
        self, nodes: Any = None, edges: str | Path | None = None, *, delimiter: str | None = None
    ) -> list[dict[str, Any]]:
        """Predictions of the saved model, on the same graph or on another of the same features.

        Args:
            nodes: as for :func:`dcgst.read`; by default the graph of the run.
            edges: the table of edges.
            delimiter: of CSV files.
        """
        if nodes is None:
            return self.predictions
        recipe = Recipe.from_json(self.info["recipe"]) if self.info["recipe"] else None
        if self.info["spectral"]:
            raise InputError(
                "the features of this run were made from its graph alone and mean nothing on "
                "another; fit again on the new graph"
            )
        found = read(
            nodes,
            edges,
            Columns(**self.info["columns"]),
            delimiter=delimiter,
            recipe=recipe,
            class_names=self.graph.class_names,
            labels_needed=False,
        )
        graph = found.graph
        proba = self.calibration.apply(self.method.predict_proba(graph))
        given = graph.labels != UNKNOWN
        labels = np.where(given, graph.labels, proba.argmax(axis=1))
        stage = np.where(given, GIVEN, NEVER)
        split = Split.of(given) if given.any() else None
        return prediction_rows(graph, proba, labels, stage, None, split)


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
    found = read(source)
    model = model or METHODS["dcgst"](replicas=REPLICAS)
    graph = found.graph
    check_graph(graph)
    split = set_aside(graph, validate, model.seed)
    model.check(graph, split)
    check_memory(graph, model)
    folder = Path(folder)
    begun = {"format": FORMAT, "fingerprint": fingerprint(graph, split, model)}
    if prepare(folder, begun, resume, overwrite):
        return open_run(folder)
    start = time.perf_counter()
    model.fit(graph, split, callbacks=callbacks, checkpoint=folder / "checkpoint")
    val_labels = np.where(split.val[0], graph.labels, UNKNOWN)
    calibration = calibrate(model.proba_, val_labels, model.usual_temperature)
    info = {
        "format": FORMAT,
        "dcgst": VERSION,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "method": model.name,
        "settings": model.get_params(),
        "validate": validate,
        "calibration": asdict(calibration),
        "columns": asdict(found.columns),
        "recipe": found.recipe.to_json() if found.recipe else None,
        "spectral": found.spectral,
        "notes": list(found.notes),
        "stop_reason": model.stop_reason_,
        "models": [_describe(m) for m in model.models_],
        "seconds": round(time.perf_counter() - start, 1),
        "fingerprint": begun["fingerprint"],
    }
    run = Run(
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
    _write(run, model)
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return run


# --- before the work --------------------------------------------------------------------------


def check_graph(graph: Graph) -> None:
    """Raise if there is nothing to learn from, or nothing to predict."""
    known = graph.labels != UNKNOWN
    if not known.any():
        raise InputError(
            "no node has a label: fill the label column for at least one node of each of two "
            "classes"
        )
    if known.all() and "train" not in graph.masks:
        raise InputError("every node has a label already: there is nothing to predict")
    counts = np.bincount(graph.labels[known], minlength=graph.num_classes)
    if graph.num_classes > 20 and counts.max() == 1:
        raise InputError(
            f"each of the {graph.num_classes} classes has a single label: is the label column one "
            "of names or ids? Name the right one with --label"
        )


def set_aside(graph: Graph, share: float, seed: int = 0) -> Split:
    """Known labels train, but for a share of each class that validates; one of each always trains.

    The graph's own masks come first.
    """
    if not 0 <= share < 1:
        raise InputError(f"the share to validate with must be from 0 to below 1, got {share}")
    split = Split.known_labels(graph)
    if share == 0 or split.val.any():
        return split
    rng = np.random.default_rng(derive(seed, 3))
    train, val = split.train[0].copy(), np.zeros(graph.num_nodes, dtype=bool)
    for code in np.unique(graph.labels[train]):
        nodes = rng.permutation(np.flatnonzero(train & (graph.labels == code)))
        val[nodes[: min(round(share * nodes.size), nodes.size - 1)]] = True
    return Split.of(train & ~val, val)


def memory_needed(graph: Graph, model: Method) -> int:
    """Bytes that a fit takes at most on a CPU, roughly: measured on graphs of known size."""
    per_node = 6000 + 80 * graph.num_classes + 24 * getattr(model, "hidden", 64)
    stored = graph.features.nnz if sp.issparse(graph.features) else graph.features.size
    return int(3e8 + graph.num_nodes * per_node + 12 * stored + 100 * graph.num_edges)


def available_memory() -> int | None:
    """Bytes that are free, where the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def check_memory(graph: Graph, model: Method) -> None:
    """Raise if a fit would not fit."""
    needed, free = memory_needed(graph, model), available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{graph.num_nodes:,} nodes with {graph.num_classes:,} classes need about "
            f"{needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free; use a machine with more, or a "
            "part of the graph"
        )


def fingerprint(graph: Graph, split: Split, model: Method) -> str:
    """Different for any other graph, labels or settings."""
    digest = hashlib.sha256()
    features = graph.features
    stored = (features.data, features.indices) if sp.issparse(features) else (features,)
    adjacency = graph.adjacency
    arrays = (adjacency.indptr, adjacency.indices, adjacency.data, *stored, split.train, split.val)
    for array in (*arrays, graph.labels, graph.ids.astype("U")):
        digest.update(np.ascontiguousarray(array).tobytes())
    settings = {k: v for k, v in model.get_params().items() if k not in ("device", "chunk")}
    digest.update(json.dumps([model.name, settings], sort_keys=True).encode())
    return digest.hexdigest()[:16]


def prepare(folder: Path, begun: Mapping[str, Any], resume: bool, overwrite: bool) -> bool:
    """Make the folder, or find what an earlier fit left there; whether that one is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
        ours = "begun.json" in there
        if there and not ours:
            raise InputError(f"{folder} holds other files ({there[0]}); choose another folder")
        if ours and overwrite:
            _empty(folder)
        elif ours and not resume:
            done = "a run" if "run.json" in there else "an interrupted run"
            raise InputError(
                f"{folder} holds {done} already; --resume goes on, --overwrite begins anew, or "
                "choose another folder"
            )
        elif ours:
            kept = _read_json(folder / "begun.json")
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


def _empty(folder: Path) -> None:
    """Remove what a fit leaves, and nothing else."""
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


# --- what is written --------------------------------------------------------------------------

FILES = (
    "run.json",
    "begun.json",
    "predictions.csv",
    "audit.csv.gz",
    "history.csv",
    "model.safetensors",
    "graph.npz",
    "report.html",
)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table as CSV, one column for each key of the first row."""
    write_text(path, rows_as_csv(rows))


def rows_as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def prediction_rows(
    graph: Graph,
    proba: NDArray[np.float32],
    labels: NDArray[np.int64],
    stage: NDArray[np.int64],
    agreement: NDArray[np.float32] | None,
    split: Split | None,
) -> list[dict[str, Any]]:
    """One record per node: its class, how sure that is, and where it comes from."""
    likeliest = np.sort(proba, axis=1)[:, ::-1]
    margin = likeliest[:, 0] - (likeliest[:, 1] if proba.shape[1] > 1 else 0)
    own = split.train[0] | split.val[0] if split is not None else np.zeros(len(labels), dtype=bool)
    rows = []
    for node, code in enumerate(labels):
        source = GIVEN_LABEL if own[node] else PSEUDO_LABEL if stage[node] > 0 else PREDICTED
        row = {
            "id": graph.ids[node].item(),
            "class": graph.class_names[code],
            "probability": round(float(proba[node, code]), 4),
            "margin": round(float(margin[node]), 4),
            "source": source,
            "stage": "" if stage[node] == NEVER else int(stage[node]),
        }
        if agreement is not None:
            row["agreement"] = round(float(agreement[node]), 3)
        for name, value in zip(graph.class_names, proba[node], strict=True):
            row[f"p({name})"] = round(float(value), 4)
        rows.append(row)
    return rows


def _write(run: Run, model: Method) -> None:
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
            part = folder / "model.part"
            save_file(tensors, part)
            os.replace(part, folder / "model.safetensors")
        write_bytes(folder / "graph.npz", _graph_bytes(run))
        write_text(folder / "run.json", json.dumps(run.info, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error


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


def _describe(network: Backbone) -> dict[str, Any]:
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


# --- what is read -----------------------------------------------------------------------------


def open_run(folder: str | Path) -> Run:
    """A run that was fitted before."""
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        if (folder / "begun.json").is_file():
            raise InputError(f"{folder} holds an interrupted run; dcgst fit … --resume goes on")
        raise InputError(f"{folder} is no run folder: it has no run.json; dcgst fit makes one")
    info = _read_json(folder / "run.json")
    if info.get("format") != FORMAT:
        raise InputError(
            f"{folder} has format {info.get('format')} (dcgst {info.get('dcgst')}), this version "
            f"reads {FORMAT}; fit again, or use the version that wrote it"
        )
    try:
        return _open(folder, info)
    except InputError:
        raise
    except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{folder} is damaged ({type(error).__name__}: {error}); fit again with --overwrite"
        ) from error


def _open(folder: Path, info: dict[str, Any]) -> Run:
    with np.load(folder / "graph.npz", allow_pickle=False) as archive:
        a = {name: archive[name] for name in archive.files}
    n = len(a["labels"])
    parts = (a["features_data"], a["features_indices"], a["features_indptr"])
    features = sp.csr_array(parts, shape=tuple(a["features_shape"]))
    links = (a["adjacency_data"], a["adjacency_indices"], a["adjacency_indptr"])
    adjacency = sp.csr_array(links, shape=(n, n))
    graph = Graph(
        adjacency,
        features.toarray() if a["features_dense"] else features,
        a["labels"],
        tuple(str(name) for name in a["class_names"]),
        a["ids"],
        name=folder.name,
    )
    needed = ("method", "settings", "models", "columns", "recipe", "spectral", "calibration")
    for key in needed:
        info[key]
    return Run(
        folder,
        info,
        graph,
        Split.of(a["train"], a["val"], a["pool"]),
        a["proba"],
        a["found"],
        a["stage"],
        a["agreement"],
        _read_history(folder / "history.csv"),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged (no object); fit again with --overwrite")
    return found


def _read_history(path: Path) -> list[dict[str, float]]:
    with open(path, newline="", encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def _read_audit(path: Path, graph: Graph) -> NDArray[np.void]:
    place = {str(node_id): node for node, node_id in enumerate(graph.ids)}
    code = {name: at for at, name in enumerate(graph.class_names)}
    try:
        with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        table = np.zeros(len(rows), dtype=AUDIT)
        table["truth"] = UNKNOWN
        for name in rows[0] if rows else ():
            values = [row[name] for row in rows]
            if name == "node":
                table[name] = [place[value] for value in values]
            elif name == "label":
                table[name] = [code[value] for value in values]
            elif name == "chosen":
                table[name] = [value == "True" for value in values]
            else:
                table[name] = [float(value) if value else np.nan for value in values]
    except (OSError, EOFError, KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    return table


def _load_models(folder: Path, descriptions: Sequence[Mapping[str, Any]]) -> list[Backbone]:
    if not descriptions:
        return []
    path = folder / "model.safetensors"
    try:
        tensors = load_file(path)
        networks = []
        for place, about in enumerate(descriptions):
            network = backbone(_BACKBONES[about["backbone"]])(
                [0] * about["replicas"],
                about["features"],
                about["hidden"],
                about["classes"],
                about["dropout"],
                about["activation"],
            )
            prefix = f"{place}."
            state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            network.load_state_dict(state)
            networks.append(network)
    except (OSError, SafetensorError, RuntimeError, KeyError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    return networks


_BACKBONES = {"gcn": "gcn", "gat": "gat", "graphsage": "sage", "appnp": "appnp", "mlp": "mlp"}
"""Names of the classes, in small letters, and of the backbones."""
