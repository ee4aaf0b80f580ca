"""Given labels as tensors to compute with."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.methods.outcome import Problem


def one_hot(problem: Problem) -> Tensor:
    """``(R, n, C)`` the given labels; zero where there is none."""
    given = (problem.labels >= 0)[..., None]
    coded = torch.zeros(*problem.labels.shape, problem.num_classes, device=given.device)
    return coded.scatter_(-1, problem.labels.clamp_min(0)[..., None], given.float())


def class_shares(problem: Problem) -> Tensor:
    """``(R, C)`` how the given labels are divided among the classes."""
    counts = one_hot(problem).sum(1)
    return counts / counts.sum(1, keepdim=True)
