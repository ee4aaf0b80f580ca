"""Comparison of two runs: what changed, for which nodes, and whether it helped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dcgst.errors import InputError
from dcgst.evaluate.quality import LEVEL, Estimate
from dcgst.insight.suggestion import label_shift, similarity_space
from dcgst.runs import Run
from dcgst.runs.assessment import known_classes

MOST_NODES = 20
"""Number of changed nodes to list."""


@dataclass(frozen=True)
class Change:
    """A node whose predicted class changed; probabilities of the predicted classes."""

    id: str
    before: str
    after: str
    probability_before: float
    probability_after: float


@dataclass(frozen=True)
class PairedAudit:
    """Predictions of both runs for the audited nodes of the second, made without their labels.

    Attributes:
        nodes: number of nodes.
        right_before: number of correct predictions of the first run.
        right_after: number of correct predictions of the second run.
        low: lower end of the interval of the difference in accuracy.
        high: upper end of the interval of the difference in accuracy.
    """

    nodes: int
    right_before: int
    right_after: int
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same nodes.

    Attributes:
        nodes: number of nodes in both runs.
        only_before: number of nodes in the first run only.
        only_after: number of nodes in the second run only.
        labels_before: labels given to the first run.
        labels_after: labels given to the second run.
        compared: number of nodes without a label in either run.
        changed: number of those whose predicted class changed.
        flows: number of changed nodes by class before and after, largest first.
        changes: the changed nodes that were predicted with most confidence in both runs.
        confidence_before: mean probability of the predicted classes in the first run.
        confidence_after: mean probability of the predicted classes in the second run.
        shares_before: predicted share of each class in the first run.
        shares_after: predicted share of each class in the second run.
        shift_before: shift of the labels of the first run in features smoothed over the graph.
        shift_after: shift of the labels of the second run.
        accuracy_on: ``true classes`` of the same nodes, or ``audit`` of each run.
        estimate_before: accuracy of the first run; None if it was not measured.
        estimate_after: accuracy of the second run; None if it was not measured.
        audit: both runs on the nodes audited by the second; None if there are none.
    """

    nodes: int
    only_before: int
    only_after: int
    labels_before: int
    labels_after: int
    compared: int
    changed: int
    flows: list[tuple[str, str, int]]
    changes: list[Change]
    confidence_before: float
    confidence_after: float
    shares_before: dict[str, float]
    shares_after: dict[str, float]
    shift_before: float
    shift_after: float
    accuracy_on: str
    estimate_before: Estimate | None
    estimate_after: Estimate | None
    audit: PairedAudit | None


def compare(before: Run, after: Run) -> Comparison:
    """Compare the predictions of two runs for the nodes that both have, matched by id.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, LabelPropagation, compare, fit, load
        >>> graph, folder = load("synthetic"), tempfile.mkdtemp()
        >>> runs = [fit(graph, f"{folder}/{m.name}", m) for m in (LabelPropagation(), EM())]
        >>> found = compare(*runs)
        >>> found.nodes, found.labels_before, found.changed > 0
        (1200, 20, True)
    """
    rows = _matching_rows(before, after)
    if not len(rows):
        raise InputError(f"no node of {before.folder} has the id of a node of {after.folder}")
    unlabeled = before.split.pool[0][rows[:, 0]] & after.split.pool[0][rows[:, 1]]
    if not unlabeled.any():
        raise InputError(
            f"no node is without a label in both {before.folder} and {after.folder}: there are no "
            "predictions to compare"
        )
    first, second = rows[unlabeled].T
    names = sorted({*before.graph.class_names, *after.graph.class_names})
    proba = [_proba(run, own, names) for run, own in ((before, first), (after, second))]
    codes = [p.argmax(axis=1) for p in proba]
    changed = codes[0] != codes[1]
    flows = Counter(zip(codes[0][changed].tolist(), codes[1][changed].tolist(), strict=True))
    shares = [dict(zip(names, p.mean(axis=0).tolist(), strict=True)) for p in proba]
    accuracy_on, estimates = _accuracies(before, after, second)
    return Comparison(
        nodes=len(rows),
        only_before=before.graph.num_nodes - len(rows),
        only_after=after.graph.num_nodes - len(rows),
        labels_before=int(before.split.given[0].sum()),
        labels_after=int(after.split.given[0].sum()),
        compared=len(first),
        changed=int(changed.sum()),
        flows=[(names[a], names[b], count) for (a, b), count in flows.most_common()],
        changes=_most_confident(before, first, names, proba, codes),
        confidence_before=float(proba[0].max(axis=1).mean()),
        confidence_after=float(proba[1].max(axis=1).mean()),
        shares_before=shares[0],
        shares_after=shares[1],
        shift_before=_shift(before),
        shift_after=_shift(after),
        accuracy_on=accuracy_on,
        estimate_before=estimates[0],
        estimate_after=estimates[1],
        audit=_paired_audit(before, after, rows),
    )


def _accuracies(
    before: Run, after: Run, nodes: NDArray[np.int64]
) -> tuple[str, list[Estimate | None]]:
    """Accuracies of both runs on the same nodes of known class; without any, of their audits.

    Args:
        before: the first run.
        after: the second run.
        nodes: in the second run, those that neither fit used.
    """
    truth: dict[str, str] = {}
    for run in (before, after):
        truth |= known_classes(run) | run.truth
    ids = (str(node_id) for node_id in after.graph.ids[nodes].tolist())
    classes = {node_id: truth[node_id] for node_id in ids if node_id in truth}
    if classes:
        return "true classes", [run.evaluate(classes).quality.accuracy for run in (before, after)]
    return "audit", [run.estimate.accuracy if run.estimate else None for run in (before, after)]


def _matching_rows(before: Run, after: Run) -> NDArray[np.int64]:
    """``(m, 2)`` positions of the nodes with the same id."""
    found = before.graph.find([str(node_id) for node_id in after.graph.ids.tolist()])
    return np.column_stack([found, np.arange(found.size)])[found >= 0]


def _proba(run: Run, nodes: NDArray[np.int64], names: list[str]) -> NDArray[np.float32]:
    """``(m, C)`` probabilities of classes by name."""
    proba = np.zeros((len(nodes), len(names)), dtype=np.float32)
    columns = [names.index(name) for name in run.graph.class_names]
    proba[:, columns] = run.result.proba[nodes]
    return proba


def _most_confident(
    run: Run,
    nodes: NDArray[np.int64],
    names: list[str],
    proba: list[NDArray[np.float32]],
    codes: list[NDArray[np.int64]],
) -> list[Change]:
    """The changed nodes with the highest product of both probabilities."""
    highest = [p.max(axis=1) for p in proba]
    changed = np.flatnonzero(codes[0] != codes[1])
    order = changed[np.argsort(-(highest[0] * highest[1])[changed], kind="stable")]
    return [
        Change(
            str(run.graph.ids[nodes[row]]),
            names[codes[0][row]],
            names[codes[1][row]],
            round(float(highest[0][row]), 3),
            round(float(highest[1][row]), 3),
        )
        for row in order[:MOST_NODES].tolist()
    ]


def _shift(run: Run) -> float:
    return label_shift(similarity_space(run.graph), run.split.given[0])


def _paired_audit(before: Run, after: Run, rows: NDArray[np.int64]) -> PairedAudit | None:
    """Both runs on audited nodes whose labels the first run was not trained on.

    The prediction of DC-GST for a node audited by the second run is that of one replica, the
    prediction of the first run is the mean of all. So the gain is estimated a little too low.
    """
    if not after.audited:
        return None
    trained = before.split.train[0] | (before.split.val[0] & (not before.audited))
    first, second = rows[after.split.val[0][rows[:, 1]] & ~trained[rows[:, 0]]].T
    if not len(first):
        return None
    truth = [after.graph.class_names[code] for code in after.graph.labels[second]]
    right = [
        np.array([run.graph.class_names[c] for c in run.result.proba[own].argmax(1)]) == truth
        for run, own in ((before, first), (after, second))
    ]
    gained, lost = int((~right[0] & right[1]).sum()), int((right[0] & ~right[1]).sum())
    low, high = paired_interval(gained, lost, len(first))
    return PairedAudit(len(first), int(right[0].sum()), int(right[1].sum()), low, high)


def paired_interval(gained: int, lost: int, nodes: int) -> tuple[float, float]:
    """Interval of a difference between paired shares (Agresti and Min, 2005).

    Paper: https://doi.org/10.1002/sim.1781

    Args:
        gained: pairs in which only the second is right.
        lost: pairs in which only the first is right.
        nodes: number of pairs.

    Example:
        >>> [round(end, 2) for end in paired_interval(10, 2, 30)]
        [0.05, 0.45]
    """
    z = float(norm.ppf((1 + LEVEL) / 2))
    total = nodes + 2  # half a pair is added to each of the four cases
    difference = (gained - lost) / total
    half = z * np.sqrt((gained + lost + 1) - (gained - lost) ** 2 / total) / total
    return max(-1.0, float(difference - half)), min(1.0, float(difference + half))
