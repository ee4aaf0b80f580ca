"""The results page: every table from the same records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcgst.bench.experiments import EXPERIMENTS, Experiment
from dcgst.bench.figures import FIGURES
from dcgst.bench.records import Records
from dcgst.bench.tables import Table, ablation, comparison, datasets


def page(records: Records, runs: int = 10) -> str:
    """All tables and figures as a page in Markdown, with where the figures come from."""
    answers = list(records.by_key.values())
    parts = ["# Results", _origin(answers)]
    parts += [table.markdown() for table in tables(list(EXPERIMENTS.values()), records, runs)]
    for name in FIGURES:
        title = EXPERIMENTS[name].title
        parts.append(f"### {name}: {title}\n\n![{title}](../results/figures/{name}.svg)")
    return "\n\n".join(parts) + "\n"


def _origin(answers: list[dict[str, Any]]) -> str:
    """Devices, commits and hours behind the records."""
    devices = sorted({str(answer["device"]) for answer in answers})
    commits = sorted({str(answer["commit"]) for answer in answers})
    hours = sum(answer["seconds"] for answer in answers) / 3600
    return (
        "This page is made by `dcgst reproduce all --page docs/results.md` from the lines of "
        f"`results/reproduce.jsonl`: {len(answers)} cells, {hours:.1f} hours of fits in all, on "
        f"{', '.join(devices) or 'nothing yet'}, at commit {', '.join(commits) or 'none'}. Any "
        "cell can be run again: take its line out of the file, or use another file."
    )


def tables(experiments: list[Experiment], records: Records, runs: int = 10) -> list[Table]:
    """The tables among these experiments."""

    def compare(title: str, names: list[str], sampler: str) -> Callable[[], Table]:
        return lambda: comparison(title, names, sampler, records, runs)

    made: dict[str, Callable[[], Table]] = {
        "table1": compare("Biased labels on Cora and PubMed", ["cora", "pubmed"], "released"),
        "table2": compare("Biased labels on CiteSeer", ["citeseer"], "released"),
        "table3": lambda: ablation(records, runs),
        "table4": datasets,
        "table5": compare("Random labels on CiteSeer", ["citeseer"], "uniform"),
        "arxiv": compare("Biased labels on ogbn-arxiv", ["ogbn-arxiv"], "released"),
    }
    return [made[e.name]() for e in experiments if e.name in made]
