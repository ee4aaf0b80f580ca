"""Nodes to label: a random sample that measures, or those that make labels representative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError, option
from dcgst.features.components import smoothed_components
from dcgst.features.matrix import row_ranges
from dcgst.graph import Graph
from dcgst.insight.diagnosis import MOST_ROWS
from dcgst.runs import Run
from dcgst.shift.cmd import labeled_shift
from dcgst.shift.ner import entropy
from dcgst.train.random import Purpose, derive

SUGGESTED = "suggested"
"""Value of the column ``chosen`` of suggested nodes."""

LABEL = "label"
"""Name of the column to fill in, if the fit had no label column."""


def rows_to_label(
    run: Run, nodes: Sequence[int], more: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """One record per node for a person to fill in: id, an empty label, the columns of the node.

    Args:
        run: the run.
        nodes: the nodes.
        more: further columns of each node, before those of the table.
    """
    id_column, label_column = id_and_label(run)
    table = {
        name: values for name, values in run.table.items() if name not in (id_column, label_column)
    }
    extra = more or [{}] * len(nodes)
    return [
        {
            id_column: run.graph.ids[node].item(),
            label_column: "",
            **own,
            **{name: values[node] for name, values in table.items() if name not in own},
        }
        for node, own in zip(nodes, extra, strict=True)
    ]


def predictions_of(run: Run, nodes: Sequence[int]) -> list[dict[str, Any]]:
    """Predicted class and its probability of each node."""
    proba = run.result.proba
    return [
        {
            "predicted": run.graph.class_names[int(proba[node].argmax())],
            "probability": round(float(proba[node].max()), 3),
        }
        for node in nodes
    ]


def id_and_label(run: Run) -> tuple[str, str]:
    """Names of the id and the label column in tables to fill in."""
    columns = run.info["columns"]
    return columns["id"] or "id", columns["label"] or LABEL


def draw_audit(run: Run, count: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Draw nodes without a given label, uniformly at random, in random order.

    More nodes with the same seed start with the same ones.

    Args:
        run: the run.
        count: number of nodes.
        seed: seed of the sample.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> len(draw_audit(run, 30))
        30
    """
    order = run.graph.id_order
    pool = order[run.split.pool[0][order]]
    if not 1 <= count <= pool.size:
        raise InputError(f"between 1 and {pool.size} nodes can be audited, got {count}")
    rng = np.random.default_rng(derive(seed, Purpose.AUDIT))
    return np.asarray(rng.permutation(pool)[:count])


CANDIDATES, TARGETS = 2000, 5000
"""Maximum number of nodes to choose from, and of nodes whose uncertainty is to be covered."""

HOPS = 4
"""Smoothing steps of the features that similarity is computed from."""

SHARPNESS = 4
"""Power of the cosine: only very similar nodes count as similar."""

NEAR_DUPLICATE = 0.95
"""Similarity to a suggested node above which another node is not suggested."""

NOTICEABLE = 0.2
"""Similarity from which on a node counts as similar."""


@dataclass(frozen=True)
class Suggestion:
    """A node to label.

    Attributes:
        node: its position.
        predicted: its predicted class.
        probability: the probability of that class.
        entropy: entropy of its prediction, in nats.
        covers: share of all uncertainty that its label would cover, in addition to the labels and
            suggestions before it.
        nodes: number of nodes without a label for which it would be the most similar label; an
            estimate on large graphs.
    """

    node: int
    predicted: int
    probability: float
    entropy: float
    covers: float
    nodes: int


@dataclass(frozen=True)
class Suggestions:
    """Nodes to label, most useful first, and their joint effect.

    Attributes:
        nodes: the nodes.
        shift_before: CMD between labeled and other nodes, in smoothed features.
        shift_after: the same if the suggested nodes were labeled.
        covered_before: share of the uncertainty that is covered by labels.
        covered_after: the same if the suggested nodes were labeled.
    """

    nodes: list[Suggestion]
    shift_before: float
    shift_after: float
    covered_before: float
    covered_after: float


def suggest(
    graph: Graph,
    proba: NDArray[np.float32],
    labeled: NDArray[np.bool_],
    count: int,
    *,
    focus: int | None = None,
    top: bool = False,
    seed: int = 0,
) -> Suggestions:
    r"""Choose nodes that are similar to many uncertain nodes and dissimilar to labeled ones.

    .. math:: \max_S \sum_v H(p_v) \max_{s \in S \cup L} \mathrm{sim}(v, s)

    solved greedily; sim is the fourth power of the cosine of features smoothed over four hops. No
    two suggestions are near-duplicates. On large graphs, random subsets of the nodes are used.

    Args:
        graph: the graph.
        proba: ``(n, C)`` predicted probabilities.
        labeled: ``(n,)`` bool, nodes of known class.
        count: number of nodes to suggest.
        focus: class code; only nodes for which it is one of the two likeliest classes are
            suggested, and uncertainty counts in proportion to its probability.
        top: suggest the likeliest nodes of the class ``focus`` instead.
        seed: seed of the random subsets.

    Example:
        >>> from dcgst import EM, load, suggest
        >>> graph = load("synthetic")
        >>> found = suggest(graph, EM().fit(graph).proba_, graph.masks["train"], count=5)
        >>> len(found.nodes), found.covered_after > found.covered_before
        (5, True)
    """
    if top and focus is None:
        raise InputError(f"{option('top')} needs a class")
    pool = np.flatnonzero(~labeled)
    eligible = pool if focus is None else pool[_among_likeliest(proba, focus)[pool]]
    most = min(eligible.size, CANDIDATES)
    if not 1 <= count <= most:
        raise InputError(f"between 1 and {most} nodes can be suggested, got {count}")
    z = similarity_space(graph)
    rng = np.random.default_rng(derive(seed, Purpose.SUGGESTION))
    candidates = torch.from_numpy(_choose_candidates(eligible, proba, focus, top, rng))
    targets = torch.from_numpy(np.sort(rng.permutation(pool)[:TARGETS]))
    weight = _uncertainty(proba, targets)
    if focus is not None:
        weight = weight * torch.from_numpy(proba[targets, focus]).clamp_min(1e-6)
    weight = weight / weight.sum()
    covered = max_similarity(z[targets], z[np.flatnonzero(labeled)])
    before = float((weight * covered).sum())
    choice = greedy_cover(z[candidates], z[targets], weight, covered, count, in_order=top)
    nodes = candidates[choice.selected].tolist()
    after = labeled.copy()
    after[nodes] = True
    shifts = [label_shift(z, mask) for mask in (labeled, after)]
    suggestions = _describe(choice, nodes, proba, pool.size / len(targets))
    return Suggestions(suggestions, shifts[0], shifts[1], before, before + sum(choice.gains))


def _describe(
    choice: Choice, nodes: list[int], proba: NDArray[np.float32], pool_per_target: float
) -> list[Suggestion]:
    """What is known about each chosen node."""
    entropies = _uncertainty(proba, nodes).tolist()
    return [
        Suggestion(
            node,
            predicted=int(proba[node].argmax()),
            probability=float(proba[node].max()),
            entropy=own,
            covers=gain,
            nodes=round(nearest * pool_per_target),
        )
        for node, own, gain, nearest in zip(
            nodes, entropies, choice.gains, choice.nearest, strict=True
        )
    ]


def _uncertainty(proba: NDArray[np.float32], nodes: Any) -> Tensor:
    """Entropy of the predictions of some nodes, at least slightly above zero."""
    return entropy(torch.from_numpy(np.log(np.clip(proba[nodes], 1e-12, 1)))).clamp_min(1e-6)


def _among_likeliest(proba: NDArray[np.float32], focus: int) -> NDArray[np.bool_]:
    """``(n,)`` nodes for which the class ``focus`` is one of the two likeliest."""
    found = np.empty(len(proba), dtype=bool)
    for nodes in row_ranges(len(proba)):
        second = np.partition(proba[nodes], -2, axis=1)[:, -2]
        found[nodes] = proba[nodes, focus] >= second
    return found


def _choose_candidates(
    eligible: NDArray[np.int64],
    proba: NDArray[np.float32],
    focus: int | None,
    top: bool,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """At most ``CANDIDATES`` nodes: the likeliest of a class in order, or a random subset."""
    drawn = rng.permutation(eligible)
    if top:
        return drawn[np.argsort(-proba[drawn, focus], kind="stable")][:CANDIDATES]
    return np.sort(drawn[:CANDIDATES])


@dataclass(frozen=True)
class Choice:
    """Selected candidates.

    Attributes:
        selected: their positions.
        gains: by how much each increases the weighted maximum similarity.
        nearest: number of targets for which each became the most similar.
    """

    selected: list[int]
    gains: list[float]
    nearest: list[int]


def greedy_cover(
    candidates: Tensor,
    targets: Tensor,
    weight: Tensor,
    covered: Tensor,
    count: int,
    *,
    in_order: bool = False,
) -> Choice:
    """Choose candidates greedily by the increase of the weighted maximum similarity.

    Near-duplicates of a selected candidate are chosen only if there are no others.

    Args:
        candidates: ``(m, d)`` unit rows.
        targets: ``(w, d)`` unit rows.
        weight: ``(w,)`` weight of each target.
        covered: ``(w,)`` similarity of each target to the most similar label.
        count: number to choose.
        in_order: choose the first candidates instead.
    """
    similar = similarity(candidates, targets)  # (m, w)
    choice = Choice([], [], [])
    free = torch.ones(len(candidates), dtype=torch.bool)
    for _ in range(count):
        if not bool(free.any()):
            free[:] = True
            free[choice.selected] = False
        gain = (similar - covered).clamp_min(0) @ weight
        order = -torch.arange(len(gain), dtype=gain.dtype) if in_order else gain
        best = int(order.masked_fill(~free, -torch.inf).argmax())
        improved = (similar[best] > covered) & (similar[best] >= NOTICEABLE)
        choice.selected.append(best)
        choice.gains.append(float(gain[best]))
        choice.nearest.append(int(improved.sum()))
        covered = torch.maximum(covered, similar[best])
        free &= similarity(candidates, candidates[best : best + 1])[:, 0] < NEAR_DUPLICATE
        free[best] = False
    return choice


def max_similarity(z: Tensor, others: Tensor) -> Tensor:
    """``(w,)`` similarity of each row to the most similar row of ``others``; 0 without others."""
    found = z.new_zeros(len(z))
    for block in torch.split(others, CANDIDATES) if len(others) else ():
        found = torch.maximum(found, similarity(z, block).amax(1))
    return found


def similarity(left: Tensor, right: Tensor) -> Tensor:
    """``(m, w)`` from 0 to 1, of unit rows."""
    return (left @ right.T).clamp_min_(0) ** SHARPNESS


def similarity_space(graph: Graph) -> Tensor:
    """``(n, d)`` leading components of the smoothed features, rows of unit length."""
    return F.normalize(smoothed_components(graph, HOPS, whitening=0.5), dim=-1)


def label_shift(z: Tensor, labeled: NDArray[np.bool_]) -> float:
    """CMD between labeled and other nodes."""
    others = np.flatnonzero(~labeled)
    some = others[:: max(1, -(-others.size // MOST_ROWS))]
    rows = np.concatenate([np.flatnonzero(labeled), some])
    mask = torch.from_numpy(labeled[rows])[None]
    return float(labeled_shift(z[torch.from_numpy(rows)][None], mask, ~mask)[0])
