"""The teacher of DC-GST: a network trained jointly with an edge predictor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from dcgst.engine.random import Purpose, Streams, derive
from dcgst.engine.training import TrainingOptions, cross_entropy, train
from dcgst.methods.core.network import Network, labeled_rows
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.trace import EDGE_PROBABILITIES
from dcgst.methods.dcgst.pairs import list_pairs
from dcgst.methods.dcgst.settings import Settings
from dcgst.nn.base import Output
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)
from dcgst.shift.cmd import cmd


class Teacher:
    r"""A network and, optionally, an edge predictor, trained jointly.

    .. math:: L = CE(A') + \beta\,(BCE(M, A) + \alpha\,CMD(Z_L, Z_U))

    A' is a graph variant sampled from the edge probabilities M.

    Args:
        network: the network to train.
        problem: the input.
        settings: of the method. Without an edge predictor, the network is trained on the original
            graph.
    """

    def __init__(self, network: Network, problem: Problem, settings: Settings) -> None:
        self.network, self.problem, self.settings = network, problem, settings
        self.predictor: EdgePredictor | None = None
        self.variants: Variants | None = None
        empty = np.zeros(0, dtype=EDGE_PROBABILITIES)
        self.edge_probabilities = [empty] * problem.num_fits
        if settings.edge_predictor:
            seeds = [derive(seed, Purpose.EDGE_PREDICTOR) for seed in problem.seeds]
            predictor = EdgePredictor(seeds, problem.x.shape[1], network.model.hidden)
            self.predictor = predictor.to(problem.device)

    def pretrain(self, options: TrainingOptions) -> None:
        """Train the network on the training labels, and the predictor on the edges of the graph."""
        problem = self.problem
        self.network.train("pretraining", problem.train_labels, problem, options)
        if self.predictor is not None:
            streams = self._streams(0)
            train(
                "edge-predictor",
                self.predictor,
                lambda: self._bce(self._node_factors(streams), streams),
                options,
                checkpoint=problem.checkpoint,
            )

    def update_pairs(self, output: Output, labels: Tensor) -> None:
        """Choose the node pairs that may change in the next training."""
        if self.predictor is not None:
            nodes, pairs = self.settings.edge_nodes, self.settings.edge_pairs
            listed = list_pairs(self.problem, output.embedding, labels >= 0, nodes, pairs)
            variants = Variants.of(self.problem.adjacency, listed)
            self.variants = variants if listed.shape[1] else None

    def train(self, labels: Tensor, options: TrainingOptions, stage: int, active: Tensor) -> None:
        """Minimize the joint loss over network and predictor.

        Args:
            labels: ``(R, n)`` training labels and pseudo-labels, -1 elsewhere.
            options: of the training.
            stage: number of the stage.
            active: ``(R,)`` bool, fits whose edge probabilities are recorded afterwards.
        """
        model: nn.Module = self.network.model
        if self.predictor is not None:
            model = nn.ModuleList([model, self.predictor])
        train(
            f"stage-{stage:02d}-teacher",
            model,
            self.make_loss(labels, stage),
            options,
            callbacks=self.problem.callbacks,
            checkpoint=self.problem.checkpoint,
        )
        self._record_edges(active)

    def predict(self) -> Output:
        """Output of the network on the original graph, without dropout or gradients."""
        return self.network.predict()

    def make_loss(self, labels: Tensor, stage: int) -> Callable[[], Tensor]:
        """Return a function that computes the joint loss ``(R,)`` of labels ``(R, n)``."""
        settings = self.settings
        # With cmd_trains="predictor", the CMD reaches parameters through sampled edges only.
        has_gradient = settings.cmd_trains == "both" or self.variants is not None
        use_cmd = has_gradient and settings.cmd_weight > 0 and settings.predictor_weight > 0
        if self.variants is None and not use_cmd:
            return self.network.training_loss(labels, self._seeds(stage))
        streams = self._streams(stage)
        rows = labeled_rows(labels)
        targets = labels[:, rows]

        def loss() -> Tensor:
            sampled = bce = None
            if self.variants is not None:
                factors = self._node_factors(streams)
                sampled = self._sample(factors, streams)
                bce = self._bce(factors, streams) if settings.edge_reconstruction else None
            output = self._forward(sampled, streams, rows)
            total = cross_entropy(output.logits, targets)
            if bce is not None:
                total = total + settings.predictor_weight * bce
            if use_cmd:
                distance = self._cmd(output.embedding, rows, targets)
                if settings.cmd_trains == "predictor" and sampled is not None:
                    distance = gradient_only_through(sampled, distance)
                total = total + settings.predictor_weight * settings.cmd_weight * distance
            return total

        return loss

    def _record_edges(self, active: Tensor) -> None:
        """Store the listed pairs and their predicted edge probabilities for active fits."""
        variants = self.variants
        if variants is None:
            return
        count = variants.pairs.shape[1]
        present = variants.base.values.gather(1, variants.positions[:, :count]) > 0
        with torch.no_grad():
            probability = pair_logits(self._node_factors(), variants.pairs).sigmoid()
        for fit in active.nonzero().flatten().tolist():
            valid = variants.valid[fit]
            table = np.zeros(int(valid.sum()), dtype=EDGE_PROBABILITIES)
            ends = variants.pairs[fit, valid].sort(dim=1).values.numpy(force=True)
            table["source"], table["target"] = ends.T
            table["present"] = present[fit, valid].numpy(force=True)
            table["probability"] = probability[fit, valid].numpy(force=True)
            self.edge_probabilities[fit] = table

    def _node_factors(self, streams: Streams | None = None) -> Tensor:
        """``(R, n, d)`` T of the edge predictor; TTᵀ are the logits of all pairs."""
        assert self.predictor is not None
        operator = self.problem.graph.normalized
        factors: Tensor = self.predictor(self.problem.x, operator, streams)
        return factors

    def _bce(self, factors: Tensor, streams: Streams) -> Tensor:
        return reconstruction_loss(factors, self.problem.adjacency.pattern, streams)

    def _sample(self, factors: Tensor, streams: Streams) -> Tensor:
        """``(R, P)`` which of the listed pairs are edges in this epoch."""
        assert self.variants is not None
        logits = pair_logits(factors, self.variants.pairs)
        return sample_edges(
            logits, streams, self.settings.edge_temperature, self.settings.edge_noise
        )

    def _forward(self, sampled: Tensor | None, streams: Streams, rows: Tensor) -> Output:
        """The network on the original graph, or on the variant with the sampled edges."""
        network = self.network
        operator = network.operator
        if sampled is not None and self.variants is not None:
            operator = network.model.operator(self.variants.with_edges(sampled))
        output: Output = network.model(network.x, operator, streams, rows)
        return output

    def _cmd(self, z: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """``(R,)`` CMD between the labeled rows and the pool."""
        labeled, pool = (targets >= 0).to(z.dtype), self.problem.pool.to(z.dtype)
        return cmd(z[:, rows], z, labeled, pool)

    def _seeds(self, stage: int) -> list[int]:
        return [derive(seed, Purpose.EDGE_SAMPLING, stage + 1) for seed in self.problem.seeds]

    def _streams(self, stage: int) -> Streams:
        return Streams(self._seeds(stage), self.problem.device)


def gradient_only_through(sampled: Tensor, value: Tensor) -> Tensor:
    """Return ``value`` ``(R,)`` with a gradient only through the sampled edges ``(R, P)``."""
    # ``linear`` has the gradient of ``value`` in ``sampled`` and none in the parameters of the
    # network; the detached term restores the value. The gradient is zero if the embedding
    # does not depend on the edges, as in APPNP.
    (slope,) = torch.autograd.grad(
        value.sum(), sampled, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    linear = (sampled * slope).sum(1)
    return linear + (value - linear).detach()
