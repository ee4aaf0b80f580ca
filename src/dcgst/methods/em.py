"""Seeded spherical EM on smoothed spectral features: no network, no gradients, few seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.similarity import unit_rows
from dcgst.engine.smoothing import Filter, SmoothedFeatures
from dcgst.engine.sparse import SparseMatrix
from dcgst.methods.base import Method
from dcgst.methods.belief import Belief, together
from dcgst.methods.labels import one_hot
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.methods.stages import Stages
from dcgst.nn.base import Features
from dcgst.nn.gcn import symmetric_normalised

FILTERS = (Filter(0.05, 40), Filter(0.1, 10), Filter(0.1, 4))
SHAPES = ((16, 0.6), (64, 0.3), (128, 0.5))
"""Views of the smoothed features: how many dimensions, whitened how much."""

UNLIKELY = -1e4
"""Logit of a class that no label names; finite, so that beliefs can be averaged."""

Views = list[Tensor]
"""``(n, d)`` rows of unit length, smoothed alike."""


@dataclass(eq=False, kw_only=True)
class EM(Method):
    r"""Fit one von Mises–Fisher component per class to all nodes; the given labels name them.

    Features are smoothed over the graph and reduced to leading singular vectors of unit length,
    :math:`h_i`. Then, beginning with the given labels alone, alternate

    .. math:: \mu_c \propto \textstyle\sum_i w_i T_{ic} h_i, \qquad
              P_{ic} \propto \pi_c \exp(h_i^\top \mu_c / \tau), \qquad
              \pi_c = \mathrm{mean}_{i \in pool} P_{ic}

    where T is one-hot on given labels and P elsewhere. Since it models the distribution of the
    unlabeled nodes themselves, biased labels do little harm, provided that each class is about one
    cluster. Eighteen views of the features are fitted, and their beliefs weighted by the likelihood
    of the validation labels and by how many neighbours they agree on.
    """

    name: ClassVar[str] = "em"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    steps: int = param(20, "EM steps", low=1)
    temperature: float = param(0.1, "spread of a class's component", low=1e-3, symbol="τ")
    given_weight: float = param(3.0, "what a given label counts, in nodes", low=0, symbol="w")
    agreement_weight: float = param(
        100.0, "what agreement of neighbours counts among views smoothed alike, in nats", low=0
    )

    def solve(self, problem: Problem) -> Outcome:
        views = problem.once("views", lambda: views_of(problem))
        belief = self.believe(views, one_hot(problem), problem)
        stages = Stages(problem.labels, problem.pool)
        stages.begin(views[0][0].expand(len(problem.seeds), -1, -1))
        stages.reasons = [f"all {self.steps} steps done"] * len(problem.seeds)
        return Outcome(belief.log_proba.softmax(-1), stages)

    def believe(self, views: list[Views], start: Tensor, problem: Problem) -> Belief:
        """The beliefs of all views, each from the same start ``(R, n, C)``, made one.

        Far smoothing makes any neighbours agree, so agreement counts among views smoothed alike.
        """
        return together(together(self.opinion(h, start, problem) for h in alike) for alike in views)

    def opinion(self, h: Tensor, start: Tensor, problem: Problem) -> Belief:
        """What one view leads to believe, favoured by how many neighbours it agrees on."""
        logits = self.fit_view(h, start, problem)
        favour = self.agreement_weight * agreement(logits, problem.adjacency)
        return Belief.of(logits, problem.val_labels, favour)

    def fit_view(self, h: Tensor, start: Tensor, problem: Problem) -> Tensor:
        """``(R, n, C)`` logits after EM on features ``(n, d)`` of unit length.

        The first M-step sees the nodes as ``start`` has them: given labels alone, or some model's
        probabilities as well.
        """
        given = self.given_weight * one_hot(problem)
        pool = problem.pool.to(h.dtype)[..., None]
        # A class that no label names would gather whatever is far from all others.
        unnamed = UNLIKELY * (given.sum(1, keepdim=True) == 0)
        target = start
        prior = h.new_full((len(problem.seeds), problem.num_classes), 1 / problem.num_classes)
        for _ in range(self.steps):
            means = F.normalize(target.mT @ h, dim=-1)  # (R, C, d)
            logits = h @ means.mT / self.temperature + prior.log()[:, None] + unnamed
            proba = pool * logits.softmax(-1)
            prior = (proba.sum(1) / pool.sum(1).clamp_min(1)).clamp_min(1e-6)
            target = given + proba
        return logits


def agreement(logits: Tensor, adjacency: SparseMatrix) -> Tensor:
    """``(R,)`` share of edges whose ends are given the same class."""
    pattern = adjacency.pattern
    if pattern.num_entries == 0:
        return logits.new_zeros(len(logits))
    labels = logits.argmax(-1)
    return (labels[:, pattern.rows] == labels[:, pattern.indices]).to(logits.dtype).mean(1)


def views_of(problem: Problem) -> list[Views]:
    """Features plain and weighted, in all shapes, for each filter."""
    operator = symmetric_normalised(problem.adjacency)
    most = max(dimensions for dimensions, _ in SHAPES)
    views: list[Views] = []
    for smooth in FILTERS:
        alike: Views = []
        for x in (unit_rows(informative(problem.x)), unit_rows(problem.x)):
            smoothed = SmoothedFeatures(x, operator, smooth, most)
            alike += [F.normalize(smoothed.view(*shape), dim=-1) for shape in SHAPES]
        views.append(alike)
    return views


def informative(x: Features) -> Features:
    """Columns weighted by what they tell: tf-idf for sparse features, unit variance for dense."""
    if isinstance(x, SparseMatrix):
        nodes, columns = x.shape
        having = torch.bincount(x.pattern.indices, minlength=columns)
        rarity = ((1 + nodes) / (1 + having)).log() + 1
        return x.with_values(x.values * rarity[x.pattern.indices])
    spread = x.std(0, correction=0)
    return (x - x.mean(0)) / torch.where(spread > 0, spread, 1.0)
