"""A Gaussian process on propagated features: learns which hops separate the classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.features.graph_tensors import NodeRows
from dcgst.methods.base import Method, param
from dcgst.methods.problem import Problem
from dcgst.methods.result import LEFT_OUT, Result, results_without_stages, with_predictors
from dcgst.methods.storage import storable

# Logarithms of the kernel weights before any label is seen.
CENTER = {"PageRank": 2.5, "2 hops": 0.5, "degree": -1.0}
SAMPLE = 400
"""Nodes from which the typical distance of each block is computed."""

KERNEL_LABELS = 250
"""Labels from which the kernel is learned, spread over the classes, if there are more."""

BLOCK = 4096
JITTER = 1e-4


@dataclass(eq=False, kw_only=True)
class GaussianProcess(Method):
    r"""Gaussian process regression of the classes on features of 0 to 3 hops and PageRank means.

    The kernel is a weighted sum of one kernel per block of features,

    .. math:: k(i, j) = \textstyle\sum_b w_b \exp(-\|h^b_i - h^b_j\|^2 / (s_b \ell_b))

    with :math:`s_b` the median squared distance between nodes. Weights, length scales
    :math:`\ell_b` and noise maximize the marginal likelihood of the labels times a prior that
    favors PageRank means (Rasmussen & Williams, 2006, chapters 2 and 5). The prior is strong if the
    labeled nodes are concentrated in the graph, because then the labels say little about other
    parts of it. Nothing assumes that neighbors have the same class, so it also learns on
    heterophilous graphs. Predictions are turned into probabilities by a softmax whose temperature
    maximizes the likelihood of leave-one-out predictions.

    Example:
        >>> from dcgst import GaussianProcess, load
        >>> graph = load("synthetic")
        >>> model = GaussianProcess().fit(graph)
        >>> model.score(graph) > 0.3, model.proba_.shape
        (True, (1200, 4))
    """

    name: ClassVar[str] = "gp"
    all_at_once: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    steps: int = param(60, "steps of the search for the kernel", low=0)
    max_labels: int = param(1000, "labels used, spread over the classes, if there are more", low=2)

    @property
    def by_rows(self) -> bool:
        return True

    def solve(self, problem: Problem) -> list[Result]:
        model, left_out = self.fit_rows(problem)
        z = problem.graph.propagated["PageRank"].expand(problem.num_fits, -1, -1)
        reasons = [f"maximum number of steps ({self.steps})"] * problem.num_fits
        proba = model(problem.graph).softmax(-1)
        results = results_without_stages(problem, proba, z, reasons)
        results = with_predictors(results, model, problem, views=False)
        return [
            replace(result, expectation={LEFT_OUT: accuracy})
            for result, accuracy in zip(results, left_out, strict=True)
        ]

    def fit_rows(self, problem: Problem) -> tuple[KernelRows, list[float]]:
        """The fitted model, and the accuracy on left-out training labels of each fit."""
        blocks = problem.graph.propagated
        fits = [
            self.fit_one(blocks, labels, problem.num_classes, trust)
            for labels, trust in zip(problem.train_labels, problem.trust.tolist(), strict=True)
        ]
        return KernelRows([model for model, _ in fits]), [accuracy for _, accuracy in fits]

    def fit_one(
        self, blocks: dict[str, Tensor], labels: Tensor, num_classes: int, trust: float
    ) -> tuple[KernelSum, float]:
        """The model of one fit, and its accuracy on left-out training labels ``(n,)``."""
        nodes, few = (
            spread_over_classes(labels, num_classes, count)
            for count in (self.max_labels, min(self.max_labels, KERNEL_LABELS))
        )
        present = torch.bincount(labels[labels >= 0].cpu(), minlength=num_classes) > 0

        def targets_of(chosen: Tensor) -> Tensor:
            one_hot = F.one_hot(labels[chosen].cpu(), num_classes).double()
            return one_hot - present / present.sum()

        kernel = Kernel(blocks, few)
        kernel.fit(targets_of(few), self.steps, strength=0.3 + 1.7 * (1 - trust))
        kernel, targets = kernel.on(nodes), targets_of(nodes)
        inverse = kernel.matrix().inverse()
        coefficients = inverse @ targets
        left_out = targets - coefficients / inverse.diagonal()[:, None]
        scale = scale_of_logits(left_out, labels[nodes].cpu())
        # A class without labels is less likely than any other.
        offset = torch.where(present, 0.0, -2 * scale - 10)
        model = kernel.sum_of(scale * coefficients, offset)
        return model, float((left_out.argmax(1) == labels[nodes].cpu()).double().mean())


@storable
@dataclass(frozen=True, eq=False)
class KernelSum:
    """A weighted sum of kernels between a node and the labeled nodes, in one fit.

    Attributes:
        labeled: ``(m, d)`` features of the labeled nodes, one tensor per block.
        weights: of each block.
        scales: squared distance of each block that reduces its kernel to 1/e.
        coefficients: ``(m, C)``.
        offset: ``(C,)`` added to the sum.
    """

    labeled: list[Tensor]
    weights: list[float]
    scales: list[float]
    coefficients: Tensor
    offset: Tensor

    def __call__(self, nodes: NodeRows) -> Tensor:
        """``(n, C)`` logits."""
        blocks = list(nodes.propagated.values())
        rows = []
        for start in range(0, len(blocks[0]), BLOCK):
            kernel = torch.zeros(1, device=self.offset.device)
            for block, labeled, weight, scale in zip(
                blocks, self.labeled, self.weights, self.scales, strict=True
            ):
                distance = squared_distance(block[start : start + BLOCK], labeled)
                kernel = kernel + distance.mul_(-1 / scale).exp_().mul_(weight)
            rows.append(torch.addmm(self.offset, kernel, self.coefficients))
        return torch.cat(rows)


@storable
@dataclass(frozen=True, eq=False)
class KernelRows:
    """The Gaussian processes of R fits."""

    fits: list[KernelSum]

    def __call__(self, nodes: NodeRows) -> Tensor:
        return torch.stack([fit(nodes) for fit in self.fits])

    def select(self, fit: int) -> KernelRows:
        """The Gaussian process of one fit."""
        return KernelRows(self.fits[fit : fit + 1])


class Kernel:
    """A weighted sum of one Gaussian kernel per block, between nodes and the labeled nodes.

    Args:
        blocks: ``(n, d)`` features by name.
        nodes: the labeled nodes.
    """

    def __init__(self, blocks: dict[str, Tensor], nodes: Tensor) -> None:
        self.named_blocks, self.blocks, self.nodes = blocks, list(blocks.values()), nodes
        self.center = torch.tensor([CENTER.get(name, 0.0) for name in blocks], dtype=torch.double)
        self.log_weights = self.center.clone()
        self.log_lengths = torch.zeros_like(self.center)
        self.log_noise = torch.tensor(-1.0, dtype=torch.double)
        n = len(self.blocks[0])
        sample = torch.arange(0, n, max(1, n // SAMPLE))
        self.typical = [
            squared_distance(block[sample], block[sample]).median().clamp_min(1e-3).item()
            for block in self.blocks
        ]
        self.distances = torch.stack(
            [
                squared_distance(block[nodes], block[nodes]).double().cpu() / typical
                for block, typical in zip(self.blocks, self.typical, strict=True)
            ]
        )

    def matrix(self, noise: Tensor | None = None) -> Tensor:
        """``(m, m)`` kernel of the labeled nodes plus noise ``(m,)``; default the learned one."""
        weights = self.log_weights.softmax(0)[:, None, None]
        scales = self.log_lengths.exp()[:, None, None]
        kernel: Tensor = (weights * (-self.distances / scales).exp()).sum(0)
        if noise is None:
            noise = self.log_noise.exp().expand(len(kernel))
        return kernel + (noise + JITTER).diag()

    def fit(self, targets: Tensor, steps: int, strength: float) -> None:
        """Maximize marginal likelihood times prior by Adam; targets ``(m, C)`` are centered.

        The time grows with the cube of m.
        """
        count, classes = targets.shape
        log_variance = torch.tensor(-math.log(classes), dtype=torch.double)
        parameters = [self.log_weights, self.log_lengths, self.log_noise, log_variance]
        for parameter in parameters:
            parameter.requires_grad_(True)
        optimizer = torch.optim.Adam(parameters, lr=0.1)
        with torch.enable_grad():
            for _ in range(steps):
                optimizer.zero_grad()
                factor = torch.linalg.cholesky(self.matrix())
                solved = torch.cholesky_solve(targets, factor)
                fit = (targets * solved).sum() / log_variance.exp() / 2
                volume = factor.diagonal().log().sum() + count * log_variance / 2
                # The targets of all classes sum to zero, so one class is not independent.
                loss = (fit + classes * volume) * (classes - 1) / classes
                loss = loss + strength * (self.log_weights - self.center).square().sum()
                loss = loss + 4 * strength * self.log_lengths.square().sum()
                loss = loss + (self.log_noise + 1).square() / 2
                loss.backward()
                optimizer.step()
        for parameter in parameters:
            parameter.requires_grad_(False)

    def on(self, nodes: Tensor) -> Kernel:
        """The same kernel for other labeled nodes."""
        if torch.equal(nodes, self.nodes):
            return self
        other = Kernel(self.named_blocks, nodes)
        other.log_weights, other.log_lengths = self.log_weights, self.log_lengths
        other.log_noise = self.log_noise
        return other

    def sum_of(self, coefficients: Tensor, offset: Tensor) -> KernelSum:
        """The kernel between nodes and the labeled nodes, times ``(m, C)``, plus ``(C,)``."""
        scales = self.log_lengths.exp().tolist()
        like = self.blocks[0]
        return KernelSum(
            labeled=[block[self.nodes] for block in self.blocks],
            weights=self.log_weights.softmax(0).tolist(),
            scales=[typical * own for typical, own in zip(self.typical, scales, strict=True)],
            coefficients=coefficients.to(like).contiguous(),
            offset=offset.to(like),
        )


def squared_distance(left: Tensor, right: Tensor) -> Tensor:
    """``(a, b)`` squared distances between the rows of two matrices."""
    products = torch.addmm(right.square().sum(1), left, right.T, alpha=-2)
    return products.add_(left.square().sum(1)[:, None]).clamp_min_(0)


def spread_over_classes(labels: Tensor, num_classes: int, count: int) -> Tensor:
    """Labeled nodes, at most ``count``: if there are more, equally many of each class."""
    nodes = (labels >= 0).nonzero().squeeze(1)
    if len(nodes) <= count:
        return nodes
    per_class = max(1, count // num_classes)
    chosen = []
    for code in range(num_classes):
        members = (labels == code).nonzero().squeeze(1)
        step = max(1, -(-len(members) // per_class))
        chosen.append(members[::step])
    return torch.cat(chosen).sort().values


def scale_of_logits(predictions: Tensor, labels: Tensor) -> float:
    """The factor for ``(m, C)`` predictions with the highest likelihood times prior."""
    factors = torch.logspace(0, math.log10(40), 40, dtype=predictions.dtype)
    log_proba = (factors[:, None, None] * predictions).log_softmax(-1)
    likelihood = log_proba[:, torch.arange(len(labels)), labels].sum(1)
    prior = -(factors / 8).log().square() / 2
    return float(factors[(likelihood + prior).argmax()])
