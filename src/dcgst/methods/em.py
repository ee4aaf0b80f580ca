"""Seeded spherical EM on smoothed spectral features: no network, no gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from dcgst.features.graph_tensors import NodeRows
from dcgst.features.shares import softmax
from dcgst.features.sparse import SparseMatrix
from dcgst.methods.base import Method, param
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, results_without_stages, with_predictors
from dcgst.methods.row_models import Prediction, log_pool
from dcgst.methods.storage import storable

UNLIKELY = -1e4
"""Logit of a class without training labels; finite, so that it can be averaged."""


@dataclass(eq=False, kw_only=True)
class EM(Method):
    r"""Fit one von Mises–Fisher component per class to all nodes, initialized by the labels.

    Features are smoothed over the graph and reduced to leading singular vectors of unit length,
    :math:`h_i`. Starting from the training labels, alternate

    .. math:: \mu_c \propto \textstyle\sum_i w_i T_{ic} h_i, \qquad
              P_{ic} \propto \pi_c \exp(h_i^\top \mu_c / \tau), \qquad
              \pi_c = \mathrm{mean}_{i \in pool} P_{ic}

    where T is one-hot for training labels and P elsewhere (seeded clustering: Basu et al., ICML
    2002; the mixture: Banerjee et al., JMLR 2005). EM models the distribution of the unlabeled
    nodes, so biased labels do little harm if each class is about one cluster. It is fitted to 18
    views of the features. Their predictions are pooled, weighted by the likelihood of the
    validation labels and by the share of edges whose ends have the same predicted class.

    Example:
        >>> from dcgst import EM, load
        >>> graph = load("synthetic")
        >>> model = EM().fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "em"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    models_all_nodes: ClassVar[bool] = True

    steps: int = param(20, "EM steps", low=1)
    temperature: float = param(0.1, "spread of each component", low=1e-3, symbol="τ")
    given_weight: float = param(
        3.0, "a training label counts as this many nodes", low=0, symbol="w"
    )
    agreement_weight: float = param(
        100.0,
        "weight of the share of edges within one class, when views of one filter are averaged",
        low=0,
    )

    @property
    def by_rows(self) -> bool:
        return True

    def solve(self, problem: Problem) -> list[Result]:
        prediction = self.predict_nodes(problem)
        z = problem.graph.views[0][0].expand(problem.num_fits, -1, -1)
        reasons = [f"maximum number of steps ({self.steps})"] * problem.num_fits
        results = results_without_stages(problem, prediction.log_proba.softmax(-1), z, reasons)
        return with_predictors(results, prediction.model, problem)

    def predict_nodes(self, problem: Problem) -> Prediction:
        """Pool the predictions of all views.

        Edge agreement is compared within a filter only: strong smoothing makes all neighbors agree.
        """
        return log_pool(
            log_pool(
                self.predict_view(problem, h, (number, position))
                for position, h in enumerate(views)
            )
            for number, views in enumerate(problem.graph.views)
        )

    def predict_view(self, problem: Problem, h: Tensor, position: tuple[int, int]) -> Prediction:
        """Prediction of one view, weighted by edge agreement."""
        mixture = self.fit_view(problem, h, position)
        logits = mixture.logits(h)
        log_prior = self.agreement_weight * edge_agreement(logits, problem.adjacency)
        return Prediction.from_logits(logits, problem.val_labels, log_prior, mixture)

    def fit_view(self, problem: Problem, h: Tensor, position: tuple[int, int] = (0, 0)) -> Mixture:
        """EM on features ``(n, d)`` of unit length; the first M-step uses the training labels."""
        labeled = problem.one_hot().to(h.dtype)
        given = self.given_weight * labeled
        pool = problem.pool.to(h.dtype)[..., None]
        counts = (problem.pool | (problem.train_labels >= 0)).any(0)
        if not bool(counts.all()):
            h, labeled = h[counts], labeled[:, counts]
            given, pool = given[:, counts], pool[:, counts]
        # A class without labels would attract all nodes that are far from the other classes.
        without_labels = UNLIKELY * (given.sum(1, keepdim=True) == 0)
        target = labeled
        weights = h.new_full((problem.num_fits, problem.num_classes), 1 / problem.num_classes)
        for step in range(1, self.steps + 1):
            means = F.normalize(target.mT @ h, dim=-1)
            log_weights = weights.log() + without_labels.squeeze(1)
            mixture = Mixture(means / self.temperature, log_weights, position)
            if step == self.steps:
                break
            proba = pool * softmax(mixture.logits(h))
            weights = (proba.sum(1) / pool.sum(1).clamp_min(1)).clamp_min(1e-6)
            target = given + proba
        return mixture


@storable
@dataclass(frozen=True, eq=False)
class Mixture:
    """One component per class on one view of the features.

    Attributes:
        means: ``(R, C, d)`` the mean of each component, divided by the temperature.
        log_weights: ``(R, C)``.
        position: of the view: number of the filter, and number among its views.
    """

    means: Tensor
    log_weights: Tensor
    position: tuple[int, int]

    def logits(self, h: Tensor) -> Tensor:
        """``(R, n, C)`` of features ``(n, d)`` of unit length."""
        return h @ self.means.mT + self.log_weights[:, None]

    def __call__(self, nodes: NodeRows) -> Tensor:
        number, position = self.position
        return self.logits(nodes.views[number][position])

    def select(self, fit: int) -> Mixture:
        """The mixture of one fit."""
        own = slice(fit, fit + 1)
        return Mixture(self.means[own], self.log_weights[own], self.position)


def edge_agreement(logits: Tensor, adjacency: SparseMatrix) -> Tensor:
    """``(R,)`` share of edges whose ends have the same predicted class."""
    pattern = adjacency.pattern
    if pattern.num_entries == 0:
        return logits.new_zeros(len(logits))
    labels = logits.argmax(-1)
    return (labels[:, pattern.rows] == labels[:, pattern.indices]).to(logits.dtype).mean(1)
