"""Which nodes are labeled: samplers, from fair to biased, for many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcgst.datasets.seeds import WHOLE, released_blocks, released_sets
from dcgst.errors import InputError, unknown
from dcgst.graph import UNKNOWN, Graph, as_graph
from dcgst.shift.ppr import ppr_distances, ppr_push

if TYPE_CHECKING:
    from torch_geometric.data import Data

Mask = NDArray[np.bool_]

VALIDATION_RATE = 0.005
EXACT_UP_TO = 20_000
"""Nodes up to which ppr-s compares exact PageRank rows; larger graphs are pushed."""

TELEPORT = 0.1
# PPR-S as it was run for the released seeds: roots and labels come from the first nodes only.
PROTOCOL = {
    ("cora", 2708): (1500, 0.01),
    ("citeseer", 3327): (1000, 0.1),
    ("pubmed", 19717): (10_000, 0.1),
}


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training, validation and pool nodes of R runs, each ``(R, n)`` boolean.

    The pool holds the nodes to predict, from which pseudo-labels may be drawn. The numbers in
    ``runs`` name the runs and seed whatever is random in them.
    """

    train: Mask
    val: Mask
    pool: Mask
    runs: tuple[int, ...]
    official_test: Mask | None = None
    """``(R, n)`` the test nodes of an official split, where there are fewer than pool nodes."""

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
        """One run from masks ``(n,)``; by default no validation, and the pool is the rest."""
        first = np.atleast_2d(np.asarray(train, dtype=bool))
        second = np.zeros_like(first) if val is None else np.atleast_2d(np.asarray(val, dtype=bool))
        rest = ~first & ~second if pool is None else np.atleast_2d(np.asarray(pool, dtype=bool))
        return cls(first, second, rest, tuple(range(len(first))))

    @classmethod
    def known_labels(cls, graph: Graph) -> Split:
        """One run: the graph's own ``train`` and ``val`` masks, else every known label trains."""
        if "train" not in graph.masks:
            return cls.of(graph.labels != UNKNOWN)
        split = cls.of(graph.masks["train"], graph.masks.get("val"))
        test = graph.masks.get("test")
        return split if test is None else replace(split, official_test=test[None] & split.pool)

    def __repr__(self) -> str:
        train, val, pool = (int(mask[0].sum()) for mask in (self.train, self.val, self.pool))
        runs = f"runs {self.runs[0]} … {self.runs[-1]}"
        return f"Split({runs}: {train} train, {val} validation, {pool} pool nodes)"

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: int | slice) -> Split:
        """One run, or several, as a split of its own."""
        chosen = range(len(self))[index]
        runs = list(chosen) if isinstance(chosen, range) else [chosen]
        return self._pick(np.array(runs, dtype=int))

    def reorder(self, order: NDArray[np.int64]) -> Split:
        """The same split for a graph whose nodes were put in this order."""
        return self._pick(np.arange(len(self)), order)

    def _pick(self, runs: NDArray[np.int64], nodes: NDArray[np.int64] | None = None) -> Split:
        def part(mask: Mask) -> Mask:
            return mask[runs] if nodes is None else mask[runs][:, nodes]

        return Split(
            part(self.train),
            part(self.val),
            part(self.pool),
            tuple(self.runs[run] for run in runs),
            None if self.official_test is None else part(self.official_test),
        )

    def test(self, graph: Graph) -> Mask:
        """``(R, n)`` nodes that accuracy is measured on: the pool, as far as its class is known.

        An official split has its own.
        """
        nodes = self.pool if self.official_test is None else self.official_test
        return np.asarray(nodes & (graph.labels != UNKNOWN))


def labels_per_class(graph: Graph, rate: float) -> int:
    """The label rate of the paper as a count per class, at least one."""
    if not 0 < rate < 1:
        raise InputError(f"a label rate lies between 0 and 1, got {rate}")
    return max(1, round(rate * graph.num_nodes / graph.num_classes))


def sample(
    graph: Graph | Data,
    sampler: str = "uniform",
    *,
    rate: float | None = None,
    per_class: int | None = None,
    runs: int = 10,
    first_run: int = 0,
    val_rate: float = VALIDATION_RATE,
    seed: int = 0,
) -> Split:
    """Draw the labeled nodes of several runs.

    Args:
        graph: with the true labels of the nodes that may be drawn.
        sampler: one of ``SAMPLERS``, or ``official``: the split that came with the data.
        rate: labels as a share of all nodes, turned into a count per class; of a class too small
            for it, half is labeled.
        per_class: labels per class; give this or the rate (``official`` needs neither).
        runs: how many.
        first_run: number of the first run; run 7 is the same whether drawn alone or among ten.
        val_rate: share of all nodes drawn at random for validation from those not labeled.
        seed: a different seed gives different runs; ``released`` seeds stay what they are.
    """
    graph = as_graph(graph)
    if sampler not in (*SAMPLERS, "official"):
        raise unknown("sampler", sampler, (*SAMPLERS, "official"))
    if seed < 0 or not 0 <= val_rate < 1:
        raise InputError(f"seed must not be negative, val_rate in 0 … 1; got {seed}, {val_rate}")
    for name, value in (("runs", runs), ("first_run", first_run), ("per_class", per_class)):
        if value is not None and value != int(value):
            raise InputError(f"{name} must be a whole number, got {value!r}")
    if runs < 1 or first_run < 0:
        raise InputError(f"runs must be 1 or more from run 0 on, got {runs} from {first_run}")
    if rate is not None and per_class is not None:
        raise InputError("give a label rate or labels per class, not both")
    numbers = range(first_run, first_run + runs)
    if sampler == "official":
        if rate is not None or per_class is not None:
            raise InputError("an official split has as many labels as it has; give no number")
        return _official(graph, numbers)
    if rate is not None:
        per_class = labels_per_class(graph, rate)
    if per_class is None or per_class < 1:
        raise InputError(
            f"say how many labels: a rate, or labels per class from 1 on (got {per_class})"
        )
    request = Request(graph, per_class, rate, numbers, seed)
    train = np.stack([_mask(nodes, graph.num_nodes) for nodes in SAMPLERS[sampler](request)])
    val = np.stack(
        [
            _validation(graph, row, val_rate, request.rng(run, 1))
            for run, row in zip(numbers, train, strict=True)
        ]
    )
    return Split(train, val, ~train & ~val, tuple(numbers))


@dataclass(frozen=True)
class Request:
    """What a sampler is asked for."""

    graph: Graph
    per_class: int
    rate: float | None
    runs: Sequence[int]
    seed: int

    def rng(self, run: int, purpose: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, run, purpose])

    def members(self, label: int, first_nodes: int | None = None) -> NDArray[np.int64]:
        """The nodes of a class; an error if there are fewer than are to be labeled."""
        members = np.flatnonzero(self.graph.labels[:first_nodes] == label)
        if members.size < self.count(members):
            remedy = "ask for fewer labels per class" if members.size else "leave the class out"
            raise InputError(
                f"class {self.graph.class_names[label]!r} has {members.size} nodes to draw from, "
                f"fewer than {self.per_class}; {remedy}"
            )
        return members

    def count(self, members: NDArray[np.int64]) -> int:
        """How many of a class are to be labeled."""
        if self.rate is None:
            return self.per_class
        return max(1, min(self.per_class, members.size // 2))


Sampler = Callable[[Request], list[NDArray[np.int64]]]


def _uniform(request: Request) -> list[NDArray[np.int64]]:
    """Every node of a class is as likely as the next."""
    return _weighted(request, np.ones(request.graph.num_nodes))


def _degree(request: Request) -> list[NDArray[np.int64]]:
    """Popular nodes are labeled first: the odds rise with the degree."""
    return _weighted(request, request.graph.degrees + 1e-3)


def _weighted(request: Request, odds: NDArray[np.floating]) -> list[NDArray[np.int64]]:
    draws = []
    for run in request.runs:
        key = np.log(odds) + request.rng(run).gumbel(size=odds.size)
        per_class = [request.members(label) for label in range(request.graph.num_classes)]
        chosen = [m[_smallest(-key[m], request.count(m))] for m in per_class]
        draws.append(np.concatenate(chosen))
    return draws


def _ppr_s(request: Request) -> list[NDArray[np.int64]]:
    """The nodes of each class nearest to one random root in PageRank: labels huddle together.

    Small graphs compare whole PageRank rows, as for the released seeds. On large ones nearness is
    the PageRank of a walk from the root, found by pushing.
    """
    graph = request.graph
    first, teleport = PROTOCOL.get((graph.name, graph.num_nodes), (None, TELEPORT))
    members = [request.members(label, first) for label in range(graph.num_classes)]
    generators = [request.rng(run) for run in request.runs]
    roots = np.array([[rng.choice(nodes) for nodes in members] for rng in generators])
    if graph.num_nodes <= EXACT_UP_TO:
        return _near_exact(request, roots, members, teleport)
    return [
        np.concatenate(
            [_near_pushed(request, r, m, teleport) for r, m in zip(row, members, strict=True)]
        )
        for row in roots
    ]


def _near_exact(
    request: Request,
    roots: NDArray[np.int64],
    members: list[NDArray[np.int64]],
    teleport: float,
) -> list[NDArray[np.int64]]:
    chosen: list[list[NDArray[np.int64]]] = [[] for _ in roots]
    for label, nodes in enumerate(members):
        distances = ppr_distances(request.graph.adjacency, roots[:, label], nodes, teleport)
        for run, row in enumerate(distances):
            chosen[run].append(nodes[_smallest(row, request.count(nodes))])
    return [np.concatenate(blocks) for blocks in chosen]


def _near_pushed(
    request: Request, root: int, members: NDArray[np.int64], teleport: float
) -> NDArray[np.int64]:
    """Push ever finer until enough of the class is reached, or no more of it can be."""
    wanted = request.count(members)
    reached = members[:0]
    for epsilon in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        score = ppr_push(request.graph.adjacency, root, teleport, epsilon)[members]
        reached = members[_smallest(-score, wanted)][: int((score > 0).sum())]
        if reached.size == wanted:
            return reached
    others = np.setdiff1d(members, reached)
    rng = np.random.default_rng([request.seed, root])
    return np.concatenate([reached, rng.choice(others, wanted - reached.size, False)])


def _released(request: Request) -> list[NDArray[np.int64]]:
    """SR-GNN's published seeds: the first k of each block."""
    name = request.graph.name
    if name in WHOLE:
        sets = released_sets(name, request.rate)
        _check_released(request, len(sets))
        return [sets[run] for run in request.runs]
    blocks = released_blocks(name)
    _check_released(request, len(blocks))
    if request.per_class > blocks.shape[2]:
        raise InputError(
            f"the released seeds hold {blocks.shape[2]} labels per class, {request.per_class} are "
            "asked for; use sampler ppr-s"
        )
    return [blocks[run, :, : request.per_class].reshape(-1) for run in request.runs]


def _check_released(request: Request, available: int) -> None:
    if request.runs[-1] >= available:
        raise InputError(
            f"runs 0 … {available - 1} are in the released seeds, run {request.runs[-1]} is asked "
            "for; use sampler ppr-s for more"
        )


SAMPLERS: dict[str, Sampler] = {
    "uniform": _uniform,
    "degree": _degree,
    "ppr-s": _ppr_s,
    "released": _released,
}


def _official(graph: Graph, runs: Sequence[int]) -> Split:
    """The split that came with the data, the same in every run."""
    if "train" not in graph.masks:
        raise InputError(f"{graph.name} comes with no split of its own; choose another sampler")
    again = Split.known_labels(graph)._pick(np.zeros(len(runs), dtype=int))
    return replace(again, runs=tuple(runs))


def _validation(graph: Graph, train: Mask, rate: float, rng: np.random.Generator) -> Mask:
    rest = np.flatnonzero(~train & (graph.labels != UNKNOWN))
    count = min(round(rate * graph.num_nodes), max(0, rest.size - 1))
    return _mask(rng.choice(rest, count, replace=False), graph.num_nodes)


def _smallest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Positions of the smallest values, in order; ties by position."""
    return np.argsort(values, kind="stable")[:count]


def _mask(nodes: NDArray[np.int64], n: int) -> Mask:
    mask = np.zeros(n, dtype=bool)
    mask[nodes] = True
    return mask
