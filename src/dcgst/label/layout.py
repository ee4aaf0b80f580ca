"""Map positions of many nodes: fast ones first, then better ones."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.random import Purpose, derive

LANDMARKS = 1500
"""Nodes that t-SNE places; the others are placed between their nearest landmarks."""

NEAREST = 3
BLOCK = 4096


def quick_positions(z: Tensor) -> NDArray[np.float32]:
    """``(n, 2)`` the first two principal components of rows ``(n, d)``, scaled to 0 … 1."""
    if z.shape[1] < 2 or len(z) < 3:
        line = torch.arange(len(z), dtype=torch.float32)
        return _scaled(torch.stack([line, torch.zeros_like(line)], 1).numpy())
    centered = z - z.mean(0)
    _, vectors = torch.linalg.eigh(centered.T @ centered)
    return _scaled((centered @ vectors[:, -2:]).numpy())


def landmark_positions(z: Tensor, seed: int = 0) -> NDArray[np.float32]:
    """``(n, 2)`` from 0 to 1: t-SNE of some nodes, the others between their nearest landmarks."""
    from sklearn.manifold import TSNE

    if len(z) < 10:
        return quick_positions(z)
    rng = np.random.default_rng(derive(seed, Purpose.MAP))
    chosen = np.sort(rng.permutation(len(z))[:LANDMARKS])
    marks = z[chosen]
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="random", random_state=0, max_iter=500)
    places = torch.from_numpy(tsne.fit_transform(marks.numpy().astype(np.float64))).float()
    found = torch.empty(len(z), 2)
    for start in range(0, len(z), BLOCK):
        similar = z[start : start + BLOCK] @ marks.T
        values, nearest = similar.topk(min(NEAREST, len(chosen)), dim=1)
        weights = (20 * values).softmax(1)
        found[start : start + BLOCK] = (weights[..., None] * places[nearest]).sum(1)
    spread = places.std() * 0.01
    jitter = torch.from_numpy(rng.normal(size=(len(z), 2)).astype(np.float32)) * spread
    found = found + jitter
    found[torch.from_numpy(chosen)] = places
    return _scaled(found.numpy())


def _scaled(positions: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = positions.min(axis=0), positions.max(axis=0)
    scaled: NDArray[np.float32] = ((positions - low) / np.maximum(high - low, 1e-9)).astype("f4")
    return scaled
