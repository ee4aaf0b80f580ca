"""What fit and report say about the accuracy without an audit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcgst import EM, Ensemble, Run, diagnose, fit, open_run
from dcgst.insight.diagnosis import expectation
from dcgst.methods.result import AGREEMENT, LEFT_OUT
from tests.runs.helpers import small_graph


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit(
        small_graph(), tmp_path_factory.mktemp("expected") / "run", Ensemble(members="lp,em,gp")
    )


def text_of(run: Run, *, biased: bool = False) -> str:
    diagnosis = diagnose(run.graph)
    shifts = [replace(shift, p=0.0 if biased else 1.0) for shift in diagnosis.shifts]
    return expectation(run, replace(diagnosis, shifts=shifts))


def test_cross_validation_and_agreement_are_stored_and_said(run):
    found = open_run(run.folder).result.expectation
    assert found == run.result.expectation
    text = text_of(run)
    assert f"{found[LEFT_OUT]:.0%} of the given labels are predicted right in cross" in text
    assert f"two members agree on {found[AGREEMENT]:.0%} of the nodes" in text
    assert "dcgst audit" in text


def test_biased_labels_are_a_reason_to_expect_less(run):
    assert "may be much lower" in text_of(run, biased=True)
    assert "may be much lower" not in text_of(run)


def test_other_methods_have_only_their_mean_probability(tmp_path):
    other = fit(small_graph(), tmp_path / "run", EM())
    mean = other.result.proba[other.split.pool[0]].max(1).mean()
    assert text_of(other).startswith(f"About {mean:.0%} may be right: the mean probability, which")
