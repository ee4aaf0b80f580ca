"""The paper's tables, made from records, with the published results for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcgst.bench.cells import Cell
from dcgst.bench.experiments import ABLATIONS, BASELINES, RATES, protocol_cell
from dcgst.bench.notes import ABLATION_EXPLANATION, TUNED, ablation_note, comparison_notes
from dcgst.bench.published import PublishedResult, published_ablation, published_result
from dcgst.bench.ranking import best_row, mean_ranks, significance_marks
from dcgst.bench.records import Records, StoredRecord
from dcgst.datasets import DATASETS

TITLES = {
    "gcn": "GCN",
    "st": "ST",
    "m3s": "M3S",
    "drgst": "DR-GST",
    "srgnn": "SR-GNN",
    "eerm": "EERM",
    "srgnn_st": "SR-GNN + ST",
    "dcgst": "DC-GST",
    "ensemble": "ensemble (not of the paper)",
}
ABLATION_TITLES = {
    "full": "full",
    "no_ep_cmd": "no CMD on EP",
    "no_ner": "no NER",
    "no_ep": "no EP",
}


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        title: Title.
        headers: Header of each column.
        rows: Text of each cell.
        notes: Notes below the table.
    """

    title: str
    headers: list[str]
    rows: list[list[str]]
    notes: list[str]

    def markdown(self) -> str:
        """Render the table with its title and notes as Markdown."""
        lines = [self.headers, ["---"] * len(self.headers), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"### {self.title}", body, *self.notes])


def comparison_table(
    title: str,
    datasets: Sequence[str],
    sampler: str,
    records: Records,
    runs: int = 10,
    *,
    tuned: bool = False,
) -> Table:
    """Compare all methods at every label rate, with mean ranks and significance marks.

    Args:
        title: Title of the table.
        datasets: Names of the datasets.
        sampler: Name of the label sampler.
        records: Records to use. Missing ones are shown as a dash.
        runs: Number of runs per cell.
        tuned: Whether the baselines have settings found by search.
    """
    of_baselines = "tuned" if tuned else "default"
    methods = [
        *((name, of_baselines) for name in BASELINES),
        ("dcgst", "paper"),
        ("ensemble", "default"),
    ]
    columns = [(dataset, rate) for dataset in datasets for rate in RATES[dataset]]
    grid = [
        [
            records.find(protocol_cell(dataset, name, rate, sampler, preset, runs=runs))
            for dataset, rate in columns
        ]
        for name, preset in methods
    ]
    ranks = mean_ranks(grid[:-1])
    rank_texts = [""] * len(grid) if ranks is None else [*(f"{rank:.1f}" for rank in ranks), ""]
    by_column = [
        _comparison_column(methods, [row[i] for row in grid], dataset, rate, sampler)
        for i, (dataset, rate) in enumerate(columns)
    ]
    row_titles = [_row_title(*method) for method in methods]
    rows = [list(row) for row in zip(row_titles, *by_column, rank_texts, strict=True)]
    headers = [
        f"{100 * rate:g}%" if len(datasets) == 1 else f"{dataset} {100 * rate:g}%"
        for dataset, rate in columns
    ]
    notes = comparison_notes(grid, columns)
    return Table(title, ["", *headers, "mean rank"], rows, [TUNED, *notes[1:]] if tuned else notes)


def ablation_table(title: str, records: Records, runs: int = 10) -> Table:
    """Compare the paper's method with its ablations on Cora and CiteSeer."""
    datasets = ("cora", "citeseer")
    rows = [[ABLATION_TITLES[name]] for name in ABLATIONS]
    notes = [ABLATION_EXPLANATION]
    for dataset in datasets:
        column = []
        for row, (name, settings) in zip(rows, ABLATIONS.items(), strict=True):
            preset = f"paper/{dataset}"
            cell = Cell(dataset, "dcgst", 0.02, preset=preset, settings=settings, runs=runs)
            column.append(records.find(cell))
            row.append(_format(column[-1], published_ablation(dataset, name)))
        if note := ablation_note(dataset, column, list(ABLATION_TITLES.values())[1:]):
            notes.append(note)
    return Table(title, ["", *datasets], rows, notes)


def dataset_table(title: str) -> Table:
    """List the sizes of the datasets."""
    rows = [
        [name, *(f"{count:,}" for count in (e.nodes, e.edges, e.features, e.classes))]
        for name, e in DATASETS.items()
        if name in RATES
    ]
    return Table(title, ["", "nodes", "edges", "features", "classes"], rows, [])


def _comparison_column(
    methods: Sequence[tuple[str, str]],
    column: Sequence[StoredRecord | None],
    dataset: str,
    rate: float,
    sampler: str,
) -> list[str]:
    """Format the records of all methods in one setting; the last is the ensemble."""
    best, marks = best_row(column[:-1]), significance_marks(column[:-1])
    # Published results are shown only if no record of the column uses substitute features.
    official = all(record is None or record["official"] for record in column)
    texts = []
    for row, ((name, _), record) in enumerate(zip(methods, column, strict=True)):
        published = published_result(dataset, sampler, rate, name) if official else None
        texts.append(_format(record, published, bold=row == best) + marks.get(row, ""))
    return texts


def _row_title(name: str, preset: str) -> str:
    endings = {"default": "", "tuned": ", tuned", "paper": ""}
    return TITLES[name] + endings[preset]


def _format(
    record: StoredRecord | None, published: PublishedResult | None, bold: bool = False
) -> str:
    """Format our accuracy, followed by the published one in parentheses if it is given."""
    text = "–" if record is None else f"{record['mean']:.1f}"
    if record is not None and record["runs"] > 1:
        text += f" ± {record['std']:.1f}"
    if bold:
        text = f"**{text}**"
    if published is None:
        return text
    return f"{text} ({'OOM' if published.mean is None else format(published.mean, '.1f')})"
