"""Seeded spherical EM on smoothed spectral features: no network, no gradients, milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.smoothing import SmoothedFeatures
from dcgst.graph import FeatureMatrix, Graph
from dcgst.methods.base import Method
from dcgst.methods.neural import scale_rows, shift
from dcgst.methods.outcome import Outcome, Problem
from dcgst.methods.params import param
from dcgst.methods.stages import GIVEN, NEVER
from dcgst.nn.gcn import symmetric_normalised


@dataclass(frozen=True)
class View:
    """One way to look at the nodes: smoothed how far, how many dimensions, whitened how much."""

    hops: int
    dimensions: int
    whitening: float


VIEWS = (
    View(10, 128, 0.5),
    View(10, 64, 0.3),
    View(10, 32, 0.3),
    View(10, 16, 0.3),
    View(4, 128, 0.5),
)


@dataclass(frozen=True)
class Fit:
    """What EM on one view gave."""

    proba: Tensor  # (R, n, C)
    score: Tensor  # (R,)
    shift: Tensor  # (R,)


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
    cluster. Of several views of the features the one is taken that explains the validation labels
    best and joins most neighbours.
    """

    name: ClassVar[str] = "em"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    all_at_once: ClassVar[bool] = True

    steps: int = param(20, "EM steps", low=1)
    temperature: float = param(0.07, "spread of a class's component", low=1e-3, symbol="τ")
    given_weight: float = param(3.0, "what a given label counts, in nodes", low=0, symbol="w")
    edge_weight: float = param(10.0, "what agreement of neighbours counts among views", low=0)

    def features(self, graph: Graph) -> FeatureMatrix:
        """Bags of words as tf-idf, other features standardised; rows of unit length."""
        return scale_rows(informative(graph.features), "l2")

    def solve(self, problem: Problem) -> Outcome:
        operator = symmetric_normalised(problem.adjacency)
        most = max(view.dimensions for view in VIEWS)
        smoothed = SmoothedFeatures(problem.x, operator, most, self.seed)
        fits = [self.fit_view(smoothed, view, problem) for view in VIEWS]

        runs = torch.arange(len(problem.seeds), device=problem.labels.device)
        best = torch.stack([fit.score for fit in fits]).argmax(0)  # (R,)
        shifts = torch.stack([fit.shift for fit in fits])[best, runs]
        given = problem.labels >= 0
        return Outcome(
            proba=torch.stack([fit.proba for fit in fits])[best, runs],
            labeled_stage=torch.where(given, GIVEN, NEVER),
            history=[
                [{"stage": 0, "labeled": int(given[run].sum()), "cmd": float(shifts[run])}]
                for run in range(len(problem.seeds))
            ],
            stop_reasons=[f"all {self.steps} steps done"] * len(problem.seeds),
        )

    def fit_view(self, smoothed: SmoothedFeatures, view: View, problem: Problem) -> Fit:
        """EM on one view of the features, for all runs."""
        h = F.normalize(smoothed.view(view.hops, view.dimensions, view.whitening), dim=-1)
        proba = self.expectation_maximisation(h, problem)
        shifts = shift(h.expand(len(problem.seeds), -1, -1), problem.labels, problem.pool)
        return Fit(proba, self.score_view(proba, problem), shifts)

    def expectation_maximisation(self, h: Tensor, problem: Problem) -> Tensor:
        """``(R, n, C)`` class probabilities from features ``(n, d)`` of unit length."""
        given = problem.labels >= 0
        one_hot = F.one_hot(problem.labels.clamp_min(0), problem.num_classes).to(h.dtype)
        one_hot = one_hot * given[..., None]
        pool = problem.pool.to(h.dtype)[..., None]
        target = self.given_weight * one_hot  # the first M-step sees given labels only
        prior = h.new_full((len(problem.seeds), problem.num_classes), 1 / problem.num_classes)
        for _ in range(self.steps):
            means = F.normalize(target.mT @ h, dim=-1)  # (R, C, d)
            logits = h @ means.mT / self.temperature + prior.log()[:, None]
            proba = logits.softmax(-1)
            prior = ((proba * pool).sum(1) / pool.sum(1).clamp_min(1)).clamp_min(1e-6)
            target = self.given_weight * one_hot + pool * proba
        return proba

    def score_view(self, proba: Tensor, problem: Problem) -> Tensor:
        """``(R,)`` validation log-likelihood and share of edges whose ends agree."""
        labels = proba.argmax(-1)
        pattern = problem.adjacency.pattern
        agree = (labels[:, pattern.rows] == labels[:, pattern.indices]).to(proba.dtype)
        agreement = agree.mean(1) if pattern.num_entries else agree.new_zeros(len(labels))
        counted = problem.val_labels >= 0
        truth = proba.gather(-1, problem.val_labels.clamp_min(0)[..., None]).squeeze(-1)
        likelihood = (truth.clamp_min(1e-12).log() * counted).sum(1) / counted.sum(1).clamp_min(1)
        return likelihood + self.edge_weight * agreement


def informative(features: FeatureMatrix) -> FeatureMatrix:
    """Columns weighted by what they tell: tf-idf for sparse features, unit variance for dense."""
    if sp.issparse(features):
        nodes = features.shape[0]
        having = np.bincount(features.indices, minlength=features.shape[1])
        rarity = np.log((1 + nodes) / (1 + having)) + 1
        return sp.csr_array(features @ sp.diags_array(rarity)).astype(np.float32)
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scaled.astype(np.float32)
