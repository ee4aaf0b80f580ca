"""``dcgst predict``: predictions of a stored model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.options import (
    DelimiterOption,
    DestinationOption,
    DropOption,
    EdgesArgument,
    EdgesQueryOption,
    IfExistsOption,
    NodesQueryOption,
    RunArgument,
    TableOption,
    check_out,
    table_sources,
)
from dcgst.cli.output import (
    JsonOption,
    SpreadsheetOption,
    check_file,
    errors,
    print_json,
    progress,
    say,
)
from dcgst.errors import InputError
from dcgst.features.matrix import row_ranges
from dcgst.runs import GIVEN, Run, open_run
from dcgst.runs.apply import Drift, OtherGraph
from dcgst.runs.predictions import Predictions, check_extension, count_sources
from dcgst.tables.sources import IF_EXISTS, is_database
from dcgst.text import printable, without_passwords

DRIFT = 3
"""Exit code of ``--fail-on-drift``."""


NodesArgument = Annotated[
    str | None, typer.Argument(help="Nodes of another graph: a file or a database.")
]
AllClassesOption = Annotated[
    bool, typer.Option("--all-classes", help="One column per class, also if there are many.")
]
EmbeddingsOption = Annotated[
    Path | None,
    typer.Option("--embeddings", help="Parquet file for the node embeddings of the run."),
]
UseLabelsOption = Annotated[
    bool, typer.Option("--use-labels", help="Use the labels in the other graph, too.")
]
AddOption = Annotated[
    bool,
    typer.Option("--add", help="The tables have new nodes only: add them to the run's graph."),
]
FailOnDriftOption = Annotated[
    bool,
    typer.Option(
        "--fail-on-drift",
        help="Write nothing and exit with 3 if the other graph differs from that of the fit.",
    ),
]


def predict_command(
    folder: RunArgument,
    nodes: NodesArgument = None,
    edges: EdgesArgument = None,
    node_query: NodesQueryOption = None,
    edge_query: EdgesQueryOption = None,
    out: DestinationOption = None,
    table: TableOption = "predictions",
    if_exists: IfExistsOption = "fail",
    all_classes: AllClassesOption = False,
    embeddings: EmbeddingsOption = None,
    use_labels: UseLabelsOption = False,
    add: AddOption = False,
    fail_on_drift: FailOnDriftOption = False,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
    spreadsheet: SpreadsheetOption = False,
    json: JsonOption = False,
) -> None:
    """Predict with a stored model, on its own graph or another one.

    Another graph must have the same columns or features.
    """
    if nodes is None:
        _check_own_graph(add, bool(node_query or edge_query or use_labels or drop_unknown))
    run = open_run(folder)
    _check(out, if_exists, (nodes, *(edges or ())))
    if embeddings is not None:
        _write_embeddings(run, embeddings, nodes)
    found, drift = run.prediction_table, list[Drift]()
    if nodes is not None:
        with progress("prediction", 1.0, json):
            other = run.predict_other(
                *table_sources(nodes, edges, node_query, edge_query),
                delimiter=delimiter,
                drop_unknown=drop_unknown,
                use_labels=use_labels,
                add=add,
            )
        found, drift = other.predictions, other.drift
        _describe(run, other, folder)
        if drift and fail_on_drift:
            say("Nothing was written, because of --fail-on-drift.", errors)
            raise typer.Exit(DRIFT)
    found = replace(found, all_classes=all_classes)
    if out is not None:
        _write(found, out, table, if_exists, spreadsheet)
        name = without_passwords(out)
        if json:
            facts = {"predictions": len(found), "out": name, **count_sources(found.result)}
            print_json({**facts, "drift": [str(difference) for difference in drift]})
        else:
            where = f"{name}, table {table}" if is_database(out) else name
            say(f"{len(found):,} predictions: {where}")
    elif json:
        for row in found.rows():
            print_json({key: str(v) if key == "id" else v for key, v in row.items()})
    elif embeddings is None:
        for text in found.csv_texts(spreadsheet=spreadsheet):
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


def _check_own_graph(add: bool, about_another: bool) -> None:
    """Raise if options belong to another graph, but none is given."""
    if add:
        raise InputError("--add needs tables of new nodes and of their edges")
    if about_another:
        raise InputError(
            "--nodes, --edges, --use-labels and --drop-unknown are about another graph; name it "
            "after the run: a node table, or the address of a database"
        )


def _check(out: str | None, if_exists: str, inputs: Sequence[str | None]) -> None:
    """Raise if the predictions cannot be written, before anything is computed."""
    if if_exists not in IF_EXISTS:
        raise InputError(f"--if-exists is one of {', '.join(IF_EXISTS)}, got {if_exists!r}")
    if out is None or is_database(out):
        return
    files = [Path(name) for name in inputs if name is not None and not is_database(name)]
    check_out(Path(out), False, files)
    check_extension(Path(out))


def _write(found: Predictions, out: str, table: str, if_exists: str, spreadsheet: bool) -> None:
    if is_database(out):
        found.write_database(out, table, if_exists)
    else:
        found.write(Path(out), spreadsheet=spreadsheet)


def _write_embeddings(run: Run, path: Path, nodes: str | None) -> None:
    if nodes is not None:
        raise InputError("--embeddings are those of the nodes of the run; remove the other graph")
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(f"{path}: embeddings are written as Parquet; choose a name with .parquet")
    check_file(path)
    run.write_embeddings(path)
    say(f"Embeddings: {path}", errors)


def _describe(run: Run, other: OtherGraph, folder: Path) -> None:
    """Say which nodes are known, how many labels were used, and what differs from the fit."""
    found = other.predictions
    shared = 0
    for part in row_ranges(len(found)):
        ids = [str(node_id) for node_id in found.ids[part].tolist()]
        shared += int((run.graph.find(ids) >= 0).sum())
    labels = count_sources(found.result)[GIVEN]
    shared = shared if other.same_ids else 0
    known = f"{shared:,} of them also in the run (same id)"
    if not other.same_ids:
        known = "their ids are row numbers and name no nodes of the run"
    say(f"{len(found):,} nodes, {known}; {labels:,} known labels used.", errors)
    if other.unused_labels:
        say(f"{other.unused_labels:,} labels in the input are not used; see --use-labels.", errors)
    if other.absent:
        listed = ", ".join(other.absent)
        say(f"Without {listed}: no model of another graph, or too few known labels.", errors)
    for difference in other.drift:
        say(f"Warning: drift in {difference}.", errors)
    if shared == len(found) == run.graph.num_nodes and not other.drift:
        say(
            f"These are the nodes of the run; its predictions are also in {folder}.",
            errors,
        )
