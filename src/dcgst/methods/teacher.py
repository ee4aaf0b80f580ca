"""The teacher of DC-GST: a network trained on graph variants that close the shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dcgst.engine.random import Streams, derive
from dcgst.engine.training import Schedule, cross_entropy, train
from dcgst.methods.neural import Network
from dcgst.methods.outcome import EDGES, Problem
from dcgst.methods.pairs import PairSettings, list_pairs
from dcgst.nn.base import Output
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)
from dcgst.shift.cmd import cmd

PREDICTOR, STAGES = 7, 8
"""Purposes for which random numbers are drawn."""


@dataclass(frozen=True)
class LossSettings:
    """Weights and readings of the joint loss.

    Attributes:
        cmd_weight: α.
        predictor_weight: β.
        cmd_trains: ``both`` teacher and predictor, or the ``predictor`` alone.
        representation: ``hidden`` or ``logits``, where the shift is measured.
        support: of the CMD; None for the range of the representation.
        temperature: τ of the edge draws.
        noise: ``logistic`` or ``gumbel``.
    """

    cmd_weight: float
    predictor_weight: float
    cmd_trains: str
    representation: str
    support: float | None
    temperature: float
    noise: str


class Teacher:
    """A network and, unless it is to see the graph as it is, an edge predictor, trained jointly.

    Args:
        network: to be trained.
        problem: what may be seen.
        settings: of the loss.
        pairs: how many pairs the predictor may change; None for no predictor.
    """

    def __init__(
        self,
        network: Network,
        problem: Problem,
        settings: LossSettings,
        pairs: PairSettings | None,
    ) -> None:
        self.network, self.problem, self.settings, self.pairs = network, problem, settings, pairs
        self.predictor: EdgePredictor | None = None
        self.variants: Variants | None = None
        if pairs is not None:
            seeds = [derive(seed, PREDICTOR) for seed in problem.seeds]
            predictor = EdgePredictor(seeds, problem.x.shape[1], network.model.hidden)
            self.predictor = predictor.to(problem.labels.device)
            self.operator = predictor.operator(problem.adjacency)

    def pretrain(self, schedule: Schedule) -> None:
        """Teach the network the given labels, and the predictor the graph's edges."""
        self.network.train(self.problem.labels, self.problem, schedule)
        if self.predictor is not None:
            streams = self._streams(0)
            train(
                self.predictor,
                lambda: self._bce(self._represent(streams), streams),
                schedule,
                memory=self.problem.memory,
            )

    def list_pairs(self, output: Output, labels: Tensor) -> None:
        """Choose anew which pairs of nodes may change."""
        if self.pairs is not None:
            pairs = list_pairs(self.z(output), labels, self.problem, self.pairs)
            variants = Variants.of(self.problem.adjacency, pairs)
            self.variants = variants if pairs.shape[1] else None

    def train(self, labels: Tensor, schedule: Schedule, stage: int) -> None:
        """Minimise CE on the variants + β (BCE + α CMD) over network and predictor."""
        model: nn.Module = self.network.model
        if self.predictor is not None:
            model = nn.ModuleList([model, self.predictor])
        loss = self._loss(labels, self._streams(stage))
        problem = self.problem
        train(model, loss, schedule, callbacks=problem.callbacks, memory=problem.memory)

    def outputs(self, on_variant: bool = False) -> Output:
        """What the network says, in evaluation mode, on the graph as it is or on a variant."""
        if not on_variant or self.variants is None:
            return self.network.outputs()
        with torch.no_grad():
            streams = self._streams(-1)
            return self._run(self._draw(self._represent(streams), streams))

    def edges(self) -> list[NDArray[np.void]] | None:
        """The listed pairs of each run, and how likely the predictor holds an edge there."""
        variants = self.variants
        if variants is None:
            return None
        count = variants.pairs.shape[1]
        present = variants.base.values.gather(1, variants.places[:, :count]) > 0
        with torch.no_grad():
            likely = pair_logits(self._represent(self._streams(-1)), variants.pairs).sigmoid()
        tables = []
        for run, valid in enumerate(variants.valid):
            table = np.zeros(int(valid.sum()), dtype=EDGES)
            ends = variants.pairs[run, valid].sort(dim=1).values.numpy(force=True)
            table["source"], table["target"] = ends.T
            table["present"] = present[run, valid].numpy(force=True)
            table["probability"] = likely[run, valid].numpy(force=True)
            tables.append(table)
        return tables

    def z(self, output: Output) -> Tensor:
        """Z, the representation in which shift is measured."""
        return output.hidden if self.settings.representation == "hidden" else output.logits

    def _loss(self, labels: Tensor, streams: Streams) -> Callable[[], Tensor]:
        settings = self.settings
        rows = (labels >= 0).any(0).nonzero().squeeze(-1)
        targets = labels[:, rows]
        logit_rows = None if settings.representation == "logits" else rows
        trains = settings.cmd_trains == "both" or self.variants is not None
        measured = trains and settings.cmd_weight > 0 and settings.predictor_weight > 0

        def loss() -> Tensor:
            drawn = bce = None
            if self.variants is not None:
                representation = self._represent(streams)
                drawn = self._draw(representation, streams)
                bce = self._bce(representation, streams)
            output = self._run(drawn, streams, logit_rows)
            logits = output.logits if logit_rows is not None else output.logits[:, rows]
            total = cross_entropy(logits, targets)
            if bce is not None:
                total = total + settings.predictor_weight * bce
            if measured:
                distance = self._distance(self.z(output), rows, targets)
                if settings.cmd_trains == "predictor" and drawn is not None:
                    distance = _only_through(drawn, distance)
                total = total + settings.predictor_weight * settings.cmd_weight * distance
            return total

        return loss

    def _represent(self, streams: Streams) -> Tensor:
        """T, the predictor's representation."""
        assert self.predictor is not None
        representation: Tensor = self.predictor(self.problem.x, self.operator, streams)
        return representation

    def _bce(self, representation: Tensor, streams: Streams) -> Tensor:
        return reconstruction_loss(representation, self.problem.adjacency.pattern, streams)

    def _draw(self, representation: Tensor, streams: Streams) -> Tensor:
        """``(R, P)`` which of the listed pairs are edges this time."""
        assert self.variants is not None
        settings = self.settings
        logits = pair_logits(representation, self.variants.pairs)
        return sample_edges(logits, streams, temperature=settings.temperature, noise=settings.noise)

    def _run(
        self, drawn: Tensor | None, streams: Streams | None = None, rows: Tensor | None = None
    ) -> Output:
        """The network on the graph as it is, or on the variant with the drawn edges."""
        network = self.network
        operator = network.operator
        if drawn is not None and self.variants is not None:
            operator = network.model.operator(self.variants.with_edges(drawn))
        output: Output = network.model(network.x, operator, streams, rows)
        return output

    def _distance(self, z: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """``(R,)`` CMD between the labeled rows and the pool."""
        labeled, pool = (targets >= 0).to(z.dtype), self.problem.pool.to(z.dtype)
        return cmd(z[:, rows], z, labeled, pool, support=self.settings.support)

    def _streams(self, stage: int) -> Streams:
        seeds = [derive(seed, STAGES, stage + 1) for seed in self.problem.seeds]
        return Streams(seeds, self.problem.labels.device)


def _only_through(drawn: Tensor, value: Tensor) -> Tensor:
    """A value ``(R,)`` whose gradient reaches only what the drawn edges depend on."""
    # Zero where no edge takes part in the representation, as in APPNP.
    (slope,) = torch.autograd.grad(
        value.sum(), drawn, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    linear = (drawn * slope).sum(1)
    return linear + (value - linear).detach()
