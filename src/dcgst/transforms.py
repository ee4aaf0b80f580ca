"""Samplers as PyG transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dcgst.graph import Graph
from dcgst.splits import sample


class SampleLabels(BaseTransform):  # type: ignore[misc]
    """Set ``train_mask``, ``val_mask`` and ``test_mask`` of PyG ``Data`` with a sampler.

    For several runs the masks are ``(n, R)``, one column per run, as in PyG.

    Args:
        sampler: as in :func:`dcgst.sample`.
        runs: number of runs.
        name: name of the dataset, for samplers that depend on it (``released``, ``ppr-s``).
        **options: other arguments of :func:`dcgst.sample`.
    """

    def __init__(
        self, sampler: str = "ppr-s", *, runs: int = 1, name: str = "graph", **options: Any
    ):
        self.sampler, self.runs, self.name, self.options = sampler, runs, name, options

    def forward(self, data: Data) -> Data:
        graph = Graph.from_pyg(data, name=self.name)
        split = sample(graph, self.sampler, runs=self.runs, **self.options)
        for key, mask in (("train", split.train), ("val", split.val), ("test", split.test(graph))):
            columns = mask[0] if self.runs == 1 else np.ascontiguousarray(mask.T)
            data[f"{key}_mask"] = torch.from_numpy(columns.copy())
        return data

    def __repr__(self) -> str:
        return f"SampleLabels({self.sampler!r}, runs={self.runs})"
