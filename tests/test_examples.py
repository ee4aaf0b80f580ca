"""The examples run as they stand, and do what they say."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def made_papers(printed: str, folder: Path) -> None:
    assert "300 papers, 16 with a topic" in printed
    for name in ("papers.csv", "papers_edges.csv"):
        assert (folder / name).read_bytes() == (EXAMPLES / "data" / name).read_bytes()


def from_csv(printed: str, folder: Path) -> None:
    assert "300 nodes" in printed
    assert "text, tf-idf" in printed
    with open(folder / "papers" / "predictions.csv", newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 300
    with open(EXAMPLES / "data" / "papers.csv", newline="", encoding="utf-8") as file:
        given = {row["id"]: row["topic"] for row in csv.DictReader(file) if row["topic"]}
    kept = {row["id"]: row["class"] for row in found if row["source"] == "given"}
    assert kept == given, "given labels stay"
    assert "<title>" in (folder / "papers" / "report.html").read_text(encoding="utf-8")


def from_pyg(printed: str, folder: Path) -> None:
    assert "learned from 36 validation nodes" in printed
    assert float(re.search(r"([\d.]+)% of \d+ test nodes", printed)[1]) > 80
    assert (folder / "pyg" / "run.json").exists()


def active_labeling(printed: str, folder: Path) -> None:
    before, after = (float(found) for found in re.findall(r"labels, ([\d.]+)%", printed))
    assert after > before
    assert "before: 20 labels" in printed
    assert "after: 30 labels" in printed


CHECKS = {
    "make_papers": made_papers,
    "from_csv": from_csv,
    "from_pyg": from_pyg,
    "active_labeling": active_labeling,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    CHECKS[script.stem](done.stdout, tmp_path)


def test_the_notebook_runs(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code), "stored without outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}
    )
    client.execute()
    printed = "".join(out.get("text", "") for cell in code for out in cell.outputs)
    assert "300 nodes" in printed
    assert "It is " in printed, "the explanation"
    assert "report.html" in printed
