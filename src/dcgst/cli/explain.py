"""``dcgst explain``: why a node has its class."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from dcgst.cli.output import JsonOption, cell, console, print_json, say
from dcgst.cli.run_options import RunArgument
from dcgst.insight import Explanation, explain
from dcgst.insight.explanation import RelatedNode
from dcgst.runs import open_run

MOST_CANDIDACIES = 12
"""Maximum number of stages to print."""


def command(
    folder: RunArgument,
    node: Annotated[str, typer.Argument(help="Id of the node.")],
    json: JsonOption = False,
) -> None:
    """Explain the predicted class of a node.

    Shows when and why the node did or did not get a pseudo-label, its neighbors, and labels nearby.
    """
    explanation = explain(open_run(folder), node)
    if json:
        print_json(asdict(explanation))
        return
    console.print(f"[bold]{cell(explanation.id)}[/bold]", highlight=False)
    for line in explanation.summary:
        say(line, wrap=True)
    _show_candidacies(explanation)
    _show_nodes("\nNeighbors", "edge weight", explanation.neighbors, share=False)
    _show_nodes("\nLabels nearby", "share of PageRank", explanation.labeled, share=True)


def _show_candidacies(explanation: Explanation) -> None:
    found = explanation.candidacies
    if not found:
        return
    columns = (
        "replica",
        "stage",
        "class",
        "confidence",
        "rank",
        "score",
        "NER",
        "shift",
        "selected",
    )
    table = Table(*columns, box=None)
    for c in found[:MOST_CANDIDACIES]:
        table.add_row(
            str(c.replica),
            str(c.stage),
            cell(c.predicted),
            f"{c.confidence:.2f}",
            str(c.rank),
            "–" if c.selection_score is None else f"{c.selection_score:.2f}",
            "–" if c.ner is None else f"{c.ner:.2f}",
            _change(c.shift_before, c.shift_after),
            "yes" if c.selected else "no",
        )
    console.print()
    console.print(table)
    if len(found) > MOST_CANDIDACIES:
        say(f"… and {len(found) - MOST_CANDIDACIES} more; --json prints all")


def _change(before: float | None, after: float | None) -> str:
    if after is None:
        return "–"
    return f"{after:.3f}" if before is None else f"{before:.3f} → {after:.3f}"


def _show_nodes(title: str, weight: str, nodes: list[RelatedNode], share: bool) -> None:
    if not nodes:
        return
    table = Table("id", "class", "probability", "source", weight, box=None, title=title)
    table.title_justify = "left"
    for node in nodes:
        strength = f"{node.weight:.0%}" if share else f"{node.weight:g}"
        names = cell(node.id), cell(node.predicted)
        table.add_row(*names, f"{node.probability:.0%}", node.source, strength)
    console.print(table)
