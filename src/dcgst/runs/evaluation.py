"""Compare the predictions of a run with true classes that the fit did not use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dcgst.errors import InputError
from dcgst.evaluate.evaluation import Evaluation, evaluate
from dcgst.graph import UNKNOWN

if TYPE_CHECKING:
    from dcgst.runs.run import Run


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
