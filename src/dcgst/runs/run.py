"""A run folder as it is read: what was found, and the graph it was found on."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from dcgst.errors import InputError
from dcgst.evaluate.calibration import Calibration
from dcgst.graph import UNKNOWN, Graph
from dcgst.io import Columns, read
from dcgst.io.features import Recipe
from dcgst.methods import Method, method
from dcgst.methods.stages import AUDIT, GIVEN, NEVER
from dcgst.nn import backbone
from dcgst.nn.base import Backbone
from dcgst.runs.predictions import prediction_rows
from dcgst.splits import Split

FORMAT = 1
"""Of the folder; a folder of another format is refused."""


DAMAGE = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file may raise."""


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
    info: dict[str, Any]
    graph: Graph
    split: Split
    proba: NDArray[np.float32]
    labels: NDArray[np.int64]
    stage: NDArray[np.int64]
    agreement: NDArray[np.float32]
    history: list[dict[str, float]]

    @cached_property
    def predictions(self) -> list[dict[str, Any]]:
        """One record per node, as in ``predictions.csv``."""
        names = self.graph.class_names
        given = self.split.train[0] | self.split.val[0]
        found = (self.proba, self.labels, self.stage)
        return prediction_rows(self.graph.ids, names, *found, given, self.agreement)

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
        self,
        nodes: Any = None,
        edges: str | Path | None = None,
        *,
        delimiter: str | None = None,
        drop_unknown: bool = False,
    ) -> list[dict[str, Any]]:
        """Predictions of the saved model, on the same graph or on another of the same features.

        On another graph, labels are those it has and those of the run for nodes of the same id.

        Args:
            nodes: as for :func:`dcgst.read`; by default the graph of the run.
            edges: the table of edges.
            delimiter: of CSV files.
            drop_unknown: leave out edges to nodes that the table of nodes does not have.
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
            Columns(**self.info["columns"]) if recipe else None,
            delimiter=delimiter,
            drop_unknown=drop_unknown,
            recipe=recipe,
            class_names=self.graph.class_names if recipe else None,
            labels_needed=False,
        )
        if (found.recipe is None) != (recipe is None):
            raise InputError(
                "the model knows the columns of tables, a graph with features of its own is no use "
                "to it"
                if recipe
                else "the model knows ready features, not the columns of tables"
            )
        graph = found.graph
        known = self._labels_there(graph)
        proba = self.calibration.apply(self.method.predict_proba(graph, known))
        given = known != UNKNOWN
        labels = np.where(given, known, proba.argmax(axis=1))
        stage = np.where(given, GIVEN, NEVER)
        return prediction_rows(graph.ids, self.graph.class_names, proba, labels, stage, given)

    def _labels_there(self, graph: Graph) -> NDArray[np.int64]:
        """The labels known on another graph: its own, and the run's for nodes of the same id."""
        own = self.split.train[0] | self.split.val[0]
        pairs = zip(self.graph.ids[own], self.graph.labels[own], strict=True)
        known = {str(node_id): int(code) for node_id, code in pairs}
        place = {name: code for code, name in enumerate(self.graph.class_names)}
        labels = graph.labels
        if "train" in graph.masks:  # what is known beside these is truth to compare with
            seen = graph.masks["train"] | graph.masks.get("val", False)
            labels = np.where(seen, labels, UNKNOWN)
        for code in np.unique(labels[labels != UNKNOWN]):
            if graph.class_names[code] not in place:
                raise InputError(
                    f"the class {graph.class_names[code]!r} is not one of the model's: "
                    f"{', '.join(self.graph.class_names[:20])}"
                )
        codes = [
            known.get(str(node_id), UNKNOWN) if code == UNKNOWN else place[graph.class_names[code]]
            for node_id, code in zip(graph.ids, labels, strict=True)
        ]
        return np.array(codes, dtype=np.int64)


def open_run(folder: str | Path) -> Run:
    """A run that was fitted before."""
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        if (folder / "begun.json").is_file():
            raise InputError(f"{folder} holds an interrupted run; dcgst fit … --resume goes on")
        raise InputError(f"{folder} is no run folder: it has no run.json; dcgst fit makes one")
    info = read_json(folder / "run.json")
    if info.get("format") != FORMAT:
        raise InputError(
            f"{folder} has format {info.get('format')} (dcgst {info.get('dcgst')}), this version "
            f"reads {FORMAT}; fit again, or use the version that wrote it"
        )
    try:
        return _open(folder, info)
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"{folder} is damaged ({type(error).__name__}: {error}); fit again with --overwrite"
        ) from error


def _open(folder: Path, info: dict[str, Any]) -> Run:
    with open(folder / "graph.npz", "rb") as file, np.load(file, allow_pickle=False) as archive:
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
        masks=_masks(a),
        name=str(info["name"]),
    )
    for key, kind in NEEDED.items():
        if not isinstance(info[key], kind):
            raise TypeError(f"{key} is {type(info[key]).__name__}")
    for key in ("proba", "found", "stage", "agreement"):
        if len(a[key]) != n:
            raise ValueError(f"{key} has {len(a[key])} rows for {n} nodes")
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


NEEDED: dict[str, type] = {
    "method": str,
    "settings": dict,
    "models": list,
    "columns": dict,
    "spectral": bool,
    "calibration": dict,
    "notes": list,
}
"""What ``run.json`` must have, beside a recipe."""


def _masks(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.bool_]]:
    """Which labels trained and validated, where more are known than these."""
    known = arrays["labels"] != UNKNOWN
    if (known == (arrays["train"] | arrays["val"])).all():
        return {}
    return {"train": arrays["train"], "val": arrays["val"]}


def read_json(path: Path) -> dict[str, Any]:
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
    except DAMAGE as error:
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
    except (*DAMAGE, SafetensorError, RuntimeError) as error:
        raise InputError(f"{path} is damaged ({error}); fit again with --overwrite") from error
    return networks


_BACKBONES = {"gcn": "gcn", "gat": "gat", "graphsage": "sage", "appnp": "appnp", "mlp": "mlp"}
"""Names of the classes, in small letters, and of the backbones."""
