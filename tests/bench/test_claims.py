"""Claims of the paper: what holds, what fails, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from dcgst.bench.cells import Records
from dcgst.bench.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Comparison,
    Found,
    claim_sections,
    claims_table,
    ratio_at_the_same_number,
    verdict,
)
from dcgst.bench.experiments import EXPERIMENTS, cells_of
from tests.bench.conftest import make_record

ROOT = Path(__file__).parents[2]
NOISE = np.linspace(-1, 1, 10)


def comparison(mean: float) -> Comparison:
    return Comparison("a - b", mean + NOISE)


def test_the_interval_is_that_of_students_t():
    values = np.array([0.4, 1.9, -0.3, 2.2, 0.8])
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert Comparison("a - b", values).interval == pytest.approx((expected.low, expected.high))


def test_a_published_value_is_reached_unless_the_difference_is_below_beyond_chance():
    def reached(mean: float, error: float = 0.0) -> str:
        return Comparison("ours - published", mean + NOISE, None, error, reached=True).outcome

    assert [reached(mean) for mean in (2, 0.1, -0.1, -2)] == [HOLDS, HOLDS, HOLDS, FAILS]
    assert reached(-2, error=2.0) == HOLDS, "the published mean has an error, too"


def test_shifts_are_compared_at_the_same_number_of_labels():
    ours = [{"labeled": n, "fixed_cmd": v} for n, v in ((10, 0.4), (40, 0.1), (90, 0.3))]
    other = [{"labeled": n, "fixed_cmd": v} for n, v in ((10, 0.4), (160, 0.8))]
    assert ratio_at_the_same_number(ours, other) == pytest.approx(0.1 / 0.6)
    short = [other[0], {"labeled": 20, "fixed_cmd": 0.5}]  # our shift is .25 with 20 labels
    assert ratio_at_the_same_number(ours, short) == pytest.approx(0.25 / 0.5)


def test_a_difference_holds_or_fails_if_its_interval_excludes_zero():
    assert [comparison(mean).outcome for mean in (2, 0.1, -2)] == [HOLDS, UNDECIDED, FAILS]
    ends = [Comparison("one number", np.array([value])).outcome for value in (0.1, -0.1, 0.0)]
    assert ends == [HOLDS, FAILS, FAILS]


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([2, 2, 0.1], REPRODUCED),
        ([2, 0.1, 0.1], PARTLY),
        ([2, 2, -2], PARTLY),
        ([2, -2, -2], NOT_REPRODUCED),
        ([0.1, 0.1], UNDECIDED),
        ([0.1, 0.1, -2], NOT_REPRODUCED),
        ([2, -2], PARTLY),
        ([], UNDECIDED),
    ],
)
def test_verdict(means, expected):
    assert verdict([comparison(mean) for mean in means]) == expected


def test_methods_are_compared_in_the_same_runs(tmp_path):
    """The values are the differences in each run, mean over the label rates."""
    records = Records(tmp_path / "records.jsonl")
    accuracy = {"st": 60 + NOISE, "gcn": 50 + 3 * NOISE}
    for cell in cells_of([EXPERIMENTS["table1"], EXPERIMENTS["table2"]]):
        if cell.method in ("gcn", "st", "m3s", "drgst"):
            records.add(make_record(cell, list(accuracy.get(cell.method, 40 + NOISE))))
    first, second = list(CLAIMS[0].compare(Found(records)))[:2]
    assert first.title == "Cora: ST - GCN"
    np.testing.assert_allclose(first.values, 10 - 2 * NOISE)
    assert first.published == pytest.approx((315.3 - 310.2) / 5)
    assert (first.outcome, second.outcome) == (HOLDS, FAILS)


def test_claims_without_records_have_no_verdict(tmp_path):
    table = claims_table("Claims", Records(tmp_path / "none.jsonl"))
    assert len(table.rows) == len(CLAIMS)
    assert [row[-1] for row in table.rows].count("–") == len(table.rows) - 1
    assert ["17", CLAIMS[16].title, "0", "0", "0", UNDECIDED] in table.rows, "it needs no records"


def test_the_committed_page_is_that_of_the_committed_records():
    records = Records(ROOT / "results" / "reproduce.jsonl")
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert claim_sections(records) in page
    for row in claims_table("", records).rows:
        assert "| " + " | ".join(row) + " |" in page


def test_every_claim_has_a_command_that_exists():
    for claim in CLAIMS:
        assert set(claim.command.split()[2:]) <= EXPERIMENTS.keys()
