"""The contract every method keeps: a scikit-learn style estimator on a graph."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.locality import locality_order
from dcgst.engine.memory import Memory
from dcgst.engine.random import derive
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.threads import threads_for
from dcgst.engine.training import Callback
from dcgst.errors import InputError, unknown
from dcgst.evaluate.metrics import accuracy
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph, as_graph
from dcgst.methods.outcome import Outcome, Problem, Result, average, results_of
from dcgst.methods.params import check, param
from dcgst.nn.base import Backbone, Features, Output, features_on
from dcgst.splits import Split

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(eq=False, kw_only=True)
class Method(ABC):
    """A node classifier. Its fields are its settings; what ``fit`` learns ends in ``_``.

    After ``fit``:

    - ``proba_`` ``(n, C)`` probabilities, averaged over the replicas;
    - ``labels_`` ``(n,)`` class codes; given labels never change;
    - ``labeled_stage_`` ``(n,)`` the stage in which a node joined the training set: 0 if its label
      was given, -1 if it never did;
    - ``agreement_`` ``(n,)`` the share of replicas that found the same class;
    - ``history_`` one record per replica and stage;
    - ``stop_reason_`` why the training ended;
    - ``audit_`` a table with one row per stage and candidate for a pseudo-label: why it was chosen
      or not; empty if the method gives none;
    - ``edges_`` a table with one row per pair of nodes that the method would join or part; empty if
      it leaves the graph as it is;
    - ``classes_`` the class names.
    """

    name: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    all_at_once: ClassVar[bool] = False
    """Whether all runs are computed together on a CPU too: where most of the work is shared."""

    deterministic: ClassVar[bool] = False
    """Whether nothing is random, so that all replicas are the same."""

    usual_temperature: ClassVar[float] = 1.0
    """By which its probabilities are softened, as a rule, to be honest."""

    seed: int = param(0, "decides everything random", low=0)
    replicas: int = param(1, "independent runs whose probabilities are averaged", low=1)
    device: str = param("auto", "where to compute: auto, cpu, cuda, cuda:1 …")
    chunk: int | None = param(
        None, "replicas computed at once; default all on a GPU, one on a CPU", low=1
    )

    @classmethod
    def from_preset(cls, preset: str = "default", **settings: Any) -> Self:
        """The method with named settings, and any others on top."""
        if preset not in cls.presets:
            raise unknown(f"preset of {cls.name}", preset, cls.presets)
        known = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                raise unknown(f"setting of {cls.name}", name, known)
        return cls(**{**cls.presets[preset], **settings})

    @classmethod
    def nearest_preset(cls, preset: str, per_class: float) -> str:
        """The name itself, or where there are rows ``name/LABELS`` the one nearest in labels.

        Some papers publish settings by how many labels each class has.
        """
        rows = {name: name.removeprefix(f"{preset}/") for name in cls.presets}
        counts = {name: int(row) for name, row in rows.items() if row.isdecimal()}
        if preset in cls.presets or not counts:
            return preset
        return min(counts, key=lambda name: abs(counts[name] - per_class))

    @property
    def trainings(self) -> int:
        """How many trainings a run has at most; for progress bars."""
        return 1

    @abstractmethod
    def solve(self, problem: Problem) -> Outcome:
        """The algorithm: R runs at once, each as if alone."""

    def features(self, graph: Graph) -> FeatureMatrix:
        """The features the method works with; as they are unless a method says otherwise."""
        return graph.features

    # --- scikit-learn manners -----------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def set_params(self, **settings: Any) -> Self:
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise unknown(f"setting of {self.name}", name, known)
            setattr(self, name, value)
        return self

    def fit(
        self,
        graph: Graph | Data,
        split: Split | None = None,
        *,
        callbacks: Sequence[Callback] = (),
        checkpoint: Path | None = None,
    ) -> Self:
        """Learn from the labeled nodes and predict all others.

        Args:
            graph: a :class:`Graph` or PyG ``Data``.
            split: one run. By default the graph's own ``train`` and ``val`` masks if it has them;
                otherwise every known label trains, and there is no validation.
            callbacks: called after every epoch and every stage.
            checkpoint: a folder where trainings are kept, to go on from after an interruption. Who
                calls sees to it that graph, split and settings are the same.
        """
        graph = as_graph(graph)
        split = Split.known_labels(graph) if split is None else split
        if isinstance(split, Split) and len(split) != 1:
            raise InputError(f"fit takes one run, the split holds {len(split)}; use fit_runs")
        (result,), self.models_ = self._fit_ordered(graph, split, callbacks, checkpoint)
        self.graph_, self.split_ = graph, split
        self.classes_ = graph.class_names
        self.proba_, self.labels_ = result.proba, result.labels
        self.labeled_stage_ = result.labeled_stage
        self.history_, self.stop_reason_ = result.history, result.stop_reason
        self.audit_, self.edges_ = result.audit, result.edges
        self.agreement_ = result.agreement
        return self

    def predict_proba(
        self, graph: Graph | Data | None = None, labels: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """``(n, C)`` probabilities on the fitted graph, or by the fitted network on another one.

        Args:
            graph: another graph, with the same features.
            labels: ``(n,)`` classes that are known there, -1 elsewhere. The labels of ``graph``
                itself are never used: they may be the truth to compare with. Without labels what a
                method knows beside its network, like the prior of DC-GST, stays behind.
        """
        self._check_fitted()
        if graph is None or (labels is None and self._is_fitted_graph(graph)):
            return self.proba_
        graph = as_graph(graph)
        known = np.full(graph.num_nodes, UNKNOWN) if labels is None else np.asarray(labels)
        if known.shape != (graph.num_nodes,):
            raise InputError(f"labels must be {graph.num_nodes} class codes, got {known.shape}")
        return self._apply(graph, known)

    def predict(self, graph: Graph | Data | None = None) -> NDArray[np.int64]:
        """``(n,)`` class codes; on the fitted graph, given labels stay as they are."""
        proba = self.predict_proba(graph)
        codes: NDArray[np.int64] = proba.argmax(axis=1)
        return self.labels_ if proba is self.proba_ else codes

    def score(self, graph: Graph | Data, mask: NDArray[np.bool_] | None = None) -> float:
        """Accuracy against the labels of ``graph``, by default on the fitted graph's test nodes."""
        self._check_fitted()
        graph = as_graph(graph)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != np.bool_ or mask.shape != (graph.num_nodes,):
                raise InputError(
                    f"mask must be {graph.num_nodes} booleans, got {mask.dtype} {mask.shape}; the "
                    "truth is taken from the graph's labels"
                )
        else:
            fitted = self._is_fitted_graph(graph)
            mask = self.split_.test(graph)[0] if fitted else np.ones(graph.num_nodes, dtype=bool)
        known = mask & (graph.labels != UNKNOWN)
        if not known.any():
            raise InputError(
                "no node to score has a known class: pass a graph with more labels than were "
                "fitted, or a mask"
            )
        return accuracy(self.predict(graph), graph.labels, known)

    # --- many runs ----------------------------------------------------------------------------

    def fit_runs(
        self, graph: Graph | Data, split: Split, *, callbacks: Sequence[Callback] = ()
    ) -> list[Result]:
        """Fit every run of a split, many at once, and return a result for each.

        The method itself stays as it is: nothing that ``fit`` learned is touched.
        """
        return self._fit_ordered(as_graph(graph), split, callbacks)[0]

    def _fit_ordered(
        self,
        graph: Graph,
        split: Split,
        callbacks: Sequence[Callback],
        checkpoint: Path | None = None,
    ) -> tuple[list[Result], list[Backbone]]:
        """Fit with the nodes in an order that suits the processor; results in the user's."""
        self.check(graph, split)
        order = locality_order(graph.adjacency)
        if order is None:
            return self._fit_all(graph, split, callbacks, checkpoint)
        results, models = self._fit_all(
            graph.reorder(order), split.reorder(order), callbacks, checkpoint
        )
        return [result.reorder(np.argsort(order)) for result in results], models

    def _fit_all(
        self,
        graph: Graph,
        split: Split,
        callbacks: Sequence[Callback],
        checkpoint: Path | None,
    ) -> tuple[list[Result], list[Backbone]]:
        """Every run and replica, so many at a time."""
        jobs = [(run, replica) for run in range(len(split)) for replica in range(self.replicas)]
        device = device_of(self.device)
        together = device.type == "cuda" or self.all_at_once
        chunk = self.chunk or (len(jobs) if together else 1)
        x = features_on(self.features(graph), device)
        adjacency = SparseMatrix.from_scipy(graph.adjacency, device)
        models: list[Backbone] = []
        shared: dict[str, Any] = {}
        results: list[Result] = []
        with threads_for(graph.num_nodes):
            for start in range(0, len(jobs), chunk):
                part = jobs[start : start + chunk]
                problem = self._problem(graph, split, part, x, adjacency, tuple(callbacks), shared)
                if checkpoint is not None:
                    memory = Memory(checkpoint / f"replica-{start:03d}-{len(part)}")
                    problem = dataclasses.replace(problem, memory=memory)
                outcome = self.solve(problem)
                if outcome.model is not None:
                    models.append(outcome.model)
                results += results_of(outcome, problem, graph.labels)
        by_run = [results[i : i + self.replicas] for i in range(0, len(jobs), self.replicas)]
        return [average(replicas) for replicas in by_run], models

    def check(self, graph: Graph, split: Split) -> None:
        """Raise on settings or data that cannot work, before anything is computed."""
        check(self)
        device_of(self.device)
        if not isinstance(split, Split):
            raise InputError(
                f"the split must be a Split, got {type(split).__name__}; Split.of(mask)"
            )
        if split.train.shape[1] != graph.num_nodes:
            raise InputError(
                f"the split is for {split.train.shape[1]} nodes, the graph has {graph.num_nodes}"
            )
        unlabeled = (split.train | split.val) & (graph.labels == UNKNOWN)
        if unlabeled.any():
            node = int(np.argwhere(unlabeled)[0][1])
            raise InputError(
                f"node {str(graph.ids[node])!r} is to train or validate, but its label is unknown; "
                "are the labels (y) there?"
            )
        for number, train in zip(split.runs, split.train, strict=True):
            present = np.unique(graph.labels[train])
            if present.size < 2:
                only = ", ".join(graph.class_names[code] for code in present)
                which = f" of run {number}" if len(split) > 1 else ""
                raise InputError(
                    f"the training labels{which} are all of one class ({only}); label at least one "
                    "node of another"
                )

    def _problem(
        self,
        graph: Graph,
        split: Split,
        jobs: Sequence[tuple[int, int]],
        x: Features,
        adjacency: SparseMatrix,
        callbacks: tuple[Callback, ...],
        shared: dict[str, Any],
    ) -> Problem:
        device = adjacency.values.device
        runs = [run for run, _ in jobs]

        def masked(mask: NDArray[np.bool_]) -> Tensor:
            return torch.tensor(np.where(mask[runs], graph.labels, UNKNOWN), device=device)

        return Problem(
            x=x,
            adjacency=adjacency,
            labels=masked(split.train),
            val_labels=masked(split.val),
            pool=torch.tensor(split.pool[runs], device=device),
            seeds=tuple(derive(self.seed, split.runs[run], replica) for run, replica in jobs),
            num_classes=graph.num_classes,
            callbacks=callbacks,
            shared=shared,
        )

    def judge(self, model: Backbone, problem: Problem) -> Tensor:
        """``(R, n, C)`` what a fitted network, and what else the method knows, say of a graph."""
        output: Output = model(problem.x, model.operator(problem.adjacency))
        return output.logits.softmax(-1)

    def _apply(self, graph: Graph, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """Mean probabilities of the fitted models on another graph."""
        if not self.models_:
            raise InputError(f"{self.name} learns no model that could be used on another graph")
        if graph.num_features != self.graph_.num_features:
            raise InputError(
                f"the model was fitted on {self.graph_.num_features} features, this graph has "
                f"{graph.num_features}"
            )
        device = next(self.models_[0].parameters()).device
        x = features_on(self.features(graph), device)
        adjacency = SparseMatrix.from_scipy(graph.adjacency, device)
        known = torch.tensor(labels, device=device)
        shared: dict[str, Any] = {}
        each = []
        with torch.no_grad(), threads_for(graph.num_nodes):
            for model in self.models_:
                own = known.expand(model.replicas, -1)
                problem = Problem(
                    x=x,
                    adjacency=adjacency,
                    labels=own,
                    val_labels=torch.full_like(own, UNKNOWN),
                    pool=own < 0,
                    seeds=(0,) * model.replicas,
                    num_classes=len(self.classes_),
                    shared=shared,
                )
                each.append(self.judge(model, problem))
        mean: NDArray[np.float32] = torch.cat(each).mean(0).numpy(force=True)
        return mean

    def _is_fitted_graph(self, graph: Graph | Data) -> bool:
        """Whether a graph has the nodes, edges and features of the fitted one."""
        own, graph = self.graph_, as_graph(graph)
        if graph is own:
            return True
        if graph.num_nodes != own.num_nodes or graph.num_features != own.num_features:
            return False
        pairs = ((graph.adjacency, own.adjacency), (graph.features, own.features))
        return not any((sp.csr_array(left) != sp.csr_array(right)).nnz for left, right in pairs)

    def _check_fitted(self) -> None:
        if not hasattr(self, "proba_"):
            raise InputError(f"this {self.name} is not fitted yet; call fit first")


def device_of(name: str) -> torch.device:
    """The device of that name; ``auto`` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is asked for, but there is no CUDA GPU here")
    return device
