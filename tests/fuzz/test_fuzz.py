"""A few hundred generated inputs in every run of the tests; ``make fuzz`` runs thousands."""

from __future__ import annotations

import os
import signal

import pytest

from tests.fuzz.batches import run_batch, run_case
from tests.fuzz.cases import EDGES, NODES, STRATEGIES, Case, valid_run
from tests.fuzz.execution import judge

COUNT = int(os.environ.get("DCGST_FUZZ", "30"))


@pytest.mark.parametrize("kind", STRATEGIES)
def test_generated_input_is_accepted_or_refused(kind):
    outcomes = run_batch(kind, 12345, COUNT)
    assert [outcome for outcome in outcomes if not outcome.good] == []
    assert len(outcomes) >= COUNT // 2


def test_valid_input_is_accepted():
    files = {"nodes.csv": NODES, "edges.csv": EDGES}
    command = ("fit", "nodes.csv", "edges.csv", "--label", "label", "-o", "out", "--method", "em")
    assert run_case(Case(files, command, "out")).state == "accepted"
    assert run_case(Case({}, ("predict", "run"), folder=valid_run)).state == "accepted"


def test_missing_input_is_refused():
    assert run_case(Case({}, ("predict", "nothing"))).state == "refused"


@pytest.mark.parametrize(
    ("code", "out", "err", "files", "state"),
    [
        (0, "", "", ["out/run.json", "out/predictions.csv"], "accepted"),
        (0, "", "", ["out/run.json"], "half-written"),
        (2, "", "Error", [], "refused"),
        (2, "", "Error", ["out/begun.json"], "half-written"),
        (2, "", "Error", [".x.part"], "half-written"),
        (1, "", "Failed", [], "failed"),
        (2, "", "Traceback (most recent call last)", [], "failed"),
        (-signal.SIGSEGV, "", "", [], "signal"),
        (-signal.SIGALRM, "", "", [], "timeout"),
        (0, "id,probability\na,nan\n", "", ["out/run.json", "out/predictions.csv"], "not finite"),
        (0, "id,p(x)\na,inf\n", "", ["out/run.json", "out/predictions.csv"], "not finite"),
        (0, "id,class\na,inf\n", "", ["out/run.json", "out/predictions.csv"], "accepted"),
    ],
)
def test_outcomes_are_judged(tmp_path, code, out, err, files, state):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert judge(code, out, err, tmp_path, "out").state == state
