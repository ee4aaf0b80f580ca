"""The page of the few-label suite and its short table, and that the committed ones are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcgst.bench.cells import Records
from dcgst.bench.suite import FLOORS, METHOD, METHODS, render_suite, suite_cells, suite_summary
from tests.bench.conftest import make_record

ROOT = Path(__file__).parents[2]
QUALITY = {"balanced_accuracy": 55.0, "macro_f1": 50.0, "ece": 0.1, "share_error": 0.05}


@pytest.fixture
def measured():
    """The ensemble has 70, DC-GST 68, floors 60 to 64, with validation labels two more."""
    levels = {name: 60.0 + i for i, name in enumerate(FLOORS)}
    levels |= {"majority": 30.0, METHOD: 70.0, "dcgst": 68.0}
    return [
        make_record(
            cell,
            [levels[cell.method] + 2 * cell.train_on_validation] * 5,
            validation=cell.validation,
            train_on_validation=cell.train_on_validation,
            **QUALITY,
        )
        for cell in suite_cells(["cora", "german"], METHODS)
    ]


def test_page_has_methods_groups_and_gaps(records, measured):
    for record in measured:
        records.add(record)
    text = render_suite(records)
    assert text.startswith("# Few-label suite\n\n2 graphs with 10 labels per class")
    assert "| uniform | 0 | majority | 30.0 |" in text
    assert "| uniform | 20 | em+val | 66.0 |" in text
    assert "| uniform | 20 | ensemble | 70.0 | 55.0 | 50.0 | +6.0 | +6.0 | +4.0 |" in text
    assert "| tables | 1 | uniform | 0 | dcgst | +4.0 | +4.0 |" in text
    assert "| german | +6.0 | +6.0 | +6.0 | +6.0 | +6.0 | +6.0 |" in text
    assert "measured a second time" in text


def test_parts_without_records_are_left_out(records, measured):
    assert "Nothing was measured yet" in render_suite(records)
    assert "mean of 0 graphs" in suite_summary(records)
    plain = (*FLOORS, "dcgst")
    for record in measured:
        if record.method in plain and not record.train_on_validation:
            records.add(record)
    text = render_suite(records)
    assert "| uniform | 20 | dcgst | 68.0 |" in text
    assert "ensemble" not in text
    assert "measured a second time" not in text
    lines = suite_summary(records).splitlines()
    assert lines[0] == "| labels | validation | GCN | APPNP | best plain method | DC-GST |"


def test_short_table_has_the_best_plain_method(records, measured):
    for record in measured:
        records.add(record)
    lines = suite_summary(records).splitlines()
    assert lines[2] == "| random | none | 60.0 | 61.0 | 64.0 | 64.0 | 70.0 | 68.0 |"
    assert lines[3] == "| random | 20 random | 60.0 | 61.0 | 64.0 | 66.0 | 70.0 | 68.0 |"


def test_committed_page_and_table_match_the_records():
    records = Records(ROOT / "results" / "suite.jsonl")
    assert (ROOT / "docs" / "suite.md").read_text(encoding="utf-8") == render_suite(records)
    assert suite_summary(records) in (ROOT / "README.md").read_text(encoding="utf-8")
