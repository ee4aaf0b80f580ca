"""Fits of the experts: simple methods, each fitted alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.methods.core.row_models import BoundedRows, RowModel
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.em import EM
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.gcn import GCN
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.mlp import MLP
from dcgst.methods.pooling import log_pool
from dcgst.methods.sign import SIGN
from dcgst.numerics.graph_tensors import NodeFunction

FITTED: tuple[type[GCN | LabelPropagation | EM | GaussianProcess], ...] = (
    GCN,
    MLP,
    SIGN,
    LabelPropagation,
    EM,
    GaussianProcess,
)
"""Fitted alone, except for the one that is the teacher. Correct and Smooth needs the MLP only."""

SMALLEST = 1e-6


@dataclass(frozen=True)
class Fitted:
    """All experts of R fits, fitted alone.

    Attributes:
        log_proba: ``(R, n, C)`` by name.
        models: by name, those that can predict other nodes.
        left_out: accuracy of the Gaussian process on left-out training labels in each fit.
    """

    log_proba: Mapping[str, Tensor]
    models: Mapping[str, RowModel]
    left_out: Sequence[float]


def fit_experts(
    problem: Problem, val_labels: Tensor, first: Mapping[str, Tensor], trust: Tensor
) -> Fitted:
    """Fit all experts to the training labels.

    EM uses ``val_labels`` to weight its views, also where they are training labels: it has too few
    parameters to memorize them. The GCN needs all edges: on a sample of a large graph there is
    none, and the teacher takes its place in EM.

    Args:
        problem: the input.
        val_labels: ``(R, n)``, -1 elsewhere.
        first: probabilities of the teacher, by name; it is not fitted again.
        trust: ``(R,)`` how representative the training labels are, from zero to one.
    """
    proba: dict[str, Tensor] = dict(first)
    functions: dict[str, NodeFunction] = {}
    left_out: Sequence[float] = ()

    def add(name: str, function: NodeFunction) -> None:
        functions[name] = function
        proba[name] = function(problem.graph)

    for kind in FITTED:
        if kind.name not in proba and (kind is not GCN or problem.graph.complete):
            alone = replace(problem, checkpoint=problem.checkpoint.within(kind.name))
            if issubclass(kind, EM):
                start = proba[GCN.name] if GCN.name in proba else next(iter(first.values()))
                own = replace(alone, val_labels=val_labels)
                add(EM.name, em_from_two_starts(own, start, trust))
            elif issubclass(kind, GaussianProcess):
                model, left_out = kind().fit_rows(alone)
                add(kind.name, model.proba)
            else:
                add(kind.name, kind().fit_rows(alone))
        if kind is MLP:
            mlp = functions.get(MLP.name, lambda _: first[MLP.name])
            alone = replace(problem, checkpoint=problem.checkpoint.within(CorrectAndSmooth.name))
            add(CorrectAndSmooth.name, CorrectAndSmooth().propagate(alone, mlp))
    models = {name: BoundedRows(function, SMALLEST) for name, function in functions.items()}
    log_proba = {name: own.clamp_min(SMALLEST).log() for name, own in proba.items()}
    return Fitted(log_proba, models, left_out)


def em_from_two_starts(problem: Problem, network: Tensor, trust: Tensor) -> NodeFunction:
    """Probabilities of EM, started from the labels and from a network.

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
    return log_pool(predictions).proba_of(problem.graph)
