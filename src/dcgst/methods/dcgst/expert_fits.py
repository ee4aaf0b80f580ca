"""Fits of the experts: simple methods, each fitted alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from dcgst.engine.executors import Shared, current_cluster
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.row_models import BoundedRows, NetworkRows, ProbabilityRows, RowModel
from dcgst.methods.core.storage import storable, stored
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.em import EM
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.gcn import GCN
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.mlp import MLP
from dcgst.methods.pooling import log_pool
from dcgst.methods.sign import SIGN
from dcgst.numerics.graph_tensors import NodeFunction

NAMES = tuple(
    kind.name for kind in (GCN, MLP, CorrectAndSmooth, SIGN, LabelPropagation, EM, GaussianProcess)
)
"""All experts, in the order of reports. The teacher is one of the networks."""

SMALLEST = 1e-6


@storable
@dataclass(frozen=True)
class Fit:
    """One expert of R fits.

    Attributes:
        model: predicts nodes.
        proba: ``(R, n, C)`` of the nodes that it was fitted on.
        left_out: accuracy on left-out training labels in each fit, if it is known.
    """

    model: RowModel
    proba: Tensor
    left_out: Sequence[float] = ()


@dataclass(frozen=True)
class Fitted:
    """All experts of R fits, fitted alone.

    Attributes:
        log_proba: ``(R, n, C)`` by name.
        models: by name.
        left_out: accuracy of the Gaussian process on left-out training labels in each fit.
    """

    log_proba: Mapping[str, Tensor]
    models: Mapping[str, RowModel]
    left_out: Sequence[float]


def fit_experts(
    problem: Problem, val_labels: Tensor, first: Mapping[str, Tensor], trust: Tensor
) -> Fitted:
    """Fit all experts to the training labels; on a cluster, at the same time.

    EM uses ``val_labels`` to weight its views, also where they are training labels: it has too few
    parameters to memorize them. The GCN needs all edges: on a sample of a large graph there is
    none, and the teacher takes its place in EM.

    Args:
        problem: the input.
        val_labels: ``(R, n)``, -1 elsewhere.
        first: probabilities of the teacher, by name; it is not fitted again.
        trust: ``(R,)`` how representative the training labels are, from zero to one.
    """
    start = _starter(problem)
    kinds = [
        kind
        for kind in (GCN, MLP, SIGN, GaussianProcess)
        if kind.name not in first and (kind is not GCN or problem.graph.complete)
    ]
    running = {kind.name: start(fit_alone, kind) for kind in kinds}
    network = running[GCN.name].result().proba if GCN.name in running else first.get(GCN.name)
    network = next(iter(first.values())) if network is None else network
    running[EM.name] = start(fit_em, val_labels, network, trust)
    # What is propagated over the whole graph is divided into blocks of columns instead.
    fits = {LabelPropagation.name: fit_alone(problem, LabelPropagation)}
    mlp = running[MLP.name].result().model if MLP.name in running else None
    fits[CorrectAndSmooth.name] = fit_correct_and_smooth(
        problem, (lambda _: first[MLP.name]) if mlp is None else (lambda n: mlp(n).softmax(-1))
    )
    fits |= {name: future.result() for name, future in running.items()}
    proba = {**first, **{name: fits[name].proba for name in NAMES if name in fits}}
    return Fitted(
        log_proba={name: own.clamp_min(SMALLEST).log() for name, own in proba.items()},
        models={name: BoundedRows(fit.model, SMALLEST) for name, fit in fits.items()},
        left_out=fits[GaussianProcess.name].left_out,
    )


def _starter(problem: Problem) -> Callable[..., Future[Fit]]:
    """A function that fits an expert: on a cluster as a task, else at once."""
    cluster = current_cluster()
    if cluster is None:
        return lambda fit, *arguments: _completed(fit(problem, *arguments))
    shared = cluster.share(replace(problem, callbacks=()))
    return lambda fit, *arguments: cluster.submit(_fit_shared, fit, shared, arguments)


def _completed(fit: Fit) -> Future[Fit]:
    future: Future[Fit] = Future()
    future.set_result(fit)
    return future


def _fit_shared(fit: Callable[..., Fit], shared: Shared[Problem], arguments: Sequence[Any]) -> Fit:
    return fit(shared.get(), *arguments)


def fit_alone(problem: Problem, kind: type[GCN | LabelPropagation | GaussianProcess]) -> Fit:
    """Fit one expert that needs no other."""
    alone = replace(problem, checkpoint=problem.checkpoint.within(kind.name))
    if issubclass(kind, LabelPropagation):
        function = kind().fit_rows(alone)
        return Fit(ProbabilityRows(function), function(problem.graph))
    if issubclass(kind, GaussianProcess):
        return stored(alone.checkpoint, "fit", lambda: fit_kernel(alone), problem.device)
    model = NetworkRows(kind().train_network(alone)[0].model)
    return Fit(model, model(problem.graph).softmax(-1))


def fit_kernel(problem: Problem) -> Fit:
    """Fit the Gaussian process."""
    model, left_out = GaussianProcess().fit_rows(problem)
    return Fit(model, model(problem.graph).softmax(-1), left_out)


def fit_correct_and_smooth(problem: Problem, mlp: NodeFunction) -> Fit:
    """Fit Correct and Smooth to the probabilities of a network."""
    checkpoint = problem.checkpoint.within(CorrectAndSmooth.name)
    function = CorrectAndSmooth().propagate(replace(problem, checkpoint=checkpoint), mlp)
    return Fit(ProbabilityRows(function), function(problem.graph))


def fit_em(problem: Problem, val_labels: Tensor, network: Tensor, trust: Tensor) -> Fit:
    """Fit EM; arguments as in :func:`em_from_two_starts` and :func:`fit_experts`."""
    checkpoint = problem.checkpoint.within(EM.name)
    alone = replace(problem, checkpoint=checkpoint, val_labels=val_labels)
    return stored(
        checkpoint, "fit", lambda: em_from_two_starts(alone, network, trust), problem.device
    )


def em_from_two_starts(problem: Problem, network: Tensor, trust: Tensor) -> Fit:
    """EM, started from the labels and from a network.

    Labels from one region of a graph may start a component in the wrong place. The less
    representative they are, the more the second start counts.

    Args:
        problem: the input.
        network: ``(R, n, C)`` probabilities.
        trust: ``(R,)``.
    """
    em = EM()
    predictions = [em.predict_nodes(problem, problem.one_hot())]
    if bool((trust < 1).any()):
        start = em.given_weight * problem.one_hot() + network * problem.pool[..., None]
        second = em.predict_nodes(problem, start)
        predictions.append(replace(second, log_prior=(1 - trust).log()))
    prediction = log_pool(predictions)
    assert prediction.model is not None
    return Fit(prediction.model, prediction.log_proba.softmax(-1))
