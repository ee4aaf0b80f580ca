"""Losses of networks without edges, computed on the labeled rows of each fit only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.random import Purpose, Streams, derive
from dcgst.engine.training import RepeatedLoss, cross_entropy
from dcgst.nn.base import Backbone, Projected
from dcgst.nn.layers import drop_features, project
from dcgst.numerics.sparse import SparseMatrix

ROWS_PER_EPOCH = 512
"""An epoch of a network without edges uses at most so many labeled rows, drawn at random."""

SPARSE_ROWS_PER_EPOCH = 1024
"""The same for sparse features: products with them are cheap, drawing rows is not."""

SPARSE = 0.1
"""Sparse features stay sparse on a CPU if less than this share is not zero."""


def stays_sparse(x: SparseMatrix, labels: Tensor) -> bool:
    """Whether a loss of sparse rows is faster than one of dense rows."""
    sparse = x.pattern.num_entries < SPARSE * x.shape[0] * x.shape[1]
    return sparse and labels.device.type == "cpu"


def loss_of_sparse_rows(
    model: Backbone,
    operator: SparseMatrix,
    x: SparseMatrix,
    labels: Tensor,
    seeds: Sequence[int],
) -> Callable[[], Tensor]:
    """The same for sparse inputs: only the stored features are dropped and multiplied."""
    rows, targets = own_rows(labels)
    counts = (targets >= 0).sum(1).tolist()
    used = [min(count, SPARSE_ROWS_PER_EPOCH) for count in counts]
    streams = Streams(seeds, labels.device, used)
    batches = Streams([derive(seed, Purpose.BATCHES) for seed in seeds], labels.device)
    everything = [x.select_rows(own[:count]) for own, count in zip(rows, used, strict=True)]

    def draw(fit: int) -> tuple[SparseMatrix, Tensor]:
        """Rows of one fit and their labels: all, or some at random."""
        if counts[fit] <= SPARSE_ROWS_PER_EPOCH:
            return everything[fit], targets[fit, : counts[fit]]
        numbers = batches.of(fit).uniform(SPARSE_ROWS_PER_EPOCH)[0]
        positions = (numbers * counts[fit]).long()
        return x.select_rows(rows[fit, positions]), targets[fit, positions]

    def compute() -> Tensor:
        products, wanted = [], []
        for fit, count in enumerate(used):
            part, own = draw(fit)
            dropped = drop_features(part, model.dropout, streams.of(fit))
            product = project(dropped, model.weight1[fit : fit + 1])
            products.append(F.pad(product, (0, 0, 0, max(used) - count)))
            wanted.append(F.pad(own, (0, max(used) - count), value=-1))
        first = Projected(products[0] if len(products) == 1 else torch.cat(products))
        logits = model(first, operator, streams).logits
        return cross_entropy(logits, torch.stack(wanted))

    return compute


def loss_of_rows(
    model: Backbone, operator: SparseMatrix, x: Tensor, labels: Tensor, seeds: Sequence[int]
) -> RepeatedLoss:
    """The loss ``(R,)`` of the labeled rows of each fit: all, or some drawn in each epoch.

    Args:
        model: a network without edges.
        operator: of the network; not used.
        x: ``(n, d)`` its inputs.
        labels: ``(R, n)``, -1 elsewhere.
        seeds: of dropout and of the rows that are drawn.
    """
    rows, targets = own_rows(labels)
    counts = (targets >= 0).sum(1)
    used = counts.clamp_max(ROWS_PER_EPOCH).tolist()
    streams = Streams(seeds, labels.device, used)
    if rows.shape[1] <= ROWS_PER_EPOCH:
        chosen = x[rows]
        return RepeatedLoss(
            lambda: cross_entropy(model(chosen, operator, streams).logits, targets), [streams]
        )
    batches = Streams([derive(seed, Purpose.BATCHES) for seed in seeds], labels.device)
    everything = torch.arange(ROWS_PER_EPOCH, device=labels.device)

    def compute() -> Tensor:
        drawn = (batches.uniform(ROWS_PER_EPOCH) * counts[:, None]).long()
        positions = torch.where(counts[:, None] > ROWS_PER_EPOCH, drawn, everything)
        logits = model(x[rows.gather(1, positions)], operator, streams).logits
        return cross_entropy(logits, targets.gather(1, positions))

    return RepeatedLoss(compute, [streams, batches])


def own_rows(labels: Tensor) -> tuple[Tensor, Tensor]:
    """``(R, m)`` labeled nodes of each fit and their labels; -1 where a fit has fewer than m."""
    labeled = labels >= 0
    most = int(labeled.sum(1).amax())
    rows = labeled.int().argsort(dim=1, descending=True, stable=True)[:, :most]
    return rows, labels.gather(1, rows)
