"""How well a Gaussian process predicts left-out labels from the neighbors in some edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.graph import UNKNOWN, Graph
from dcgst.methods.gaussian_process import (
    KERNEL_LABELS,
    Kernel,
    scale_of_logits,
    spread_over_classes,
)
from dcgst.numerics.columns import weight_columns
from dcgst.numerics.normalize import random_walk, to_features, unit_rows
from dcgst.numerics.sparse import SparseMatrix

STEPS, STRENGTH = 60, 0.3
"""Steps of the fit of the kernel, and strength of the prior of its weights."""

OTHER_NODES = 400
"""Nodes besides the labeled ones, by which distances are scaled."""


@dataclass(frozen=True)
class LabelSample:
    """Labeled nodes and some others, in the order of their ids.

    Attributes:
        x: ``(n, d)`` weighted features of all nodes, in rows of length one.
        nodes: positions of the labeled nodes, then of the others.
        labels: ``(m,)`` class codes of the labeled nodes.
        num_classes: number of classes.
    """

    x: sp.csr_array
    nodes: NDArray[np.int64]
    labels: Tensor
    num_classes: int

    @classmethod
    def of(cls, graph: Graph, labeled: NDArray[np.bool_]) -> LabelSample:
        order = graph.id_order
        codes = torch.tensor(np.where(labeled, graph.labels, UNKNOWN)[order])
        chosen = order[spread_over_classes(codes, graph.num_classes, KERNEL_LABELS).numpy()]
        others = order[:: max(1, graph.num_nodes // OTHER_NODES)]
        weighted = weight_columns(to_features(graph.features), graph.columns_weighted)
        features = unit_rows(weighted)
        x = features.to_scipy() if isinstance(features, SparseMatrix) else features.numpy()
        nodes = np.concatenate([chosen, others])
        return cls(x, nodes, torch.tensor(graph.labels[chosen]), graph.num_classes)

    def log_likelihood(self, matrix: sp.csr_array | None) -> Tensor:
        """``(m,)`` of each label, predicted by a Gaussian process from all others.

        Args:
            matrix: the edges; None for features alone.
        """
        blocks = {"features": self.x[self.nodes]}
        degrees = None
        if matrix is not None:
            walk = random_walk(matrix).T.tocsr()  # rows sum to one
            step = walk[self.nodes]
            blocks |= {"1 hop": step @ self.x, "2 hops": (step @ walk) @ self.x}
            degrees = torch.tensor(np.log1p(np.diff(matrix.indptr)[self.nodes]))[:, None].float()
        dense = {name: _centered(block) for name, block in blocks.items()}
        if degrees is not None and float(degrees.std()) > 0:
            dense["degree"] = (degrees - degrees.mean()) / degrees.std()
        return self._left_out(dense)

    def log_likelihood_apart(self, relations: Mapping[str, sp.csr_array]) -> Tensor:
        """The same with separate features of the neighbors in each relation."""
        blocks = {"features": self.x[self.nodes]}
        for name, matrix in relations.items():
            blocks[f"relation {name}"] = random_walk(matrix).T.tocsr()[self.nodes] @ self.x
        return self._left_out({name: _centered(block) for name, block in blocks.items()})

    def _left_out(self, blocks: dict[str, Tensor]) -> Tensor:
        targets = F.one_hot(self.labels, self.num_classes).double()
        targets = targets - targets.mean(0)
        kernel = Kernel(blocks, torch.arange(len(self.labels)))
        kernel.fit(targets, STEPS, STRENGTH)
        inverse = kernel.matrix().inverse()
        left_out = targets - (inverse @ targets) / inverse.diagonal()[:, None]
        log_proba = (scale_of_logits(left_out, self.labels) * left_out).log_softmax(-1)
        return log_proba[torch.arange(len(self.labels)), self.labels]


def _centered(block: Any) -> Tensor:
    """Rows of length one after centering."""
    dense = block.toarray() if sp.issparse(block) else np.asarray(block)
    rows = torch.tensor(dense, dtype=torch.float32)
    return F.normalize(rows - rows.mean(0), dim=-1)
