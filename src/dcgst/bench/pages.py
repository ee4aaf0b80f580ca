"""The results page: every table from the same records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcgst.bench.experiments import EXPERIMENTS, Experiment, cells_of
from dcgst.bench.figures import CAPTIONS, FIGURES
from dcgst.bench.records import Records
from dcgst.bench.tables import Table, ablation, comparison, datasets


def page(records: Records, runs: int = 10) -> str:
    """All tables and figures as a page in Markdown, with where the figures come from."""
    wanted = cells_of(list(EXPERIMENTS.values()), runs)
    answers = [records.by_key[cell.key] for cell in wanted if cell.key in records.by_key]
    parts = ["# Results", _origin(answers)]
    parts += [table.markdown() for table in tables(list(EXPERIMENTS.values()), records, runs)]
    for name in FIGURES:
        title = EXPERIMENTS[name].title
        picture = f"![{title}](../results/figures/{name}.svg)"
        parts.append(f"### {name}: {title}\n\n{picture}\n\n{CAPTIONS[name]}")
    return "\n\n".join(parts) + "\n"


def _origin(answers: list[dict[str, Any]]) -> str:
    """Devices, commits and hours behind the records."""
    devices = sorted({str(answer["device"]) for answer in answers})
    commits = sorted({str(answer["commit"]) for answer in answers})
    hours = sum(answer["seconds"] for answer in answers) / 3600
    return (
        "This page is made by `make results` from the lines of `results/reproduce.jsonl`: "
        f"{len(answers)} cells, {hours:.1f} hours if run one after the other, on "
        f"{', '.join(devices) or 'nothing yet'}, at commit {', '.join(commits) or 'none'}. "
        "`dcgst reproduce all` runs all of it anew, `dcgst bench` any single cell. On a GPU sums "
        "are not taken in a fixed order: the mean of the same ten runs can differ by a point or "
        "two where few labels are given, and so can gaps between rows."
    )


def tables(experiments: list[Experiment], records: Records, runs: int = 10) -> list[Table]:
    """The tables among these experiments."""

    def compare(title: str, dataset: str, sampler: str = "released") -> Table:
        return comparison(title, [dataset], sampler, records, runs)

    made: dict[str, Callable[[], list[Table]]] = {
        "table1": lambda: [
            compare("Table 1: biased labels on Cora", "cora"),
            compare("Table 1: biased labels on PubMed", "pubmed"),
        ],
        "table2": lambda: [compare("Table 2: biased labels on CiteSeer", "citeseer")],
        "table3": lambda: [ablation("Table 3: ablation", records, runs)],
        "table4": lambda: [datasets("Table 4: data sets")],
        "table5": lambda: [compare("Table 5: random labels on CiteSeer", "citeseer", "uniform")],
        "arxiv": lambda: [compare("Table 1: biased labels on ogbn-arxiv", "ogbn-arxiv")],
    }
    return [table for e in experiments if e.name in made for table in made[e.name]()]


def main_table(records: Records, runs: int = 10) -> str:
    """Cora and PubMed side by side, for the README."""
    return comparison("Biased labels", ["cora", "pubmed"], "released", records, runs).markdown()
