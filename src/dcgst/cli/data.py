"""How people say on the command line where their graph is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dcgst.cli.output import errors
from dcgst.io import Columns, Input, read

NodesArgument = Annotated[
    Path, typer.Argument(help="Table of nodes (.csv, .parquet), or a graph (.graphml, .pt, .npz).")
]
EdgesArgument = Annotated[
    Path | None, typer.Argument(help="Table of edges, where the first is a table.")
]
IdOption = Annotated[str | None, typer.Option("--id", help="Column of the nodes' ids.")]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Column of the classes; empty where unknown.")
]
SourceOption = Annotated[str | None, typer.Option("--source", help="Column of the edges' starts.")]
TargetOption = Annotated[str | None, typer.Option("--target", help="Column of the edges' ends.")]
WeightOption = Annotated[str | None, typer.Option("--weight", help="Column of the edges' weights.")]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help="Columns to use, comma-separated; default all.")
]
IgnoreOption = Annotated[
    str | None, typer.Option("--ignore", help="Columns not to use, comma-separated.")
]
NumberOption = Annotated[str | None, typer.Option("--number", help="Columns that are numbers.")]
CategoryOption = Annotated[
    str | None, typer.Option("--category", help="Columns of which each value is a feature.")
]
TextOption = Annotated[
    str | None, typer.Option("--text", help="Columns of which each word is a feature.")
]
DelimiterOption = Annotated[
    str | None, typer.Option("--delimiter", help="Of CSV files, or tab; guessed unless named.")
]
DropOption = Annotated[
    bool, typer.Option("--drop-unknown", help="Leave out edges to nodes that are not there.")
]


def listed(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def read_data(
    nodes: NodesArgument,
    edges: EdgesArgument = None,
    id_column: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    features: FeaturesOption = None,
    ignore: IgnoreOption = None,
    number: NumberOption = None,
    category: CategoryOption = None,
    text: TextOption = None,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
) -> Input:
    """Read a graph from what was said on the command line."""
    columns = Columns(
        id=id_column,
        label=label,
        source=source,
        target=target,
        weight=weight,
        features=listed(features) if features is not None else None,
        ignore=listed(ignore),
        number=listed(number),
        category=listed(category),
        text=listed(text),
    )
    return read(nodes, edges, columns, delimiter=delimiter, drop_unknown=drop_unknown)


def reads_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments of :func:`read_data`, before its own.

    Its first parameter is a function that reads the graph and tells what was taken for what.
    """
    reading = signature(read_data, eval_str=True).parameters
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def with_graph(**values: Any) -> None:
        where = {name: values.pop(name) for name in reading}

        def read_and_tell() -> Input:
            found = read_data(**where)
            if not (values["quiet"] or values["json"]):
                tell(found)
            return found

        command(read_and_tell, **values)

    parameters = sorted([*reading.values(), *own], key=lambda p: p.default is not Parameter.empty)
    with_graph.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    with_graph.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_graph


def tell(found: Input) -> None:
    """What was read, and what was taken for what."""
    graph = found.graph
    known = int((graph.labels >= 0).sum())
    errors.print(
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} "
        f"features, {graph.num_classes:,} classes, {known:,} labels.",
        highlight=False,
    )
    for note in found.notes:
        errors.print(f"  {note}", highlight=False, markup=False, soft_wrap=True)
