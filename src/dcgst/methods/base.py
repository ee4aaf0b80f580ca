"""The scikit-learn API of methods, and their settings."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError, unknown_name
from dcgst.evaluate.quality import accuracy
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph, as_graph
from dcgst.methods import other_graphs
from dcgst.methods import running as runner
from dcgst.methods.problem import Problem
from dcgst.methods.result import History, Result
from dcgst.methods.row_models import NetworkRows, RowModel
from dcgst.nn.backbones import BACKBONES, Backbone
from dcgst.registry import Registry
from dcgst.splits import Split
from dcgst.train.device import resolve_device
from dcgst.train.progress import counted
from dcgst.train.training import Callback

if TYPE_CHECKING:
    from torch_geometric.data import Data


def param(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    registry: Registry[Any] | None = None,
    symbol: str = "",
    group: str = "",
) -> Any:
    """Declare a setting.

    Args:
        default: the default value.
        doc: one line of description.
        low: smallest allowed value.
        high: largest allowed value.
        choices: all allowed values.
        registry: the value is a name in this registry, or one of its objects.
        symbol: its symbol in the paper.
        group: settings of one group are shown together; "" for the main group.
    """
    metadata = {
        "doc": doc,
        "low": low,
        "high": high,
        "choices": choices,
        "registry": registry,
        "symbol": symbol,
        "group": group,
    }
    return dataclasses.field(default=default, metadata=metadata)


def choices_of(field: dataclasses.Field[Any]) -> tuple[str, ...] | None:
    """All allowed names of a setting; None if it has no fixed choices."""
    registry: Registry[Any] | None = field.metadata["registry"]
    choices: tuple[str, ...] | None = field.metadata["choices"]
    return choices if registry is None else tuple(registry)


def check_settings(settings: Any) -> None:
    """Raise if a field declared with :func:`param` has an invalid value."""
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.metadata["registry"] is not None:
            field.metadata["registry"].resolve(value)
        else:
            _check_value(field.name, value, hints[field.name], field.metadata)


def parse_setting(kind: type, name: str, text: str) -> Any:
    """Convert the text of ``name=text`` to the type of the setting."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if name not in names:
        raise unknown_name("setting", name, names)
    allowed = _allowed_types(hints[name])
    if type(None) in allowed and text.lower() == "none":
        return None
    if bool in allowed and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if Mapping in allowed:
        return parse_shares(name, text)
    for number in (int, float):
        if number in allowed:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def parse_shares(name: str, text: str) -> dict[str, float]:
    """Convert ``a=0.2,b=0.8`` to numbers by name.

    Example:
        >>> parse_shares("prior", "fraud=0.06, ok=0.94")
        {'fraud': 0.06, 'ok': 0.94}
        >>> parse_shares("prior", "fraud=6%")
        {'fraud': 0.06}
    """
    shares = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            percent = value.endswith("%")
            shares[key] = float(value.removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            key = ""
        if not key:
            raise InputError(
                f"{name} must be classes and their shares, like fraud=0.06,ok=0.94; got {text!r}"
            )
    return shares


_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "none",
    Mapping: "numbers by class",
}


def _allowed_types(hint: Any) -> tuple[type, ...]:
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    members = typing.get_args(hint) if union else (hint,)
    return tuple(typing.get_origin(member) or member for member in members)


def _check_value(name: str, value: Any, hint: Any, metadata: Any) -> None:
    allowed = _allowed_types(hint)
    if value is None and type(None) in allowed:
        return
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    real = whole or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    fits = type(value) in allowed or (int in allowed and whole) or (float in allowed and real)
    fits = fits or (Mapping in allowed and isinstance(value, Mapping))
    if not fits:
        expected = " or ".join(_TYPE_NAMES.get(t, t.__name__) for t in allowed)
        raise InputError(f"{name} must be {expected}, got {value!r}")
    if real and not math.isfinite(value):
        raise InputError(f"{name} must be finite, got {value!r}")
    choices, low, high = metadata["choices"], metadata["low"], metadata["high"]
    if choices is not None and value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    if low is not None and value < low:
        raise InputError(f"{name} must be at least {low}, got {value!r}")
    if high is not None and value > high:
        raise InputError(f"{name} must be at most {high}, got {value!r}")


class FittedAttributes:
    """The parts of ``result_`` under the names that scikit-learn would give them.

    See :class:`~dcgst.Result`. ``classes_`` holds the class names.
    """

    name: ClassVar[str]
    graph_: Graph
    split_: Split
    result_: Result

    def __getattr__(self, attribute: str) -> Any:
        """Called for attributes that do not exist."""
        if attribute in ("graph_", "split_", "result_"):
            raise AttributeError(f"this {self.name} is not fitted yet; call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")

    @property
    def proba_(self) -> NDArray[np.float32]:
        return self.result_.proba

    @property
    def labels_(self) -> NDArray[np.int64]:
        return self.result_.labels

    @property
    def labeled_stage_(self) -> NDArray[np.int64]:
        return self.result_.labeled_stage

    @property
    def agreement_(self) -> NDArray[np.float32]:
        return self.result_.agreement

    @property
    def history_(self) -> History:
        return self.result_.history

    @property
    def stop_reason_(self) -> str:
        return self.result_.stop_reason

    @property
    def candidates_(self) -> NDArray[np.void]:
        return self.result_.candidates

    @property
    def edge_probabilities_(self) -> NDArray[np.void]:
        return self.result_.edge_probabilities

    @property
    def member_weights_(self) -> Mapping[str, float]:
        return self.result_.member_weights

    @property
    def models_(self) -> tuple[Backbone, ...]:
        return self.result_.models

    @property
    def classes_(self) -> tuple[str, ...]:
        return self.graph_.class_names


@dataclass(eq=False, kw_only=True)
class Method(FittedAttributes, ABC):
    """A node classifier. Its fields are its settings; ``fit`` sets ``result_``.

    A subclass sets ``name`` and defines :meth:`solve`.

    Example:
        >>> from dcgst import METHODS
        >>> model = METHODS["gcn"](hidden=16)
        >>> model.name, model.get_params()["hidden"]
        ('gcn', 16)
    """

    name: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    all_at_once: ClassVar[bool] = False
    """Whether to compute all fits together on a CPU too, because they share most of the work."""

    deterministic: ClassVar[bool] = False
    """Whether nothing is random, so that all replicas are equal."""

    calibrated: ClassVar[bool] = False
    """Whether the method calibrates its probabilities itself."""

    propagates_labels: ClassVar[bool] = False
    """Whether predictions use the labels that are known in the graph that is predicted."""

    models_all_nodes: ClassVar[bool] = False
    """Whether the method models the distribution of all nodes, labeled or not."""

    seed: int = param(0, "seed of everything random", low=0)
    replicas: int = param(1, "independent fits whose probabilities are averaged", low=1)
    device: str = param("auto", "where to compute: auto, cpu, cuda, cuda:1 …")
    prior: Mapping[str, float] | None = param(
        None, "known class shares of the nodes to predict, like fraud=0.06,ok=0.94"
    )
    chunk_size: int | None = param(
        None,
        "fits (runs x replicas) computed together; default all on a GPU, mostly one on a CPU",
        low=1,
    )

    @abstractmethod
    def solve(self, problem: Problem) -> list[Result]:
        """The algorithm, for R fits together. Each fit must not depend on the others."""

    def count_trainings(self, validation: bool = False) -> int:
        """Maximum number of trainings in one fit, with or without validation nodes."""
        return 1

    @property
    def by_rows(self) -> bool:
        """Whether fitted models predict a node from its own row of features.

        Results of a fit to a sample of the nodes then have a ``row_model`` that predicts all nodes.
        """
        return False

    @property
    def fits_sample(self) -> bool:
        """Whether the method is fitted to a sample of the nodes of a large graph."""
        return False

    def predicts_rows(self, result: Result) -> bool:
        """Whether the models of :meth:`models_on` need some rows of a graph at a time only."""
        return False

    def scale_features(self, rows: FeatureMatrix) -> FeatureMatrix:
        """Scale rows of features as the method needs them; by default not at all."""
        return rows

    def describe_members(self) -> dict[str, str]:
        """What each member of an ensemble does, by name; empty for other methods."""
        return {}

    def members_without_model(self, result: Result, labels: NDArray[np.int64]) -> list[str]:
        """Members of an ensemble that do not take part in the prediction of another graph.

        Args:
            result: of the fit.
            labels: ``(n,)`` known class codes there, -1 elsewhere.
        """
        return []

    def apply(self, result: Result, problem: Problem) -> list[Tensor]:
        """``(1, n, C)`` probabilities of each fitted replica on another graph.

        Args:
            result: of the fit.
            problem: the other graph, with one fit whose training labels are known there.
        """
        models = self.models_on(result, problem)
        return [model(problem.graph).softmax(-1) for model in counted("replicas", models)]

    def models_on(self, result: Result, problem: Problem) -> Sequence[RowModel]:
        """The fitted model of each replica for the nodes of another graph; arguments as above."""
        fitted: Sequence[RowModel | None] = result.predictors
        fitted = fitted or [NetworkRows(network) for network in result.models]
        models = [self.model_on(model, problem) for model in fitted or (None,)]
        known = [model for model in models if model is not None]
        if not known:
            raise InputError(f"{self.name} has no model that can be applied to another graph")
        return known

    def model_on(self, model: RowModel | None, problem: Problem) -> RowModel | None:
        """A fitted model for the nodes of another graph; None if there is none.

        Args:
            model: of the fit; None if it has none.
            problem: the other graph, whose known labels are its training labels.
        """
        return model

    # --- settings -----------------------------------------------------------------------------

    @classmethod
    def from_preset(cls, preset: str = "default", **settings: Any) -> Self:
        """Create the method with the settings of a preset, overridden by ``settings``."""
        if preset not in cls.presets:
            raise unknown_name(f"preset of {cls.name}", preset, cls.presets)
        known = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                raise unknown_name(f"setting of {cls.name}", name, known)
        return cls(**{**cls.presets[preset], **settings})

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> Self:
        """Create the method with settings from a file.

        Objects that the file names must be registered or imported already: a file never decides
        which module is imported.
        """
        for field in dataclasses.fields(cls):
            registry, value = field.metadata.get("registry"), settings.get(field.name)
            if registry is not None and isinstance(value, str):
                registry.known(value)
        return cls.from_preset(**settings)

    @classmethod
    def nearest_preset(cls, preset: str, labels_per_class: float) -> str:
        """Return ``preset`` if it exists, else the best match among presets ``preset/LABELS``.

        The best match is the one whose LABELS is closest to ``labels_per_class``. Some papers
        publish settings by number of labels per class.
        """
        rows = {name: name.removeprefix(f"{preset}/") for name in cls.presets}
        counts = {name: int(row) for name, row in rows.items() if row.isdecimal()}
        if preset in cls.presets or not counts:
            return preset
        return min(counts, key=lambda name: abs(counts[name] - labels_per_class))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as in scikit-learn."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def set_params(self, **settings: Any) -> Self:
        """Change settings, as in scikit-learn."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise unknown_name(f"setting of {self.name}", name, known)
            setattr(self, name, value)
        return self

    def config(self) -> dict[str, Any]:
        """The settings as values that JSON can represent; classes become names."""
        return {
            name: BACKBONES.name_of(value) if isinstance(value, type) else value
            for name, value in self.get_params().items()
        }

    def check(self) -> None:
        """Raise if a setting has an invalid value, or if the device is not available."""
        self.check_values()
        resolve_device(self.device)

    def check_values(self) -> None:
        """Raise if a setting has an invalid value."""
        check_settings(self)

    # --- scikit-learn API ---------------------------------------------------------------------

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
            split: one run. Default: the graph's ``train`` and ``val`` masks; without a ``train``
                mask, all known labels are training labels, and there is no validation.
            callbacks: called with an event after each epoch and stage.
            checkpoint: folder for expensive steps, to resume after an interruption. The caller
                ensures that graph, split and settings are the same.
        """
        self.check()
        graph = as_graph(graph)
        split = Split.known_labels(graph) if split is None else split
        if isinstance(split, Split) and len(split) != 1:
            raise InputError(f"fit needs one run, the split has {len(split)}; use fit_runs")
        (self.result_,) = runner.fit_runs(self, graph, split, callbacks, checkpoint)
        self.graph_, self.split_ = graph, split
        return self

    def fit_runs(
        self, graph: Graph | Data, split: Split, *, callbacks: Sequence[Callback] = ()
    ) -> list[Result]:
        """Fit every run of a split and return their results; ``result_`` is not changed."""
        self.check()
        return runner.fit_runs(self, as_graph(graph), split, callbacks)

    def predict_proba(
        self, graph: Graph | Data | None = None, labels: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """``(n, C)`` probabilities on the fitted graph, or of the fitted model on another graph.

        Args:
            graph: another graph with the same features.
            labels: ``(n,)`` known class codes there, -1 elsewhere. The labels of ``graph`` itself
                are never used. Without labels, the ensemble leaves out members that propagate them.
        """
        self._check_fitted()
        if graph is None or (labels is None and self._is_fitted_graph(graph)):
            return self.proba_
        graph = as_graph(graph)
        known = np.full(graph.num_nodes, UNKNOWN) if labels is None else np.asarray(labels)
        if known.shape != (graph.num_nodes,):
            raise InputError(f"labels must be {graph.num_nodes} class codes, got {known.shape}")
        return other_graphs.predict(self, self.result_, graph, known, self.classes_)

    def predict(
        self, graph: Graph | Data | None = None, labels: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """``(n,)`` most likely classes; on the fitted graph, given labels are kept.

        Arguments as in :meth:`predict_proba`.
        """
        proba = self.predict_proba(graph, labels)
        codes: NDArray[np.int64] = proba.argmax(axis=1)
        return self.labels_ if proba is self.proba_ else codes

    def score(self, graph: Graph | Data, mask: NDArray[np.bool_] | None = None) -> float:
        """Accuracy against the labels of ``graph``.

        Args:
            graph: the graph with true labels.
            mask: nodes to evaluate. Default: the test nodes of the split; on another graph, all
                nodes of known class.
        """
        self._check_fitted()
        graph = as_graph(graph)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != np.bool_ or mask.shape != (graph.num_nodes,):
                raise InputError(
                    f"mask must be {graph.num_nodes} booleans, got {mask.dtype} {mask.shape}; the "
                    "true classes are the graph's labels"
                )
        else:
            fitted = self._is_fitted_graph(graph)
            mask = self.split_.test(graph)[0] if fitted else np.ones(graph.num_nodes, dtype=bool)
        known = mask & (graph.labels != UNKNOWN)
        if not known.any():
            raise InputError(
                "no node to score has a known class; pass a graph with more labels than were "
                "fitted, or a mask"
            )
        return accuracy(self.predict(graph), graph.labels, known)

    def embed(self, graph: Graph | Data | None = None) -> NDArray[np.float32]:
        """``(n, replicas * hidden)`` node embeddings: the last hidden layer of each replica.

        Args:
            graph: default the fitted graph; another one must have the same features.
        """
        self._check_fitted()
        return other_graphs.embed(
            self, self.result_, as_graph(self.graph_ if graph is None else graph)
        )

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
        if not hasattr(self, "result_"):
            raise InputError(f"this {self.name} is not fitted yet; call fit first")
