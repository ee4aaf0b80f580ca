"""``dcgst demo``: what label bias does, shown on embedded data."""

from __future__ import annotations

from rich.table import Table

from dcgst.bench.protocol import Labels, run_cell
from dcgst.cli.output import JsonOption, QuietOption, console, print_json, progress
from dcgst.datasets import load
from dcgst.methods import GCN

PER_CLASS, RUNS = 4, 5
WAYS = {
    "uniform": "at random",
    "ppr-s": "from one corner of each class",
}


def demo(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show on embedded data what it costs when the labeled nodes are not representative."""
    graph = load("digits")
    records = {}
    for sampler, words in WAYS.items():
        with progress(f"labels {words}", RUNS, quiet or json) as callback:
            labels = Labels(sampler, per_class=PER_CLASS, runs=RUNS)
            records[sampler] = run_cell(graph, GCN(), labels, callbacks=[callback])
        if json:
            print_json(records[sampler])
    if json:
        return
    console.print(
        f"{graph.num_nodes:,} handwritten digits, each joined to its most similar ones; "
        f"{PER_CLASS} labels per digit; a plain GCN.\n"
    )
    table = Table("labels were taken", "accuracy %", "shift of the labels (CMD)", box=None)
    for sampler, words in WAYS.items():
        r = records[sampler]
        table.add_row(words, f"{r.mean:.1f} ± {r.std:.1f}", f"{r.cmd_before:.2f}")
    console.print(table)
    fair, biased = records["uniform"], records["ppr-s"]
    console.print(
        f"\nAs many labels, but not representative: {fair.mean - biased.mean:.1f} points "
        f"lost, and a shift {biased.cmd_before / fair.cmd_before:.1f} times as large.\n"
        "Next: dcgst datasets, dcgst methods, dcgst bench --help"
    )
