"""The :class:`Split` of nodes into training, validation and pool."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.train.random import Purpose, derive

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training, validation and pool nodes of R runs, each ``(R, n)`` boolean.

    The pool holds the nodes to predict; pseudo-labels are chosen from it. ``runs`` holds the run
    numbers, which are part of every seed.

    Example:
        >>> Split.of([True, True, False, False], val=[False, False, True, False])
        Split(run 0: 2 train, 1 validation, 1 pool nodes)
    """

    train: Mask
    val: Mask
    pool: Mask
    runs: tuple[int, ...]
    official_test: Mask | None = None
    """``(R, n)`` the test nodes of an official split, if they are not the whole pool"""

    def __post_init__(self) -> None:
        shape = self.train.shape
        if self.train.ndim != 2 or shape != self.val.shape or shape != self.pool.shape:
            raise InputError(
                "train, val and pool must be (R, n) masks of one shape, got "
                f"{self.train.shape}, {self.val.shape}, {self.pool.shape}"
            )
        if len(self.runs) != shape[0]:
            raise InputError(f"{shape[0]} runs but {len(self.runs)} run numbers")
        overlap = (self.train & self.val) | (self.train & self.pool) | (self.val & self.pool)
        if overlap.any():
            run, node = (int(i) for i in np.argwhere(overlap)[0])
            raise InputError(f"in run {self.runs[run]}, node {node} is in more than one set")
        if not self.train.any(axis=1).all():
            raise InputError("there are no labels to train on; label at least one node per class")

    @classmethod
    def of(
        cls, train: ArrayLike, val: ArrayLike | None = None, pool: ArrayLike | None = None
    ) -> Split:
        """Create one run from masks ``(n,)``; default: no validation, all other nodes in the pool.

        Args:
            train: nodes to train on.
            val: validation nodes.
            pool: nodes to predict.
        """
        first = np.atleast_2d(np.asarray(train, dtype=bool))
        second = np.zeros_like(first) if val is None else np.atleast_2d(np.asarray(val, dtype=bool))
        rest = ~first & ~second if pool is None else np.atleast_2d(np.asarray(pool, dtype=bool))
        return cls(first, second, rest, tuple(range(len(first))))

    @classmethod
    def known_labels(cls, graph: Graph) -> Split:
        """Create one run from the graph's ``train`` and ``val`` masks, else from all known labels.

        Without a ``train`` mask, every known label is a training label.
        """
        if "train" not in graph.masks:
            return cls.of(graph.labels != UNKNOWN)
        split = cls.of(graph.masks["train"], graph.masks.get("val"))
        test = graph.masks.get("test")
        return split if test is None else replace(split, official_test=test[None] & split.pool)

    def hold_out(self, graph: Graph, share: float, seed: int = 0) -> Split:
        """Move a share of each class's training labels to validation; one always stays.

        The split must be a single run. If it has validation nodes, it is returned unchanged.
        (scikit-learn's stratified splits refuse classes with a single label.)
        """
        if len(self) != 1:
            raise InputError(f"hold_out needs a single run, the split has {len(self)}")
        if not 0 <= share < 1:
            raise InputError(f"the validation share must be at least 0 and below 1, got {share}")
        if share == 0 or self.val.any():
            return self
        rng = np.random.default_rng(derive(seed, Purpose.VALIDATION_SPLIT))
        train, val = self.train[0].copy(), np.zeros(graph.num_nodes, dtype=bool)
        for code in np.unique(graph.labels[train]):
            members = train & (graph.labels == code)
            nodes = rng.permutation(graph.id_order[members[graph.id_order]])
            val[nodes[: min(round(share * nodes.size), nodes.size - 1)]] = True
        return replace(self, train=(train & ~val)[None], val=val[None])

    @property
    def given(self) -> Mask:
        """``(R, n)`` nodes whose label the user gave: training and validation."""
        return self.train | self.val

    def __repr__(self) -> str:
        train, val, pool = (int(mask[0].sum()) for mask in (self.train, self.val, self.pool))
        last = f" … {self.runs[-1]}" if len(self) > 1 else ""
        runs = f"runs {self.runs[0]}{last}" if last else f"run {self.runs[0]}"
        return f"Split({runs}: {train} train, {val} validation, {pool} pool nodes)"

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: int | slice) -> Split:
        """Select one run or several runs."""
        chosen = range(len(self))[index]
        runs = list(chosen) if isinstance(chosen, range) else [chosen]
        return self.select(np.array(runs, dtype=int))

    def select(self, runs: NDArray[np.int64], nodes: NDArray[np.int64] | None = None) -> Split:
        """Select runs by position and, optionally, nodes in a given order."""

        def part(mask: Mask) -> Mask:
            return mask[runs] if nodes is None else mask[runs][:, nodes]

        return Split(
            part(self.train),
            part(self.val),
            part(self.pool),
            tuple(self.runs[run] for run in runs),
            None if self.official_test is None else part(self.official_test),
        )

    def reorder(self, order: NDArray[np.int64]) -> Split:
        """Return the same split for ``graph.reorder(order)``."""
        return self.select(np.arange(len(self)), order)

    def test(self, graph: Graph) -> Mask:
        """``(R, n)`` nodes to measure accuracy on: the pool nodes of known class.

        An official split has its own test nodes.
        """
        nodes = self.pool if self.official_test is None else self.official_test
        return np.asarray(nodes & (graph.labels != UNKNOWN))


def to_mask(nodes: NDArray[np.int64], n: int) -> Mask:
    """``(n,)`` True for the given nodes."""
    mask = np.zeros(n, dtype=bool)
    mask[nodes] = True
    return mask
