"""Initialization, dropout and projection, shared by the backbones."""

from __future__ import annotations

from math import sqrt
from typing import overload

import torch
from torch import Tensor, nn

from dcgst.engine.random import Streams, dropout
from dcgst.numerics.normalize import Features
from dcgst.numerics.products import narrow_product, spmm
from dcgst.numerics.sparse import SparseMatrix


def glorot(streams: Streams, fan_in: int, fan_out: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±√(6 / (fan_in + fan_out)); default shape (fan_in, fan_out)."""
    return _uniform(sqrt(6 / (fan_in + fan_out)), streams, *(shape or (fan_in, fan_out)))


def fan_in_uniform(streams: Streams, fan_in: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±1/√fan_in, as in ``torch.nn.Linear``."""
    return _uniform(1 / sqrt(fan_in), streams, *shape)


def zeros(streams: Streams, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` zeros."""
    return nn.Parameter(torch.zeros(len(streams), *shape))


def _uniform(bound: float, streams: Streams, *shape: int) -> nn.Parameter:
    return nn.Parameter((streams.uniform(*shape) * 2 - 1) * bound)


@overload
def drop_features(x: Tensor, rate: float, streams: Streams | None) -> Tensor: ...


@overload
def drop_features(x: SparseMatrix, rate: float, streams: Streams | None) -> SparseMatrix: ...


def drop_features(x: Features, rate: float, streams: Streams | None) -> Features:
    """Apply dropout to features, separately for each replica; of sparse ones, to stored values."""
    if streams is None:
        return x
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values.expand(len(streams), -1), rate, streams))
    return dropout(x.expand(len(streams), -1, -1), rate, streams)


def project(x: Features, weight: Tensor) -> Tensor:
    """``x @ weight`` for features or activations; weight ``(R, d, k)``."""
    if isinstance(x, SparseMatrix):
        return spmm(x, weight)
    if x.dim() == 3 and x.shape[0] == 1:  # a plain product is faster than a batch of one
        return narrow_product(x.squeeze(0), weight.squeeze(0)).unsqueeze(0)
    return torch.matmul(x, weight)
