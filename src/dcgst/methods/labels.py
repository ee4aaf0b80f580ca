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
    given = problem.labels >= 0
    counts = torch.zeros(len(given), problem.num_classes, device=given.device)
    counts = counts.scatter_add(1, problem.labels.clamp_min(0), given.float())
    return counts / counts.sum(1, keepdim=True)
