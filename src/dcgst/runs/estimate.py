"""Accuracy and class shares of a run, estimated from labels of randomly chosen nodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dcgst.evaluate.estimate import Estimate, estimate_share

if TYPE_CHECKING:
    from dcgst.runs.run import Run


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
