"""The teacher of DC-GST: a network trained jointly with an edge predictor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from dcgst.features.similarity import SimilarNodes
from dcgst.methods.dcgst.settings import Settings
from dcgst.methods.networks import Network, labeled_rows
from dcgst.methods.problem import Problem
from dcgst.methods.result import EDGE_PROBABILITIES
from dcgst.nn.backbones import Output
from dcgst.nn.edge_predictor import (
    EdgePredictor,
    Variants,
    pair_logits,
    reconstruction_loss,
    sample_edges,
)
from dcgst.shift.cmd import cmd, weighted_mean
from dcgst.shift.selection import ranks
from dcgst.train.random import Purpose, Streams, derive
from dcgst.train.training import TrainingOptions, cross_entropy, train

NUM_SIMILAR = 20
"""Similar nodes to which each shifted node may be connected."""

MAX_QUERIES = 20_000
"""Maximum number of nodes whose similar nodes are searched for pairs by feature similarity."""


def list_pairs(
    problem: Problem, z: Tensor, labeled: Tensor, num_nodes: int, num_pairs: int
) -> Tensor:
    """``(R, P, 2)`` pairs around shifted nodes and by similarity; P is at most m * NUM_SIMILAR + e.

    Args:
        problem: the input.
        z: ``(R, n, d)`` the last hidden layer.
        labeled: ``(R, n)`` bool.
        num_nodes: m.
        num_pairs: e.
    """
    # Departure 1 (docs/methods/dcgst.md): the paper lets every pair with one of the m nodes change.
    # Here, each of them may gain or lose an edge to its most similar nodes.
    # Departure 2: similar nodes are searched in blocks, and only for the nodes needed.
    similar = problem.graph.similar_nodes(NUM_SIMILAR)
    by_features = pairs_by_similarity(problem, similar, num_pairs)
    nodes = most_shifted(z, labeled, problem.pool, min(num_nodes, labeled.shape[1]))
    partners, _ = similar.of(nodes)  # (R, m, NUM_SIMILAR)
    of_shifted = torch.stack([nodes[..., None].expand_as(partners), partners], dim=-1)
    return torch.cat([of_shifted.flatten(1, 2), by_features.expand(len(labeled), -1, -1)], dim=1)


def most_shifted(z: Tensor, labeled: Tensor, pool: Tensor, count: int) -> Tensor:
    """``(R, count)`` the nodes that contribute most to the shift between labeled and pool nodes.

    The central moments of a single node are zero, so only the first term of its CMD depends on it:
    the distance to the mean of the other sample. Half of the nodes are the labeled ones farthest
    from the pool, if there are that many; the others are the pool nodes farthest from the labeled
    ones.

    Args:
        z: ``(R, n, d)``.
        labeled: ``(R, n)`` bool.
        pool: ``(R, n)`` bool.
        count: number of nodes.
    """
    # Departure 4: a node is ranked by this distance instead of its own CMD.
    rank = [
        ranks(_squared_distance(z, others), members)
        for members, others in ((labeled, pool), (pool, labeled))
    ]
    # Priority: labeled nodes 0 … count // 2 - 1, pool nodes from count // 2 on, others last.
    last = torch.iinfo(torch.long).max
    of_labeled = torch.where(rank[0] < count // 2, rank[0], last)
    of_pool = torch.where(pool, rank[1] + count // 2, last)
    return torch.minimum(of_labeled, of_pool).argsort(dim=1, stable=True)[:, :count]


def _squared_distance(z: Tensor, sample: Tensor) -> Tensor:
    """``(R, n)`` squared distance of each node to the mean of a sample ``(R, n)``."""
    mean = weighted_mean(z, sample.to(z.dtype))
    return (z - mean.unsqueeze(-2)).square().sum(-1)


def pairs_by_similarity(problem: Problem, similar: SimilarNodes, count: int) -> Tensor:
    """``(1, P, 2)``, P ≤ count: half similar but not connected, half connected but dissimilar."""
    pattern = problem.adjacency.pattern
    n = pattern.num_rows
    if count == 0:
        return torch.zeros(1, 0, 2, dtype=torch.long, device=pattern.indices.device)
    queries = torch.arange(0, n, max(1, -(-n // MAX_QUERIES)), device=pattern.indices.device)
    partners, cosines = similar.of(queries)
    pairs = torch.stack([queries[:, None].expand_as(partners), partners], dim=-1).flatten(0, 1)
    not_connected = ~torch.isin(pairs[:, 0] * n + pairs[:, 1], pattern.rows * n + pattern.indices)
    pairs, cosines = _unique_pairs(pairs[not_connected], cosines.flatten()[not_connected], n)
    most_similar = pairs[cosines.topk(min(count // 2, len(cosines))).indices]

    upper_triangle = pattern.rows < pattern.indices
    edges = torch.stack([pattern.rows[upper_triangle], pattern.indices[upper_triangle]], dim=-1)
    edge_cosines = similar.pair_cosines(edges)
    least_similar = edge_cosines.topk(min(count // 2, len(edge_cosines)), largest=False).indices
    return torch.cat([most_similar, edges[least_similar]]).unsqueeze(0)


def _unique_pairs(pairs: Tensor, cosines: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each unordered pair once, with its cosine."""
    keys = pairs.min(1).values * n + pairs.max(1).values
    unique, inverse = torch.unique(keys, return_inverse=True)
    best = cosines.new_full((len(unique),), float("-inf"))
    best = best.scatter_reduce(0, inverse, cosines, "amax")
    return torch.stack([unique // n, unique % n], dim=-1), best


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
        """``(R,)`` CMD between the labeled rows and the pool in the last hidden layer (Eq. 7)."""
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
