"""An opened run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.evaluate.calibration import Calibration
from dcgst.files import replacing
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods import METHODS, Method, Result
from dcgst.methods.relations import Relation
from dcgst.runs import folder as folder_format
from dcgst.runs.apply import OtherGraph, predict_other
from dcgst.runs.assessment import (
    RunEstimate,
    RunEvaluation,
    estimate_run,
    evaluate_run,
    known_classes,
)
from dcgst.runs.predictions import ColumnUse, Predictions, check_parquet
from dcgst.splits import Split
from dcgst.tables import Columns, FeatureEncoder, Input, read_label_table
from dcgst.tables.nodes import StoreReference


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A fit and the graph it belongs to, as stored in a folder.

    Attributes:
        folder: the folder.
        info: content of ``run.json``: method, settings, calibration, versions and more.
        graph: the graph with its labels.
        split: training, validation and pool nodes.
        result: probabilities (calibrated), labels, history, candidates and models.
        store: where the graph is; None if it is in the folder.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> len(run.predictions), run.method.name
        (1200, 'em')
    """

    folder: Path
    info: dict[str, Any]
    graph: Graph
    split: Split
    result: Result
    store: StoreReference | None = None

    @property
    def calibration(self) -> Calibration:
        return Calibration(**self.info["calibration"])

    @cached_property
    def prediction_table(self) -> Predictions:
        """The predictions of all nodes, in blocks."""
        return Predictions(self.graph.ids, self.graph.class_names, self.result)

    @cached_property
    def predictions(self) -> list[dict[str, Any]]:
        """One record per node, as in ``predictions.csv``."""
        return list(self.prediction_table.rows())

    @property
    def predictions_file(self) -> Path:
        """``predictions.csv``, or ``predictions.parquet`` if the graph is in a store."""
        in_store = self.info.get("store") is not None
        name = folder_format.PREDICTIONS_PARQUET if in_store else folder_format.PREDICTIONS
        return self.folder / name

    @cached_property
    def method(self) -> Method:
        """The fitted method; it can predict on other graphs with the same features."""
        fitted = METHODS.known(self.info["method"]).from_stored(self.info["settings"])
        fitted.set_params(device="cpu")
        fitted.graph_, fitted.split_, fitted.result_ = self.graph, self.split, self.result
        return fitted

    def new_method(self) -> Method:
        """The method with the settings of this run, not fitted."""
        settings = dict(self.info["settings"])
        if self.info.get("validate"):  # these validation labels were no random sample
            settings.pop("random_validation", None)
        new = METHODS.known(self.info["method"]).from_stored(settings)
        return new.set_params(device="auto")

    @property
    def relations(self) -> list[Relation]:
        """The relations and their weights; empty if there is one."""
        return [Relation(**stored) for stored in self.info.get("relations", [])]

    @property
    def columns_used(self) -> list[ColumnUse]:
        """How much the predicted classes differ in each column; empty without a node table."""
        return [ColumnUse(**stored) for stored in self.info.get("columns_used", [])]

    @property
    def encoder(self) -> FeatureEncoder | None:
        """How the columns of the node table become features; None without a table."""
        stored = self.info["encoder"]
        return FeatureEncoder.from_json(stored) if stored else None

    @property
    def audited(self) -> bool:
        """Whether the validation labels are those of randomly chosen nodes (``--audit``)."""
        return bool(self.info.get("audited"))

    @property
    def chosen_labels(self) -> NDArray[np.bool_]:
        """``(n,)`` nodes whose label was given, without those of an audit."""
        return np.asarray(self.split.train[0] if self.audited else self.split.given[0])

    def as_input(self) -> Input:
        """The graph with the labels of this run, to be fitted again."""
        graph, split = self.graph, self.split
        if split.val.any() and not self.info.get("validate"):
            graph = graph.with_labels(masks={"train": split.train[0], "val": split.val[0]})
        return Input(
            graph,
            self.encoder,
            self.info["spectral"],
            Columns.from_json(self.info["columns"]),
            self.table,
            tuple(self.info["notes"]),
            self.audited,
            self.store,
            weighed=tuple(self.info.get("relations", [])),
        )

    @cached_property
    def estimate(self) -> RunEstimate | None:
        """Accuracy and class shares, estimated from an audit; None without one."""
        return estimate_run(self) if self.audited else None

    @cached_property
    def table(self) -> dict[str, list[str]]:
        """Columns of the node table by name, without the labels; empty if there was no table."""
        if not self.info["node_columns"]:
            return {}
        return folder_format.read_node_table(self.folder)

    @property
    def evaluation_nodes(self) -> NDArray[np.bool_]:
        """``(n,)`` nodes of known class that the fit did not use; else the validation nodes."""
        known = self.graph.labels != UNKNOWN
        unused: NDArray[np.bool_] = known & self.split.pool[0]
        return unused if unused.any() else known & self.split.val[0]

    def node(self, node_id: object) -> int:
        """Position of the node with the given id."""
        found = int(self.graph.find([str(node_id)])[0])
        if found < 0:
            raise InputError(
                f"no node has the id {str(node_id)!r}; ids are in {self.predictions_file}"
            )
        return found

    def embeddings(self) -> NDArray[np.float32]:
        """``(n, replicas * hidden)`` node embeddings: the last hidden layer of each replica."""
        return self.method.embed()

    def write_embeddings(self, path: Path) -> None:
        """Write the node embeddings to a Parquet file: ids, and one column per dimension."""
        check_parquet()
        import pyarrow as pa
        from pyarrow import parquet

        found = self.embeddings()
        columns = {"id": pa.array(self.graph.ids.astype(str))}
        columns |= {f"e{number}": pa.array(values) for number, values in enumerate(found.T)}
        with replacing(path) as temporary:
            parquet.write_table(pa.table(columns), temporary)

    def evaluate(
        self,
        truth: str | Path | Mapping[Any, str] | None = None,
        *,
        id_column: str | None = None,
        label_column: str | None = None,
        delimiter: str | None = None,
        store: bool = False,
    ) -> RunEvaluation:
        """Compare the predictions with true classes; labels that the fit used are left out.

        Args:
            truth: a table of ids and classes (CSV or Parquet file), or class names by id; default:
                stored ones, and the classes in the graph that the fit did not use.
            id_column: column of ids in the table; guessed if None.
            label_column: column of classes in the table; guessed if None.
            delimiter: delimiter of a CSV file.
            store: store the true classes in the run folder, so that the outputs of later commands
                show the accuracy.

        Example:
            >>> import tempfile
            >>> from dcgst import EM, fit, load
            >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
            >>> found = run.evaluate()
            >>> found.quality.nodes, found.given, round(found.quality.accuracy.value, 2)
            (1180, 20, 0.51)
        """
        if truth is None:
            return evaluate_run(self, known_classes(self) | self.truth)
        if isinstance(truth, Mapping):
            classes = {str(key): str(name) for key, name in truth.items()}
        else:
            hints = Columns.from_json(self.info["columns"])
            classes = read_label_table(
                truth,
                id_column=id_column,
                label_column=label_column,
                hints=hints,
                delimiter=delimiter,
            ).classes
        found = evaluate_run(self, classes)
        if store:
            folder_format.write_truth(self.folder, classes)
        return found

    @property
    def truth(self) -> dict[str, str]:
        """True classes by node id that ``evaluate`` stored; empty if there are none."""
        return folder_format.read_truth(self.folder)

    @property
    def measured(self) -> RunEvaluation | None:
        """Comparison with true classes that the fit did not use; None if none are known."""
        known = (self.evaluation_nodes & self.split.pool[0]).any()
        return self.evaluate() if known or self.truth else None

    def predict(
        self,
        nodes: Any = None,
        edges: Any = None,
        *,
        delimiter: str | None = None,
        drop_unknown: bool = False,
        use_labels: bool = False,
        add: bool = False,
    ) -> list[dict[str, Any]]:
        """Predictions of the stored model on its own graph or on another one, one record per node.

        On another graph, nodes with the id of a labeled node of the run have its label.

        Args:
            nodes: as in :func:`dcgst.read`; default: the graph of the run.
            edges: the edge table.
            delimiter: delimiter of CSV files.
            drop_unknown: drop edges with unknown node ids.
            use_labels: use the labels in the other graph, too.
            add: the tables have new nodes only, which are added to the graph of the run; their
                edges may lead to its nodes.
        """
        if nodes is None:
            return self.predictions
        found = self.predict_other(
            nodes,
            edges,
            delimiter=delimiter,
            drop_unknown=drop_unknown,
            use_labels=use_labels,
            add=add,
        )
        return list(found.predictions.rows())

    def predict_other(self, nodes: Any, edges: Any = None, **options: Any) -> OtherGraph:
        """Predictions on another graph, and how it differs from that of the fit.

        Arguments as in :meth:`predict`.
        """
        return predict_other(self, nodes, edges, **options)


def open_run(folder: str | Path) -> Run:
    """Open the folder of a fit.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> open_run(run.folder).method.name
        'em'
    """
    stored = folder_format.read(Path(folder))
    return Run(Path(folder), stored.info, stored.graph, stored.split, stored.result, stored.store)
