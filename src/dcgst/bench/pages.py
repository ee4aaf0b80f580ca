"""Generate the results page and the short table of the README from records."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from dcgst.bench.cells import Records, StoredRecord
from dcgst.bench.claims import claims_table
from dcgst.bench.experiments import (
    EXPERIMENTS,
    OTHER_RATES,
    RATES,
    SUMMARY,
    Experiment,
    cells_of,
    summary_cells,
)
from dcgst.bench.figures import CAPTIONS, FIGURES
from dcgst.bench.results import (
    DATASET_TITLES,
    PublishedResult,
    Table,
    ablation_table,
    comparison_table,
    dataset_table,
    graphs_table,
    published_result,
)


def render_page(records: Records, runs: int = 10) -> str:
    """Render all tables and figures, and the origin of their records, as Markdown."""
    experiments = list(EXPERIMENTS.values())
    found = [records.find(cell) for cell in cells_of(experiments, runs)]
    parts = ["# Results", _origin([record for record in found if record is not None])]
    parts += [table.markdown() for table in make_tables(experiments, records, runs)]
    for name in FIGURES:
        title = EXPERIMENTS[name].title
        image = f"![{title}](../results/figures/{name}.svg)"
        parts.append(f"### {name}: {title}\n\n{image}\n\n{CAPTIONS[name]}")
    return "\n\n".join(parts) + "\n"


def _origin(found: list[StoredRecord]) -> str:
    """Describe the devices, commits and total time of the records."""
    devices = sorted({str(record["device"]) for record in found})
    commits = sorted({str(record["commit"]) for record in found})
    hours = sum(record["seconds"] for record in found) / 3600
    return (
        "`make results` generates this page from the records in `results/reproduce.jsonl`: "
        f"{len(found)} cells, {hours:.1f} hours if run sequentially, on "
        f"{', '.join(devices) or 'no device'}, at commit {', '.join(commits) or 'none'}. "
        "`dcgst reproduce all` runs all cells again, `dcgst bench` runs a single cell. On a GPU, "
        "the order of floating-point sums is not fixed: with few labels, the mean of the same ten "
        "runs can vary by one or two points, and so can the differences between rows."
    )


def make_tables(experiments: list[Experiment], records: Records, runs: int = 10) -> list[Table]:
    """Make the tables of those experiments that are tables."""

    def compare(title: str, dataset: str, sampler: str = "released", **options: Any) -> Table:
        return comparison_table(title, [dataset], sampler, records, runs, **options)

    makers: dict[str, Callable[[], list[Table]]] = {
        "table1": lambda: [
            compare("Table 1: biased labels on Cora", "cora"),
            compare("Table 1: biased labels on PubMed", "pubmed"),
        ],
        "table2": lambda: [compare("Table 2: biased labels on CiteSeer", "citeseer")],
        "summary": lambda: [mean_table("Mean over the label rates", records, runs)],
        "table3": lambda: [ablation_table("Table 3: ablation", records, runs)],
        "table4": lambda: [dataset_table("Table 4: datasets")],
        "table5": lambda: [compare("Table 5: random labels on CiteSeer", "citeseer", "uniform")],
        "tuned": lambda: [
            compare(f"Tuned baselines: biased labels on {title}", dataset, tuned=True)
            for dataset, title in DATASET_TITLES.items()
        ],
        "claims": lambda: [claims_table("Claims of the paper", records, runs)],
        "rates": lambda: [
            compare(f"Other label rates on {DATASET_TITLES[name]}", name, "ppr-s")
            for name in OTHER_RATES
        ],
        "graphs": lambda: [graphs_table("Other graphs", records, runs)],
        "arxiv": lambda: [compare("Table 1: biased labels on ogbn-arxiv", "ogbn-arxiv")],
    }
    return [table for e in experiments if e.name in makers for table in makers[e.name]()]


SUMMARY_TITLES = {
    "gcn": "GCN",
    "m3s": "M3S",
    "srgnn_st": "SR-GNN + ST",
    "em": "seeded EM",
    "dcgst": "DC-GST",
    "ensemble": "ensemble (not of the paper)",
}


def mean_table(title: str, records: Records, runs: int = 10) -> Table:
    """The mean accuracy over all label rates of each dataset; it is in the README."""
    headers = ["biased labels", *DATASET_TITLES.values()]
    rows = []
    for method, preset in SUMMARY:
        row = [SUMMARY_TITLES[method]]
        for dataset in DATASET_TITLES:
            cells = [cell.with_runs(runs) for cell in summary_cells(dataset, method, preset)]
            published = [
                published_result(dataset, "released", rate, method) for rate in RATES[dataset]
            ]
            row.append(_summary_text(records.find_all(cells), published))
        rows.append(row)
    note = (
        f"Accuracy in %, mean over the label rates of the paper and {runs} runs; in parentheses "
        "the published value. ST: self-training; EM: clustering of smoothed features, initialized "
        "by the labels."
    )
    return Table(title, headers, rows, [note])


def _summary_text(found: list[StoredRecord] | None, published: list[PublishedResult | None]) -> str:
    """Mean accuracy, and the mean published accuracy if all values are published."""
    text = "–" if found is None else f"{mean(record['mean'] for record in found):.1f}"
    values = [p.mean for p in published if p is not None and p.mean is not None]
    return f"{text} ({mean(values):.1f})" if len(values) == len(published) else text
