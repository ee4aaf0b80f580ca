"""Outputs never replace inputs or files of a run folder or a store."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from dcgst.tables.importing import import_tables
from tests.cli.helpers import dcgst


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.fixture
def places(run_folder, tables, tmp_path):
    """A copy of a run, of the tables, and a store of them."""
    shutil.copytree(run_folder, tmp_path / "run")
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(tables / name, tmp_path / name)
    import_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g.store")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "run", "run", "-o", "run/run.json"],
        ["compare", "run", "run", "-o", "run/new/page.html"],
        ["config", "--save", "run/run.json", "fit", "nodes.csv"],
        ["predict", "run", "-o", "run/predictions.csv"],
        ["predict", "run", "-o", "g.store/ids.csv"],
        ["predict", "run", "--embeddings", "run/e.parquet"],
        ["predict", "run", "nodes.csv", "edges.csv", "-o", "nodes.csv"],
        ["suggest", "run", "-o", "run/next.csv"],
        ["audit", "run", "-o", "run/audit.csv"],
        ["report", "run", "-o", "run/run.json"],
        ["label", "run", "-o", "run/labels.csv", "--no-browser"],
        ["fit", "nodes.csv", "edges.csv", "--label", "kind", "--method", "lp", "-o", "run/again"],
        ["fit", "nodes.csv", "edges.csv", "--label", "kind", "--method", "lp", "-o", "g.store/run"],
        ["refit", "run", "-o", "run/second"],
        ["tune", "--method", "lp", "--dataset", "synthetic/200", "--studies", "run"],
        ["bench", "--suite", "--dataset", "synthetic/200", "--results", "run/suite.jsonl"],
    ],
)
def test_outputs_are_not_written_into_a_run_or_a_store_or_over_an_input(
    places, monkeypatch, arguments
):
    monkeypatch.chdir(places)
    before = digests(places)
    done = dcgst(*arguments)
    assert done.code == 2, done.words
    assert "choose another" in done.words
    assert digests(places) == before


def test_a_report_is_written_into_its_run(places, monkeypatch):
    monkeypatch.chdir(places)
    assert dcgst("report", "run").code == 0
    assert dcgst("report", "run", "-o", "run/report.html").code == 0
