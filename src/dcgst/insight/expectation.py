"""What can be said about the accuracy of a run without an audit."""

from __future__ import annotations

from dcgst.insight.diagnosis import Diagnosis
from dcgst.methods.core.result import AGREEMENT, LEFT_OUT
from dcgst.runs import Run


def expectation(run: Run, diagnosis: Diagnosis) -> str:
    """Sentences on the expected accuracy: where it comes from, and what it is worth."""
    pool = run.split.pool[0]
    if not pool.any():
        return "All nodes have a given label."
    mean = float(run.result.confidence[pool].mean())
    found, sources = run.result.expectation, []
    if LEFT_OUT in found:
        sources.append(
            f"{found[LEFT_OUT]:.0%} of the given labels are predicted right in cross-validation"
        )
    if AGREEMENT in found:
        sources.append(f"two members agree on {found[AGREEMENT]:.0%} of the nodes")
    if sources:
        source = ", and ".join(sources)
    elif run.calibration.nodes:
        source = "the mean probability, calibrated on validation labels"
    else:
        source = "the mean probability, which is not calibrated"
    share = "More than 99%" if mean >= 0.995 else f"About {mean:.0%}"
    text = f"{share} may be right: {source}. This was not measured"
    if diagnosis.biased:
        text += ", and the labels are biased, so the accuracy may be much lower"
    return f"{text}. To measure it, label randomly chosen nodes (dcgst audit)."
