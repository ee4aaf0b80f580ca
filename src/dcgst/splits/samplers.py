"""Samplers of labeled nodes, from representative to biased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcgst.datasets.planetoid import WHOLE, released_blocks, released_sets
from dcgst.errors import InputError, unknown_name
from dcgst.graph import UNKNOWN, Graph, as_graph
from dcgst.registry import Registry
from dcgst.shift.ppr import ppr_distances, ppr_push
from dcgst.splits.split import Mask, Split, to_mask

if TYPE_CHECKING:
    from torch_geometric.data import Data


VALIDATION_RATE = 0.005
OFFICIAL = "official"


@dataclass(frozen=True)
class Request:
    """What a sampler has to draw.

    Attributes:
        graph: the graph with its true labels.
        per_class: labels per class.
        rate: the label rate, if the count was computed from one.
        runs: run numbers.
        seed: seed of all runs.
    """

    graph: Graph
    per_class: int
    rate: float | None
    runs: Sequence[int]
    seed: int

    def rng(self, run: int, purpose: int = 0) -> np.random.Generator:
        """The random generator of a run; purpose 0 draws labels, 1 draws validation nodes."""
        return np.random.default_rng([self.seed, run, purpose])

    def members(self, label: int, first_nodes: int | None = None) -> NDArray[np.int64]:
        """The nodes of a class; raises if there are too few."""
        members = np.flatnonzero(self.graph.labels[:first_nodes] == label)
        if members.size < self.count(members):
            remedy = "request fewer labels per class" if members.size else "remove the class"
            raise InputError(
                f"class {self.graph.class_names[label]!r} has {members.size} nodes to draw from, "
                f"fewer than {self.per_class}; {remedy}"
            )
        return members

    def count(self, members: NDArray[np.int64]) -> int:
        """Number of labels of a class: ``per_class``, but not all of it.

        One node of a small class is left; with a rate, half of the class.
        """
        most = members.size - 1 if self.rate is None else members.size // 2
        return max(1, min(self.per_class, most))


Sampler = Callable[[Request], list[NDArray[np.int64]]]
"""Draws the labeled nodes: one array of node positions per run of the request."""


def _check_sampler(item: Any) -> None:
    if not callable(item):
        raise InputError(f"a sampler must be a function of a Request, got {item!r}")


SAMPLERS: Registry[Sampler] = Registry("sampler", "dcgst.samplers", _check_sampler)


def register_sampler(name: str, sampler: Sampler) -> Sampler:
    """Make a sampler available by name: ``sample(graph, name)``, ``--sampler name``.

    Example:
        >>> import numpy as np
        >>> from dcgst import load, sample
        >>> def first_nodes(request):
        ...     classes = range(request.graph.num_classes)
        ...     found = [request.members(label)[: request.per_class] for label in classes]
        ...     return [np.concatenate(found) for _ in request.runs]
        >>> _ = register_sampler("first", first_nodes)
        >>> sample(load("synthetic"), "first", per_class=3, runs=1).train.sum()
        np.int64(12)
    """
    return SAMPLERS.register(name, sampler)


def sample(
    graph: Graph | Data,
    sampler: str = "uniform",
    *,
    rate: float | None = None,
    per_class: int | None = None,
    runs: int = 10,
    first_run: int = 0,
    val_rate: float = VALIDATION_RATE,
    val_count: int | None = None,
    val_per_class: int | None = None,
    seed: int = 0,
) -> Split:
    """Draw the labeled nodes of several runs.

    Args:
        graph: the graph with the true labels.
        sampler: a name in ``SAMPLERS``, ``package.module:function``, or ``official`` for the split
            that belongs to the dataset.
        rate: labels as a share of all nodes, converted to a count per class. At most half of a
            class is labeled.
        per_class: labels per class, instead of a rate. One node of a smaller class is not labeled.
        runs: number of runs.
        first_run: number of the first run. Run 7 is the same whether drawn alone or among ten.
        val_rate: share of all nodes to draw at random for validation from the unlabeled ones.
        val_count: number of validation nodes, instead of a rate.
        val_per_class: validation nodes of each class, instead of a rate. Every class needs more
            nodes than its training and validation labels.
        seed: another seed gives other runs; ``released`` seeds do not depend on it.

    Example:
        >>> from dcgst import load
        >>> sample(load("synthetic"), "ppr-s", per_class=5, runs=3)
        Split(runs 0 … 2: 20 train, 6 validation, 1174 pool nodes)
    """
    graph = as_graph(graph)
    if sampler not in (*SAMPLERS, OFFICIAL) and ":" not in sampler:
        raise unknown_name("sampler", sampler, (*SAMPLERS, OFFICIAL))
    _check_integers(runs=(runs, 1), first_run=(first_run, 0), seed=(seed, 0))
    validation = Validation(val_rate, val_count, val_per_class)
    validation.check()
    if rate is not None and per_class is not None:
        raise InputError("set a label rate or labels per class, not both")
    numbers = range(first_run, first_run + runs)
    if sampler == OFFICIAL:
        if rate is not None or per_class is not None:
            raise InputError("an official split has a fixed number of labels; set no number")
        return _official(graph, numbers)
    if rate is not None:
        per_class = labels_per_class(graph, rate)
    _check_integers(per_class=(per_class, None))
    if per_class is None or per_class < 1:
        raise InputError(f"set a label rate, or labels per class from 1 on; got {per_class}")
    request = Request(graph, per_class, rate, numbers, seed)
    draws = _draw(SAMPLERS[sampler], request)
    train = np.stack([to_mask(nodes, graph.num_nodes) for nodes in draws])
    pairs = zip(numbers, train, strict=True)
    val = np.stack([validation.draw(graph, row, request.rng(run, 1)) for run, row in pairs])
    return Split(train, val, ~train & ~val, tuple(numbers))


@dataclass(frozen=True)
class Validation:
    """How many validation nodes to draw from those that are not labeled.

    Attributes:
        rate: as a share of all nodes.
        count: instead of a rate.
        per_class: of each class, instead of a rate.
    """

    rate: float
    count: int | None
    per_class: int | None

    def check(self) -> None:
        """Raise if a number is not possible."""
        _check_integers(val_count=(self.count, 0), val_per_class=(self.per_class, 1))
        if not 0 <= self.rate < 1:
            raise InputError(f"val_rate must be at least 0 and below 1, got {self.rate}")
        if self.count is not None and self.per_class is not None:
            raise InputError("set val_count or val_per_class, not both")

    def draw(self, graph: Graph, train: Mask, rng: np.random.Generator) -> Mask:
        """The validation nodes of a run."""
        if self.per_class is not None:
            return _balanced_validation(graph, train, self.per_class, rng)
        count = round(self.rate * graph.num_nodes) if self.count is None else self.count
        rest = np.flatnonzero(~train & (graph.labels != UNKNOWN))
        count = min(count, max(0, rest.size - 1))
        return to_mask(rng.choice(rest, count, replace=False), graph.num_nodes)


@lru_cache(maxsize=1)
def _draw(sampler: Sampler, request: Request) -> list[NDArray[np.int64]]:
    """The last draw is kept, for the same labels with other validation nodes."""
    return sampler(request)


def labels_per_class(graph: Graph, rate: float) -> int:
    """Convert a label rate to a count per class, at least one."""
    if not 0 < rate < 1:
        raise InputError(f"a label rate must be between 0 and 1, got {rate}")
    return max(1, round(rate * graph.num_nodes / graph.num_classes))


def _check_integers(**numbers: tuple[int | None, int | None]) -> None:
    """Raise unless each number is an integer and not below the smallest one, or None."""
    for name, (value, low) in numbers.items():
        if value is None:
            continue
        if not isinstance(value, (int, np.integer)):
            raise InputError(f"{name} must be an integer, got {value!r}")
        if low is not None and value < low:
            raise InputError(f"{name} must be at least {low}, got {value}")


def _official(graph: Graph, runs: Sequence[int]) -> Split:
    """The split that belongs to the dataset, the same in every run."""
    if "train" not in graph.masks:
        raise InputError(f"{graph.name} has no official split; choose another sampler")
    repeated = Split.known_labels(graph).select(np.zeros(len(runs), dtype=int))
    return replace(repeated, runs=tuple(runs))


def _balanced_validation(
    graph: Graph, train: Mask, per_class: int, rng: np.random.Generator
) -> Mask:
    """Draw the same number of validation nodes from each class; at least one node remains."""
    chosen = []
    for label, name in enumerate(graph.class_names):
        rest = np.flatnonzero(~train & (graph.labels == label))
        if rest.size <= per_class:
            raise InputError(
                f"class {name!r} has {rest.size} nodes without a training label, too few for "
                f"{per_class} validation nodes and at least one test node; request fewer"
            )
        chosen.append(rng.choice(rest, per_class, replace=False))
    return to_mask(np.concatenate(chosen), graph.num_nodes)


Nodes = NDArray[np.int64]

EXACT_UP_TO = 20_000
"""Number of nodes up to which ppr-s compares exact PageRank rows; larger graphs use push."""

TELEPORT = 0.1
PROTOCOL = {
    ("cora", 2708): (1500, 0.01),
    ("citeseer", 3327): (1000, 0.1),
    ("pubmed", 19717): (10_000, 0.1),
}
"""Settings of PPR-S for the released seeds: labels come from the first nodes only; teleport."""

PUSH_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def sample_uniform(request: Request) -> list[Nodes]:
    """Draw uniformly within each class."""
    return _draw_weighted(request, np.ones(request.graph.num_nodes))


def sample_by_degree(request: Request) -> list[Nodes]:
    """Draw with probability proportional to the degree: popular nodes are labeled first."""
    return _draw_weighted(request, request.graph.degrees + 1e-3)


def _draw_weighted(request: Request, weights: NDArray[np.floating]) -> list[Nodes]:
    """Draw without replacement within each class, by the Gumbel-top-k method."""
    draws = []
    for run in request.runs:
        key = np.log(weights) + request.rng(run).gumbel(size=weights.size)
        per_class = [request.members(label) for label in range(request.graph.num_classes)]
        chosen = [m[smallest(-key[m], request.count(m))] for m in per_class]
        draws.append(np.concatenate(chosen))
    return draws


def sample_by_ppr(request: Request) -> list[Nodes]:
    """PPR-S: the nodes of each class closest to one random root in personalized PageRank.

    (Zhu et al., NeurIPS 2021, https://arxiv.org/abs/2108.01099.) Small graphs compare PageRank
    rows, as for the released seeds. Large graphs use the PageRank of a walk from the root.
    """
    graph = request.graph
    first, teleport = PROTOCOL.get((graph.name, graph.num_nodes), (None, TELEPORT))
    members = [request.members(label, first) for label in range(graph.num_classes)]
    generators = [request.rng(run) for run in request.runs]
    roots = np.array([[rng.choice(nodes) for nodes in members] for rng in generators])
    if graph.num_nodes <= EXACT_UP_TO:
        return _closest_exact(request, roots, members, teleport)
    return [
        np.concatenate(
            [closest_by_push(request, r, m, teleport) for r, m in zip(row, members, strict=True)]
        )
        for row in roots
    ]


def _closest_exact(
    request: Request, roots: Nodes, members: list[Nodes], teleport: float
) -> list[Nodes]:
    chosen: list[list[Nodes]] = [[] for _ in roots]
    for label, nodes in enumerate(members):
        distances = ppr_distances(request.graph.adjacency, roots[:, label], nodes, teleport)
        for run, row in enumerate(distances):
            chosen[run].append(nodes[smallest(row, request.count(nodes))])
    return [np.concatenate(blocks) for blocks in chosen]


def closest_by_push(request: Request, root: int, members: Nodes, teleport: float) -> Nodes:
    """The members with the largest PageRank from the root.

    The tolerance decreases until enough members are reached. If the smallest tolerance reaches too
    few, for example in a small component, the rest is drawn at random from the other members.
    """
    count = request.count(members)
    for tolerance in PUSH_TOLERANCES:
        score = ppr_push(request.graph.adjacency, root, teleport, tolerance)[members]
        reached = members[smallest(-score, count)][: int((score > 0).sum())]
        if reached.size == count:
            return reached
    others = np.setdiff1d(members, reached)
    rng = np.random.default_rng([request.seed, root])
    return np.concatenate([reached, rng.choice(others, count - reached.size, False)])


def smallest(values: NDArray[np.float64], count: int) -> Nodes:
    """Positions of the smallest values, in order; ties by position."""
    return np.argsort(values, kind="stable")[:count]


def sample_released(request: Request) -> list[NDArray[np.int64]]:
    """The released seeds; of each block of one class, the first ``per_class``."""
    name = request.graph.name
    if name in WHOLE:
        sets = released_sets(name, request.rate)
        _check_runs(request, len(sets))
        return [sets[run] for run in request.runs]
    blocks = released_blocks(name)
    _check_runs(request, len(blocks))
    if request.per_class > blocks.shape[2]:
        raise InputError(
            f"the released seeds have {blocks.shape[2]} labels per class, {request.per_class} were "
            "requested; use sampler ppr-s"
        )
    return [blocks[run, :, : request.per_class].ravel() for run in request.runs]


def _check_runs(request: Request, available: int) -> None:
    if request.runs[-1] >= available:
        raise InputError(
            f"the released seeds have runs 0 … {available - 1}, run {request.runs[-1]} was "
            "requested; use sampler ppr-s for more"
        )
