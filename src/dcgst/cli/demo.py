"""``dcgst demo``: what label bias does and what DC-GST does about it, on embedded data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.cli.output import JsonOption, QuietOption, check_folder, console, print_json, progress
from dcgst.datasets import load
from dcgst.graph import Graph
from dcgst.methods import DCGST, EM, GCN, Method
from dcgst.report import write_report
from dcgst.runs import fit
from dcgst.splits import sample

PER_CLASS, RUNS = 4, 5
FAIR, BIASED = ("uniform", "at random"), ("ppr-s", "from one corner of each class")


@dataclass(frozen=True)
class Row:
    labels: tuple[str, str]
    title: str
    method: Method


ROWS = (
    Row(FAIR, "plain GCN", GCN()),
    Row(BIASED, "plain GCN", GCN()),
    Row(BIASED, "seeded EM alone", EM()),
    Row(BIASED, "DC-GST without EM", DCGST(prior="none")),
    Row(BIASED, "DC-GST", DCGST()),
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for a run with its report.")
    ] = Path("demo-run"),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show on embedded data what unrepresentative labels cost, and how much DC-GST wins back."""
    check_folder(out)
    graph = load("digits")
    records: list[Record] = []
    for row in ROWS:
        sampler, words = row.labels
        trainings = RUNS * row.method.trainings
        with progress(f"{row.title}, labels {words}", trainings, quiet or json) as callback:
            labels = Labels(sampler, per_class=PER_CLASS, runs=RUNS)
            records.append(run_cell(graph, row.method, labels, callbacks=[callback]))
        if json:
            print_json(records[-1])
    if json:
        return
    console.print(
        f"{graph.num_nodes:,} handwritten digits, each joined to its most similar ones; "
        f"{PER_CLASS} labels per digit.\n"
    )
    table = Table("labels were taken", "method", "accuracy %", "shift", box=None)
    for row, r in zip(ROWS, records, strict=True):
        shift = f"{r.cmd_before:.2f}"
        if isinstance(row.method, DCGST):
            shift += f" → {r.cmd_after:.2f}"
        table.add_row(row.labels[1], row.title, f"{r.mean:.1f} ± {r.std:.1f}", shift)
    console.print(table)
    fair, biased, *_, ours = (round(record.mean, 1) for record in records)
    console.print(
        f"\nAs many labels, but not representative, cost {fair - biased:.1f} points; DC-GST gains "
        f"{ours - biased:.1f}. Shift: distance (CMD) between labeled nodes and the rest, before "
        "and after pseudo-labels."
    )
    model = DCGST()
    with progress("a run with a report", model.trainings, quiet) as callback:
        run = fit(_first_run(graph), out, model, overwrite=True, callbacks=[callback])
    console.print(
        f"Report of the first of these runs: {write_report(run)}\n"
        "Next: dcgst fit nodes.csv edges.csv for your own graph, dcgst bench --help",
        highlight=False,
        soft_wrap=True,
    )


def _first_run(graph: Graph) -> Graph:
    """The graph with the biased labels of run 0 as its masks; the truth stays, to compare with."""
    split = sample(graph, BIASED[0], per_class=PER_CLASS, runs=1)
    return replace(graph, masks={"train": split.train[0], "val": split.val[0]})
