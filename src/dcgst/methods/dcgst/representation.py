"""Z, the representation of nodes in which the shift is measured."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.nn.base import Output
from dcgst.numerics.columns import leading_directions, times
from dcgst.numerics.normalize import unit_rows
from dcgst.numerics.products import spmm

REPRESENTATIONS = ("hidden", "tanh", "softmax", "propagated")

HOPS = 2
DIMENSIONS = 32


def representation(name: str, problem: Problem, output: Output) -> Tensor:
    """``(R, n, d)`` Z by name.

    Args:
        name: one of :data:`REPRESENTATIONS`.
        problem: the input.
        output: of the network.
    """
    if name == "propagated":
        return propagated_features(problem).expand(problem.num_fits, -1, -1)
    if name == "softmax":
        return output.logits.softmax(-1)
    return output.embedding.tanh() if name == "tanh" else output.embedding


def propagated_features(problem: Problem) -> Tensor:
    r"""``(n, 32)`` leading principal components of :math:`\hat A^2 X`, rows of X of length one.

    They are divided by the largest absolute value. The space is the same for all methods, stages
    and networks.
    """
    x, operator = unit_rows(problem.x), problem.graph.normalized

    def smooth(z: Tensor) -> Tensor:
        for _ in range(HOPS):
            z = spmm(operator, z)
        return z

    count = min(DIMENSIONS, *x.shape)
    z = smooth(times(x, leading_directions(x, count, smooth, smooth)))
    left, values, _ = torch.linalg.svd(z.double(), full_matrices=False)
    scores = (left * values).to(z.dtype)
    result: Tensor = scores / scores.abs().max().clamp_min(torch.finfo(scores.dtype).tiny)
    return result
