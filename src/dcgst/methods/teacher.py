"""The teacher of DC-GST: a network trained on graph variants that close the shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dcgst.engine.random import Streams, derive
from dcgst.engine.similarity import SimilarNodes
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.training import Schedule, Training, cross_entropy, train
from dcgst.methods.neural import Network
from dcgst.methods.outcome import Problem
from dcgst.nn.base import Output
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)
from dcgst.nn.gcn import symmetric_normalised
from dcgst.shift.cmd import cmd, farthest

QUERIES = 20_000
"""Nodes whose similar nodes are looked up for the list of similar pairs; on larger graphs some."""


@dataclass(frozen=True)
class PairSettings:
    """Which pairs of nodes the edge predictor may change.

    Attributes:
        nodes: m, nodes around which edges may change.
        similar: how many similar nodes each of them may be joined to.
        pairs: e, pairs chosen by features alone: similar but not joined, joined but not similar.
    """

    nodes: int
    similar: int
    pairs: int


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
    cmd_trains: str = "both"
    representation: str = "hidden"
    support: float | None = None
    temperature: float = 1.2
    noise: str = "logistic"


class Teacher:
    """A network and, unless it is to see the graph as it is, an edge predictor, trained jointly."""

    def __init__(
        self,
        network: Network,
        problem: Problem,
        settings: LossSettings,
        pairs: PairSettings | None,
        width: int,
    ) -> None:
        self.network, self.problem, self.settings = network, problem, settings
        self.choice = pairs
        self.predictor: EdgePredictor | None = None
        if pairs is not None:
            seeds = [derive(seed, 7) for seed in problem.seeds]
            predictor = EdgePredictor(seeds, problem.x.shape[1], width)
            self.predictor = predictor.to(problem.labels.device)
            self.operator = symmetric_normalised(problem.adjacency)
        self.variants: Variants | None = None

    @property
    def model(self) -> nn.Module:
        """What is trained: network and predictor."""
        parts = [self.network.model]
        return nn.ModuleList(parts if self.predictor is None else [*parts, self.predictor])

    def outputs(self, on_variant: bool = False) -> Output:
        """What the network says, in evaluation mode, on the graph as it is or on a variant."""
        if not on_variant:
            return self.network.outputs()
        with torch.no_grad():
            operator, _, _ = self._variant(self._streams(-1))
            output: Output = self.network.model(self.network.x, operator)
        return output

    def pretrain(self, schedule: Schedule) -> Training:
        """Teach the predictor the graph's edges, and the network the given labels."""
        problem = self.problem
        if self.predictor is not None:
            streams = self._streams(0)
            predictor, pattern = self.predictor, problem.adjacency.pattern

            def loss() -> Tensor:
                representation = predictor(problem.x, self.operator, streams)
                return reconstruction_loss(representation, pattern, streams)

            train(predictor, loss, schedule)
        return self.network.train(problem.labels, problem, schedule)

    def refresh_pairs(self, output: Output, labels: Tensor) -> None:
        """List the pairs that may change: around the nodes that shift, and by similarity."""
        if self.choice is None:
            return
        problem, choice = self.problem, self.choice
        similar = problem.once("similar", lambda: SimilarNodes(problem.x, choice.similar))
        by_features = problem.once("pairs", lambda: pairs_by_similarity(problem, similar, choice))
        count = min(choice.nodes, labels.shape[1])
        nodes = farthest(self._representation(output), labels >= 0, problem.pool, count)
        partners, _ = similar.of(nodes)  # (R, m, similar)
        around = torch.stack([nodes[..., None].expand_as(partners), partners], dim=-1)
        fixed = by_features.expand(len(labels), -1, -1)
        pairs = torch.cat([around.flatten(1, 2), fixed], dim=1)
        self.variants = Variants.of(problem.adjacency, pairs) if pairs.shape[1] else None

    def train(self, labels: Tensor, schedule: Schedule, stage: int) -> Training:
        """Minimise CE on the variants + β (BCE + α CMD) over network and predictor."""
        validate = None
        return train(
            self.model,
            self._loss(labels, self._streams(stage)),
            schedule,
            validate=validate,
            callbacks=self.problem.callbacks,
        )

    def _loss(self, labels: Tensor, streams: Streams) -> Callable[[], Tensor]:
        problem, settings = self.problem, self.settings
        network = self.network
        rows = (labels >= 0).any(0).nonzero().squeeze(-1)
        targets = labels[:, rows]
        labeled = (targets >= 0).float()
        unlabeled = problem.pool.float()
        measured = settings.cmd_weight > 0 and settings.predictor_weight > 0

        def loss() -> Tensor:
            operator, drawn, extra = self._variant(streams)
            logit_rows = None if settings.representation == "logits" else rows
            output = network.model(network.x, operator, streams, logit_rows)
            logits = output.logits if logit_rows is not None else output.logits[:, rows]
            total = cross_entropy(logits, targets) + settings.predictor_weight * extra
            if not measured:
                return total
            z = self._representation(output)
            distance = cmd(z[:, rows], z, labeled, unlabeled, support=settings.support)
            if settings.cmd_trains == "predictor":
                distance = _through(distance, drawn)
            return total + settings.predictor_weight * settings.cmd_weight * distance

        return loss

    def _variant(self, streams: Streams) -> tuple[SparseMatrix, Tensor | None, Tensor]:
        """The operator on a fresh variant, its drawn edges, and the predictor's BCE."""
        network, settings = self.network, self.settings
        nothing = streams.uniform(0).sum(1)
        if self.predictor is None or self.variants is None:
            return network.operator, None, nothing
        representation = self.predictor(self.problem.x, self.operator, streams)
        drawn = sample_edges(
            pair_logits(representation, self.variants.pairs),
            streams,
            temperature=settings.temperature,
            noise=settings.noise,
        )
        operator = network.model.operator(self.variants.with_edges(drawn))
        pattern = self.problem.adjacency.pattern
        return operator, drawn, reconstruction_loss(representation, pattern, streams)

    def _representation(self, output: Output) -> Tensor:
        return output.hidden if self.settings.representation == "hidden" else output.logits

    def _streams(self, stage: int) -> Streams:
        seeds = [derive(seed, 8, stage + 1) for seed in self.problem.seeds]
        return Streams(seeds, self.problem.labels.device)


def pairs_by_similarity(problem: Problem, similar: SimilarNodes, choice: PairSettings) -> Tensor:
    """``(1, e, 2)`` pairs: half similar but not joined, half joined but not similar."""
    pattern = problem.adjacency.pattern
    n = pattern.num_rows
    queries = torch.arange(n, device=pattern.indices.device)
    if n > QUERIES:
        step = -(-n // QUERIES)
        queries = queries[::step]
    partners, cosines = similar.of(queries)
    pairs = torch.stack([queries[:, None].expand_as(partners), partners], dim=-1).flatten(0, 1)
    joined = pattern.rows * n + pattern.indices
    apart = ~torch.isin(pairs[:, 0] * n + pairs[:, 1], joined)
    pairs, cosines = pairs[apart], cosines.flatten()[apart]
    pairs, cosines = _once_each(pairs, cosines, n)
    count = choice.pairs // 2
    closest = pairs[cosines.topk(min(count, len(cosines))).indices]

    upward = (pattern.rows < pattern.indices).nonzero().squeeze(-1)
    along = similar.along(pattern)[upward]
    weakest = upward[along.topk(min(count, len(along)), largest=False).indices]
    edges = torch.stack([pattern.rows[weakest], pattern.indices[weakest]], dim=-1)
    return torch.cat([closest, edges]).unsqueeze(0)


def _once_each(pairs: Tensor, cosines: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each unordered pair once."""
    keys = pairs.min(1).values * n + pairs.max(1).values
    kept, inverse = torch.unique(keys, return_inverse=True)
    best = cosines.new_full((len(kept),), float("-inf"))
    best = best.scatter_reduce(0, inverse, cosines, "amax")
    return torch.stack([kept // n, kept % n], dim=-1), best


def _through(value: Tensor, drawn: Tensor | None) -> Tensor:
    """A value ``(R,)`` whose gradient reaches only what the drawn edges depend on."""
    if drawn is None:
        return value.detach()
    # Zero where no edge takes part in the representation, as in APPNP.
    (slope,) = torch.autograd.grad(
        value.sum(), drawn, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    linear = (drawn * slope).sum(1)
    return linear + (value - linear).detach()
