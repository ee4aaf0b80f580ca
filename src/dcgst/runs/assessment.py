"""How good a run is: key figures, estimates, comparison with true classes, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.evaluate.calibration import expected_calibration_error
from dcgst.evaluate.quality import Estimate, Evaluation, estimate_share, evaluate
from dcgst.features.matrix import mean_rows
from dcgst.graph import UNKNOWN
from dcgst.runs.predictions import count_sources

if TYPE_CHECKING:
    from dcgst.runs.run import Run


def compute_metrics(run: Run) -> dict[str, Any]:
    """Counts, mean probability and shift; accuracy and ECE if there are evaluation nodes."""
    result, given = run.result, run.split.given[0]
    last = list({record["replica"]: record for record in result.history}.values())
    figures: dict[str, Any] = {
        "nodes": run.graph.num_nodes,
        "edges": run.graph.num_edges,
        "classes": run.graph.num_classes,
        **count_sources(result),
        "mean_probability": _mean(result.confidence[~given]),
        "mean_agreement": _mean(result.agreement[~given]),
        "shift_before": round(float(np.mean([r.get("cmd_before", r["cmd"]) for r in last])), 4),
        "shift_after": round(float(np.mean([r["cmd"] for r in last])), 4),
    }
    nodes = run.evaluation_nodes
    if nodes.any():
        proba, truth = result.proba[nodes], run.graph.labels[nodes]
        figures["evaluation_nodes"] = int(nodes.sum())
        figures["evaluated_on_validation"] = bool(run.split.val[0][nodes].any())
        figures["accuracy"] = round(float((proba.argmax(axis=1) == truth).mean()), 4)
        figures["ece"] = round(expected_calibration_error(proba, truth), 4)
    return figures


def _mean(values: NDArray[np.float32]) -> float | None:
    return round(float(values.mean()), 4) if values.size else None


@dataclass(frozen=True)
class RunEstimate:
    """Estimates for the nodes without a given label.

    Attributes:
        accuracy: share of correct predictions.
        shares: share of each class, by name.
    """

    accuracy: Estimate
    shares: dict[str, Estimate]

    def __str__(self) -> str:
        return f"{self.accuracy} of the predictions are right, estimated from {self.source}"

    @property
    def source(self) -> str:
        """What it was estimated from."""
        count = self.accuracy.labels
        return f"{count} randomly chosen node{'' if count == 1 else 's'}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def estimate_run(run: Run) -> RunEstimate:
    """Estimate from the validation labels of a run, which must be those of random nodes.

    The predictions for these nodes come from fits that were not trained on their labels.
    """
    audited, pool = run.split.val[0], run.split.pool[0]
    proba, truth = run.result.proba, run.graph.labels[audited]
    confidence = run.result.confidence
    return RunEstimate(
        accuracy=estimate_share(
            proba[audited].argmax(axis=1) == truth,
            confidence[audited],
            confidence[pool],
            calibrated=run.method.calibrated,
        ),
        shares={
            name: estimate_share(truth == code, proba[audited, code], proba[pool, code])
            for code, name in enumerate(run.graph.class_names)
        },
    )


@dataclass(frozen=True, eq=False)
class RunEvaluation:
    """Quality of the predictions of a run, and which nodes it was measured on.

    Attributes:
        quality: accuracy, quality by class, calibration.
        class_names: name of each class; those that the run does not know come last.
        given: nodes left out because the fit used their labels.
        unknown: ids that are not in the run.
        without_class: nodes of the run that are neither given nor evaluated.
        new_classes: number of nodes by class that the run does not know; they count as wrong.
    """

    quality: Evaluation
    class_names: tuple[str, ...]
    given: int
    unknown: tuple[str, ...]
    without_class: int
    new_classes: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """All figures as a JSON object."""
        quality = {**asdict(self.quality), "confusion": self.quality.confusion.tolist()}
        own = {k: v for k, v in vars(self).items() if k != "quality"}
        return {**quality, **own, "class_names": list(self.class_names)}


def evaluate_run(run: Run, classes: Mapping[str, str]) -> RunEvaluation:
    """Compare the predictions of a run with true classes; given labels are left out.

    Args:
        run: the run.
        classes: true class name by node id.
    """
    graph = run.graph
    if not classes:
        raise InputError("there is no node to evaluate on: no row has a class")
    nodes = graph.find(list(classes)).tolist()
    unknown = tuple(key for key, node in zip(classes, nodes, strict=True) if node < 0)
    found = {node: name for node, name in zip(nodes, classes.values(), strict=True) if node >= 0}
    given = run.split.given[0]
    used = {node: name for node, name in found.items() if not given[node]}
    if not used:
        what = "all of them were given to the fit" if found else "none of the ids is in the run"
        raise InputError(
            f"there is no node to evaluate on: {what}; ids are in "
            f"{run.predictions_file}, nodes with source 'given' are left out"
        )
    new = Counter(name for name in used.values() if name not in graph.class_names)
    class_names = (*graph.class_names, *new)
    code = {name: index for index, name in enumerate(class_names)}
    rows = np.array(sorted(used))
    truth = np.array([code[used[node]] for node in rows.tolist()])
    proba = np.zeros((len(rows), len(class_names)), dtype=np.float32)
    proba[:, : graph.num_classes] = run.result.proba[rows]
    return RunEvaluation(
        quality=evaluate(proba, truth, class_names),
        class_names=class_names,
        given=len(found) - len(used),
        unknown=unknown,
        without_class=int((~given).sum()) - len(used),
        new_classes=dict(new),
    )


def known_classes(run: Run) -> dict[str, str]:
    """Class name by id of nodes whose class is in the graph of the run."""
    graph = run.graph
    known = np.flatnonzero(graph.labels != UNKNOWN).tolist()
    return {str(graph.ids[node]): graph.class_names[graph.labels[node]] for node in known}


LARGE_DIFFERENCE = 0.15
"""Half the sum of differences between class shares from which a warning is given."""

LITTLE_CONFIDENCE = 0.1
"""Mean confidence above the largest class share, as a part of what is possible, from which the
classes count as learnable."""


def prediction_warnings(run: Run) -> list[str]:
    """Warnings about class shares and about classes that cannot be distinguished."""
    pool = run.split.pool[0]
    if not pool.any():
        return []
    predicted = mean_rows(run.result.proba, pool)
    warnings = []
    largest = predicted.max()
    if run.result.confidence[pool].mean() - largest < LITTLE_CONFIDENCE * (1 - largest):
        warnings.append(
            "the graph and the features say little about these classes: the probabilities are "
            "close to the class shares. More labels, other features or other edges may help"
        )
    train = run.graph.labels[run.split.train[0]]
    labeled = np.bincount(train[train != UNKNOWN], minlength=len(predicted)) / train.size
    if run.info["settings"].get("prior") is None and not run.audited:
        difference = np.abs(predicted - labeled)
        if difference.sum() / 2 > LARGE_DIFFERENCE:
            # Of equal differences, those of classes that are predicted more often come first.
            most = np.lexsort((labeled - predicted, -np.round(difference, 6)))[:3]
            names = run.graph.class_names
            parts = [f"{names[c]} {predicted[c]:.0%}, not {labeled[c]:.0%}" for c in most]
            warnings.append(
                f"the predicted class shares differ from those of your labels: {'; '.join(parts)}. "
                f"If you know the true shares, give them: {option('prior')} {names[most[0]]}=SHARE"
            )
    return warnings
