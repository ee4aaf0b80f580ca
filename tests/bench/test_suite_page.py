"""The page of the few-label suite and its short table, and that the committed ones are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcgst.bench.records import Records
from dcgst.bench.suite import FLOORS, suite_cells
from dcgst.bench.suite_page import (
    ABLATIONS,
    METHOD,
    ablation_table,
    find_regimes,
    render_suite,
    suite_summary,
)
from tests.bench.conftest import make_record

ROOT = Path(__file__).parents[2]
QUALITY = {"macro_f1": 50.0, "ece": 0.1, "share_error": 0.05}


@pytest.fixture
def suite_records(records):
    """Two graphs; DC-GST has 70, without experts 68, by confidence 70.5, floors 60 to 64."""
    levels = {**{name: 60.0 + i for i, name in enumerate(FLOORS)}, METHOD: 70.0}
    for shift, settings in ((0.0, {}), (-2.0, ABLATIONS["experts"])):
        for cell in suite_cells(["cora", "digits"], [METHOD], settings={METHOD: settings}):
            level = levels[cell.method] + (shift if cell.method == METHOD else 0)
            quality = {**QUALITY, "validation": cell.validation}
            records.add(make_record(cell, [level] * 5, **quality))
    by_confidence = {METHOD: ABLATIONS["selection by shift"]}
    for cell in suite_cells(["cora", "digits"], [METHOD], settings=by_confidence):
        if cell.method == METHOD:
            level = 70.5 if cell.dataset == "cora" else 69.0
            quality = {**QUALITY, "validation": cell.validation}
            records.add(make_record(cell, [level] * 5, **quality))
    return records


def test_page_has_methods_gaps_and_ablations(suite_records):
    text = render_suite(suite_records)
    assert text.startswith("# Few-label suite\n\n2 graphs with 10 labels per class")
    assert "| uniform | 0 | dcgst | 70.0 | +6.0 | +6.0 |" in text
    assert "| digits | +6.0 | +6.0 | +6.0 | +6.0 | +6.0 | +6.0 |" in text


def test_ablations_are_paired_by_graph(suite_records):
    table = ablation_table(suite_records, find_regimes(suite_records, 5), 5)
    assert len(table.rows) == 2 * 6
    assert table.rows[0][:5] == ["experts", "random", "0", "+2.0", "2 of 2"]
    assert table.rows[6][:5] == ["selection by shift", "random", "0", "+0.2", "1 of 2"]
    assert 0 < float(table.rows[0][5]) <= 1


def test_short_table_has_the_best_plain_method(suite_records):
    lines = suite_summary(suite_records).splitlines()
    assert lines[2] == "| random | none | 60.0 | 61.0 | 64.0 | 70.0 |"
    assert lines[3] == "| random | 20 random | 60.0 | 61.0 | 64.0 | 70.0 |"


def test_committed_page_and_table_match_the_records():
    records = Records(ROOT / "results" / "suite.jsonl")
    assert (ROOT / "docs" / "suite.md").read_text(encoding="utf-8") == render_suite(records)
    assert suite_summary(records) in (ROOT / "README.md").read_text(encoding="utf-8")
