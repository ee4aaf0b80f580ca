"""A fitted method on another graph than that of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.engine.threads import threads_for
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods.core.averaging import restore_confidence
from dcgst.methods.core.prior import follow_shares, shares_of
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result
from dcgst.numerics.graph_tensors import GraphTensors

if TYPE_CHECKING:
    from dcgst.methods.core.base import Method


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
    tensors = tensors_for(method, result, graph)
    with torch.no_grad(), threads_for(graph.num_nodes):
        problem = Problem.build(tensors, labels[None], len(class_names))
        each = [own[0].numpy(force=True) for own in method.apply(result, problem)]
    mean: NDArray[np.float32] = np.mean(each, axis=0)
    pool = labels == UNKNOWN
    if method.calibrated and len(each) > 1:
        mean = restore_confidence(mean, each, pool, np.zeros_like(pool))
    return follow_shares(mean, pool, shares_of(method.prior, class_names))


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
    learned = result.learned
    sizes = [network.num_features for network in result.models]
    sizes += [] if learned is None else [len(learned.propagation.factor)]
    if sizes and graph.num_features != sizes[0]:
        raise InputError(
            f"the model was fitted on {sizes[0]} features, this graph has {graph.num_features}"
        )
    device = torch.device("cpu")
    if learned is not None:
        device = learned.propagation.factor.device
    elif result.models:
        device = next(result.models[0].parameters()).device
    scaled = method.scale_features(graph.features)
    return GraphTensors(scaled, graph.adjacency, device, graph.features, learned)
