"""Fit a method and store the result in a run folder; interrupted fits can be resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dcgst.errors import InputError, WriteError, option
from dcgst.evaluate.calibration import Calibration, calibrate, calibrated_in_fit
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import available_memory, check_memory
from dcgst.methods import DEFAULT_METHOD, METHODS, Method
from dcgst.methods.problem import follow_shares, shares_of
from dcgst.methods.relations import Relation, use_relations, weigh_relations
from dcgst.methods.result import AGREEMENT
from dcgst.methods.running import check_split, fits_sample
from dcgst.runs import folder as folder_format
from dcgst.runs.assessment import compute_metrics
from dcgst.runs.predictions import check_parquet, column_use
from dcgst.runs.run import Run, open_run
from dcgst.splits import Split
from dcgst.tables import Input, add_labels, read
from dcgst.tables.nodes import StoreReference
from dcgst.train.device import resolve_device
from dcgst.train.executors import in_parallel, open_executor
from dcgst.train.training import Callback
from dcgst.version import VERSION, versions

if TYPE_CHECKING:
    from torch_geometric.data import Data


PLACEHOLDERS = ("unknown", "-1", "?", "-", "unlabeled", "unlabelled", "other", "missing", "tbd")
"""Texts that often stand for an unknown class; an error message mentions them."""


def check_graph(graph: Graph) -> None:
    """Raise if there is nothing to learn from or nothing to predict."""
    known = graph.labels != UNKNOWN
    if not known.any():
        raise InputError(
            "no node has a label; fill the label column for at least one node of each of two "
            "classes"
        )
    if known.all() and "train" not in graph.masks:
        codes, counts = np.unique(graph.labels, return_counts=True)
        most = graph.class_names[codes[counts.argmax()]]
        hint = ""
        if most.lower() in PLACEHOLDERS:
            hint = f"; {counts.max()} are {most!r}: if these are unknown, leave the cells empty"
        raise InputError(f"every node has a label: there is nothing to predict{hint}")
    counts = np.bincount(graph.labels[known], minlength=graph.num_classes)
    if graph.num_classes > 20 and counts.max() == 1:
        raise InputError(
            f"each of the {graph.num_classes} classes has a single label; does the label column "
            f"contain names or ids? Set the right column with {option('label')}"
        )


def memory_needed(graph: Graph, model: Method, *, in_store: bool = False) -> int:
    """Approximate peak memory of a fit on a CPU, in bytes; measured on graphs of known size.

    Args:
        graph: the graph.
        model: the method.
        in_store: whether the graph is in a store.
    """
    stored = graph.features.nnz if sp.issparse(graph.features) else graph.features.size
    if fits_sample(model, graph):
        if in_store:
            return int(2e9 + (200 + 40 * (model.replicas - 1)) * graph.num_nodes)
        # The fit itself needs little; the files of a run folder are made in memory.
        per_node = 1500 + 40 * graph.num_classes
        return int(1.5e9 + graph.num_nodes * per_node + 12 * stored + 30 * graph.num_edges)
    hidden = getattr(model, "hidden", 64)
    per_node = 6000 + 80 * graph.num_classes + 24 * hidden
    per_column = 2000 + 16 * hidden  # start of the smoothed views; weights, gradients, Adam
    return int(
        3e8
        + graph.num_nodes * per_node
        + graph.num_features * per_column
        + 12 * stored
        + 100 * graph.num_edges
    )


def check_fit_memory(graph: Graph, model: Method, *, in_store: bool = False) -> None:
    """Raise if a fit needs more memory than is available; arguments of :func:`memory_needed`."""
    small = memory_needed(graph, model, in_store=True) < available_memory()
    remedy = "use a machine with more memory, or a part of the graph"
    if not in_store and small:
        remedy = "import the tables into a store (dcgst import): a fit of a store needs less"
    check_memory(
        memory_needed(graph, model, in_store=in_store),
        f"{graph.num_nodes:,} nodes with {graph.num_classes:,} classes need",
        remedy,
    )


REPLICAS = 5
"""Default number of replicas of a fit that is stored."""

MANY_NODES = 1_000_000
"""Number of nodes from which the default is one replica."""


def default_replicas(graph: Graph) -> int:
    """Number of replicas if the user did not set it."""
    return REPLICAS if graph.num_nodes < MANY_NODES else 1


def fit(
    source: Input | Run | Graph | Data,
    folder: str | Path,
    model: Method | None = None,
    *,
    labels: Sequence[str | Path] = (),
    audit: Sequence[str | Path] = (),
    validate: float = 0.0,
    resume: bool = False,
    overwrite: bool = False,
    spreadsheet: bool = False,
    callbacks: Sequence[Callback] = (),
    ray: str | None = None,
) -> Run:
    """Fit a method and store the result in a folder.

    Args:
        source: the result of :func:`dcgst.read`, a :class:`Graph`, PyG ``Data``, or another run,
            whose graph and labels are used.
        folder: where to store the result; it must not exist yet.
        model: the method; default: that of the other run, or the ensemble with five replicas
            (from a million nodes on, one).
        labels: tables of ids and classes to add to the labels.
        audit: tables of ids and classes of nodes that were chosen at random; see
            :func:`dcgst.draw_audit`. These labels determine weights, calibration and class shares,
            and the accuracy is estimated from them.
        validate: share of the given labels to use for validation instead of training.
        resume: continue an interrupted fit.
        overwrite: replace an existing run.
        spreadsheet: put an apostrophe before text in ``predictions.csv`` that a spreadsheet would
            run as a formula.
        callbacks: called with an event after each epoch and stage.
        ray: run replicas, and the propagation of a graph in a store, on a Ray cluster: ``auto``,
            ``local`` or an address. The folder must be on a file system that all machines share.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> run.predictions[0]["class"], (run.folder / "predictions.csv").exists()
        ('0', True)
    """
    if resume and overwrite:
        raise InputError(
            f"{option('resume', True)} continues a run and {option('overwrite', True)} replaces "
            "it; choose one"
        )
    if isinstance(source, Run):
        model = model or source.new_method()
        source = source.as_input()
    job = Job.prepare(add_labels(read(source), labels, audit), model, validate)
    folder, identity = Path(folder), job.identity()
    with _parallel(ray, job.model), folder_format.locked(folder):
        if folder_format.prepare(folder, identity, resume=resume, overwrite=overwrite):
            return _complete_run(folder, spreadsheet=spreadsheet)
        with _removed_if_refused(folder, resume):
            run = job.fit(folder, callbacks)
            run.info.update(spreadsheet=spreadsheet, fingerprint=identity["fingerprint"])
            return _write(run, job.data)


@contextmanager
def _removed_if_refused(folder: Path, resume: bool) -> Iterator[None]:
    """Remove what was written if the input cannot be fitted: it would fail again."""
    try:
        yield
    except WriteError:  # what was stored so far is still valid
        raise
    except InputError:
        if not resume:
            folder_format.remove(folder)
        raise


@dataclass(frozen=True)
class Job:
    """What is fitted: checked input, method and split.

    Attributes:
        data: graph and labels, with the weighted sum of the relations.
        model: the method.
        split: the known labels, divided into training and validation.
        relations: what was found about each relation.
        validate: share of the given labels that are used for validation.
    """

    data: Input
    model: Method
    split: Split
    relations: list[Relation]
    validate: float

    @classmethod
    def prepare(cls, data: Input, model: Method | None, validate: float) -> Job:
        """Check everything that can be checked before a fit."""
        if validate and data.audited:
            raise InputError(
                f"{option('validate')} and an audit both choose validation nodes; use one of them"
            )
        if model is not None and not isinstance(model, Method):
            raise InputError(
                "the model must be a method such as EM(), got "
                f"{getattr(model, '__name__', model)!r}"
            )
        model = model or METHODS[DEFAULT_METHOD](replicas=default_replicas(data.graph))
        model.check()
        check_graph(data.graph)
        split = Split.known_labels(data.graph).hold_out(data.graph, validate, model.seed)
        check_split(data.graph, split)
        data, relations = weigh(data, split)
        graph = data.graph
        shares_of(model.prior, graph.class_names)  # raises if they are invalid
        if validate and "train" not in graph.masks and "random_validation" in model.get_params():
            # Held-out labels are as biased as the others.
            model = type(model)(**{**model.get_params(), "random_validation": False})
        check_fit_memory(graph, model, in_store=data.store is not None)
        if data.store is not None:
            check_parquet()
        return cls(data, model, split, relations, validate)

    def identity(self) -> dict[str, Any]:
        """What the same fit has in common with this one."""
        name = METHODS.name_of(type(self.model))
        config = self.model.config()
        return folder_format.identity(self.data.graph, self.split, name, config, self.data.store)

    def fit(self, folder: Path, callbacks: Sequence[Callback]) -> Run:
        """Fit the method with a checkpoint in a folder, and calibrate its probabilities."""
        start = time.perf_counter()
        checkpoint = (folder / folder_format.CHECKPOINT).absolute()  # workers have other folders
        data = self.data
        self.model.fit(data.graph, self.split, callbacks=callbacks, checkpoint=checkpoint)
        seconds = round(time.perf_counter() - start, 1)
        run = _make_run(folder, data, self.model)
        if data.encoder and data.store is None:  # else it would read all features again
            used = column_use(data.encoder, data.graph.features, run.result.labels)
            run.info.update(columns_used=[asdict(column) for column in used])
        run.info.update(
            seconds=seconds,
            relations=[asdict(relation) for relation in self.relations],
            validate=self.validate,
            audited=data.audited,
        )
        return run


def _complete_run(folder: Path, *, spreadsheet: bool) -> Run:
    """A run that needs no fit, if its table of predictions was written as requested."""
    run = open_run(folder)
    if spreadsheet and not run.info.get("spreadsheet"):
        raise InputError(
            f"{folder} is complete and was written without "
            f"{option('spreadsheet', True)}; use {option('overwrite', True)}, "
            "or write its predictions to a new table"
        )
    return run


def _write(run: Run, data: Input) -> Run:
    """Write the run folder."""
    stored = folder_format.Stored(run.info, data.graph, run.split, run.result, data.table)
    metrics = compute_metrics(run)
    spreadsheet = run.info["spreadsheet"]
    folder_format.write(run.folder, stored, run.prediction_table, metrics, spreadsheet=spreadsheet)
    if data.store is None:
        return run
    proba = folder_format.read_probabilities(run.folder)  # the file they were in is removed
    return replace(run, result=replace(run.result, proba=proba))


def weigh(data: Input, split: Split) -> tuple[Input, list[Relation]]:
    """The input with the weighted sum of its relations, and what was found about them."""
    if len(data.relations) < 2:
        return data, [Relation(**stored) for stored in data.weighed]
    relations = weigh_relations(data.graph, data.relations, split.train[0])
    graph = use_relations(data.graph, data.relations, relations)
    return replace(data, graph=graph, relations={}), relations


@contextmanager
def _parallel(ray: str | None, model: Method) -> Iterator[None]:
    """Use a Ray cluster; nothing if there is none."""
    if ray is None:
        yield
        return
    gpu = resolve_device(model.device).type == "cuda"
    executor = open_executor(os.cpu_count() or 1, ray, gpu=gpu)
    try:
        with in_parallel(executor):
            yield
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _make_run(folder: Path, data: Input, model: Method) -> Run:
    """The run of a fitted method, with calibrated probabilities."""
    calibration = _calibrate(model)
    info: dict[str, Any] = {
        "format": folder_format.FORMAT,
        "name": data.graph.name,
        "dcgst": VERSION,
        "versions": versions(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "method": METHODS.name_of(type(model)),
        "settings": model.config(),
        "calibration": asdict(calibration),
        "columns": asdict(data.columns),
        "encoder": data.encoder.to_json() if data.encoder else None,
        "spectral": data.spectral,
        "store": _describe_store(folder, data.store),
        "notes": list(data.notes),
        "stop_reason": model.stop_reason_,
        "member_weights": dict(model.member_weights_),
        "expectation": dict(model.result_.expectation),
        "models": [network.config() for network in model.models_],
    }
    shares = shares_of(model.prior, model.graph_.class_names)
    proba = follow_shares(calibration.apply(model.proba_), model.split_.pool[0], shares)
    result = replace(model.result_, proba=proba)
    return Run(folder, info, model.graph_, model.split_, result, data.store)


def _describe_store(folder: Path, store: StoreReference | None) -> dict[str, str] | None:
    if store is None:
        return None
    try:
        relative = Path(os.path.relpath(store.path, folder.absolute())).as_posix()
    except ValueError:  # on another drive
        relative = str(store.path)
    return {"path": str(store.path), "relative_path": relative, "digest": store.digest}


def _calibrate(model: Method) -> Calibration:
    graph, split = model.graph_, model.split_
    val_labels = np.where(split.val[0], graph.labels, UNKNOWN)
    if model.calibrated:
        agreement = AGREEMENT in model.result_.expectation
        calibration = calibrated_in_fit(int(split.val[0].sum()), agreement)
    else:
        calibration = calibrate(model.proba_, val_labels)
    if calibration.nodes and "train" not in graph.masks:
        description = (
            f"{calibration.description}, which are as biased as the labels they were taken from"
        )
        return replace(calibration, description=description)
    return calibration
