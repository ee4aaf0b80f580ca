"""The examples run and do what they say."""

from __future__ import annotations

import csv
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

FRAUD_TABLES = ("accounts", "links", "truth")
EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def check_make_papers(printed: str, folder: Path) -> None:
    assert "300 papers, 16 with a topic" in printed
    for name in ("papers.csv", "papers_edges.csv"):
        assert (folder / name).read_bytes() == (EXAMPLES / "data" / name).read_bytes()


def check_from_csv(printed: str, folder: Path) -> None:
    assert "300 nodes" in printed
    assert "text, 99 words" in printed
    with open(folder / "papers" / "predictions.csv", newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 300
    with open(EXAMPLES / "data" / "papers.csv", newline="", encoding="utf-8") as file:
        given = {row["id"]: row["topic"] for row in csv.DictReader(file) if row["topic"]}
    kept = {row["id"]: row["class"] for row in found if row["source"] == "given"}
    assert kept == given, "given labels are kept"
    assert "<title>" in (folder / "papers" / "report.html").read_text(encoding="utf-8")


def check_from_pyg(printed: str, folder: Path) -> None:
    assert "the agreement of members and 36 validation nodes" in printed
    assert float(re.search(r"test nodes: ([\d.]+)%", printed)[1]) > 80
    assert (folder / "pyg" / "run.json").exists()


def check_active_labeling(printed: str, folder: Path) -> None:
    before, after = (float(found) for found in re.findall(r"accuracy ([\d.]+)%", printed))
    assert after > before
    assert "before: 20 labels" in printed
    assert "after: 30 labels" in printed


def check_label_papers(printed: str, folder: Path) -> None:
    assert "300 topics" in printed
    with open(folder / "topics.csv", newline="", encoding="utf-8") as file:
        topics = {row["id"]: row["topic"] for row in csv.DictReader(file)}
    with open(EXAMPLES / "data" / "papers.csv", newline="", encoding="utf-8") as file:
        given = {row["id"]: row["topic"] for row in csv.DictReader(file) if row["topic"]}
    assert topics.items() >= given.items()


def check_make_fraud(printed: str, folder: Path) -> None:
    counts = {name: len((folder / f"{name}.csv").read_text().splitlines()) for name in FRAUD_TABLES}
    assert counts["accounts"] == counts["truth"] == 2001
    assert counts["links"] > 10_000


CHECKS = {
    "make_fraud": check_make_fraud,
    "make_papers": check_make_papers,
    "from_csv": check_from_csv,
    "from_pyg": check_from_pyg,
    "active_labeling": check_active_labeling,
    "label_papers": check_label_papers,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{script}.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / f"{script}.py"), run_name="__main__")
    CHECKS[script](capsys.readouterr().out, tmp_path)


@pytest.fixture(scope="module")
def notebook() -> dict:
    return json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))


def test_the_notebook_is_valid_and_stored_without_outputs(notebook):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.from_dict(notebook))
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_the_code_of_the_notebook_runs(notebook, monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert "300 nodes" in printed
    assert "It is " in printed, "the explanation"
    assert "report.html" in printed
