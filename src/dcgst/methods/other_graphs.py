"""A fitted method on another graph than that of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.features.graph_tensors import GraphTensors, NodeRows, draw_sample
from dcgst.features.matrix import empty
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import forget
from dcgst.methods.problem import Problem, follow_shares, shares_of
from dcgst.methods.result import Result
from dcgst.methods.row_models import RowModel
from dcgst.methods.running import confidence_rows, restore_confidence, scale_confidence
from dcgst.methods.sampling import is_large, open_large, some_labeled
from dcgst.train.device import threads_for
from dcgst.train.progress import counted

if TYPE_CHECKING:
    from dcgst.methods.base import Method

RESERVED = 1 << 30
"""Bytes of memory for the prediction of a block, beside the propagated features."""


def predict(
    method: Method,
    result: Result,
    graph: Graph,
    labels: NDArray[np.int64],
    class_names: Sequence[str],
) -> NDArray[np.float32]:
    """``(n, C)`` mean probabilities of all replicas on another graph.

    Args:
        method: the method.
        result: of its fit.
        graph: a graph with the same features as the fitted one.
        labels: ``(n,)`` known class codes there, -1 elsewhere.
        class_names: the classes.
    """
    check_features(result, graph)
    if predicts_in_blocks(method, result, graph):
        mean = _predict_in_blocks(method, result, graph, labels, len(class_names))
    else:
        mean = _predict_at_once(method, result, graph, labels, len(class_names))
    return follow_shares(mean, labels == UNKNOWN, shares_of(method.prior, class_names))


def predicts_in_blocks(method: Method, result: Result, graph: Graph) -> bool:
    """Whether another graph is predicted in blocks of rows, in bounded memory."""
    return is_large(graph.num_nodes) and method.predicts_rows(result)


def _predict_at_once(
    method: Method, result: Result, graph: Graph, labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float32]:
    tensors = tensors_for(method, result, graph)
    with torch.no_grad(), threads_for(graph.num_nodes):
        problem = Problem.build(tensors, labels[None], num_classes)
        each = [own[0].numpy(force=True) for own in method.apply(result, problem)]
    mean: NDArray[np.float32] = np.mean(each, axis=0)
    pool = labels == UNKNOWN
    if method.calibrated and len(each) > 1:
        mean = restore_confidence(mean, each, pool)
    return mean


def _predict_in_blocks(
    method: Method, result: Result, graph: Graph, labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float32]:
    """The same, with features propagated in blocks of columns, and nodes predicted in blocks."""
    labeled = some_labeled(graph, labels, method.seed)
    with (
        torch.no_grad(),
        open_large(method, graph, RESERVED, learned=result.learned) as large,
    ):
        sample = draw_sample(large, labeled, method.scale_features)
        known = np.where(sample.chosen, labels[sample.positions], UNKNOWN)
        problem = Problem.build(sample, known[None], num_classes)
        models = method.models_on(result, problem)

        def predict_rows(model: RowModel, nodes: NodeRows) -> NDArray[np.float32]:
            found: NDArray[np.float32] = model(nodes)[0].softmax(-1).numpy(force=True)
            return found

        mean = empty((graph.num_nodes, num_classes), large.workspace.folder)
        for part in counted("prediction", list(large.ranges())):
            nodes = sample.at(part)
            mean[part] = np.mean([predict_rows(model, nodes) for model in models], axis=0)
            forget(mean)
        pool = labels == UNKNOWN
        if not method.calibrated or len(models) == 1:
            return mean
        rows = sample.at(torch.from_numpy(confidence_rows(pool)))
        each = [predict_rows(model, rows) for model in models]
        return scale_confidence(mean, each, pool)


def embed(method: Method, result: Result, graph: Graph) -> NDArray[np.float32]:
    """``(n, replicas * hidden)`` last hidden layers of fitted networks, concatenated."""
    models = result.models
    if not models:
        raise InputError(f"{method.name} has no network, and so no embeddings")
    tensors = tensors_for(method, result, graph)
    with torch.no_grad(), threads_for(graph.num_nodes):
        each = [
            model(model.inputs(tensors), model.operator(tensors.adjacency)).embedding
            for model in models
        ]
    joined: NDArray[np.float32] = torch.cat([h for z in each for h in z], dim=-1).numpy(force=True)
    return joined


def tensors_for(method: Method, result: Result, graph: Graph) -> GraphTensors:
    """A graph as the fitted models need it; raises if it has other features."""
    check_features(result, graph)
    learned = result.learned
    device = torch.device("cpu")
    if learned is not None:
        device = learned.propagation.factor.device
    elif result.models:
        device = next(result.models[0].parameters()).device
    return GraphTensors.of(
        graph.features, graph.adjacency, device, method.scale_features, learned=learned
    )


def check_features(result: Result, graph: Graph) -> None:
    """Raise if a graph has another number of features than that of the fit."""
    sizes = [network.num_features for network in result.models]
    sizes += [] if result.learned is None else [len(result.learned.propagation.factor)]
    if sizes and graph.num_features != sizes[0]:
        raise InputError(
            f"the model was fitted on {sizes[0]} features, this graph has {graph.num_features}"
        )
