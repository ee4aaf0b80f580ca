"""Arguments and options that commands share: graphs, runs, methods and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dcgst.cli.output import check_file, check_table, errors, say
from dcgst.errors import InputError
from dcgst.methods import METHODS, Method
from dcgst.tables import Columns, Input, Query, read
from dcgst.tables.sources import is_database
from dcgst.tables.table import read_head
from dcgst.text import without_passwords

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder created by dcgst fit.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write instead of printing.")
]
DestinationOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write instead of printing (.csv, .parquet, .jsonl), or a database.",
    ),
]
TableOption = Annotated[str, typer.Option("--table", help="Table of a database to write.")]
IfExistsOption = Annotated[
    str,
    typer.Option(
        "--if-exists", metavar="fail|append|replace", help="What to do with an existing table."
    ),
]


def check_new_table(path: Path) -> None:
    """Raise if a table exists, which a person may have filled in, or cannot be written."""
    check_table(path)
    if path.exists():
        raise InputError(f"{path} exists; choose another file with -o")


def check_out(out: Path | None, json: bool, inputs: Sequence[Path | None] = ()) -> None:
    """Raise if the output file cannot be written or is needed, or if --json is also set.

    Args:
        out: the output file.
        json: whether --json is set.
        inputs: files that the command reads.
    """
    if out is None:
        return
    if json:
        raise InputError("--json prints and --out writes a file; choose one")
    check_file(out, [path for path in inputs if path is not None])


def split_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``name=value`` texts."""
    found = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InputError(f"--set needs name=value, got {pair!r}")
        found[name] = text
    return found


def make_method(name: str, preset: str, settings: dict[str, Any]) -> Method:
    """Create a method with valid settings."""
    method = METHODS[name].from_preset(preset, **settings)
    try:
        method.check_values()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return method


def split_list(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def split_kinds(options: Iterable[str] | None) -> dict[str, str]:
    """Kind by column, from ``column=kind`` texts, each of which may have several."""
    found = {}
    for pair in (part for option in options or () for part in split_list(option)):
        name, equals, kind = (part.strip() for part in pair.rpartition("="))
        if not equals or not name:
            raise InputError(f"--kind needs COLUMN=KIND, like zip=code, got {pair!r}")
        found[name] = kind
    return found


NodesArgument = Annotated[
    str,
    typer.Argument(
        help="Node table (.csv, .parquet, - for standard input), a graph (.graphml, .pt, .npz), a "
        "store, or a database (sqlite:///FILE, duckdb:///FILE, postgresql://…)."
    ),
]
EdgesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Edge table, needed if the first file is a node table; several tables are several "
        "relations."
    ),
]
NodesQueryOption = Annotated[
    str | None, typer.Option("--nodes", metavar="SQL", help="Query of the nodes in a database.")
]
EdgesQueryOption = Annotated[
    list[str] | None,
    typer.Option("--edges", metavar="SQL", help="Query of the edges in a database."),
]
IdOption = Annotated[str | None, typer.Option("--id", help="Column of node ids.")]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="Column of classes, empty where unknown.")
]
SourceOption = Annotated[str | None, typer.Option("--source", help="Column of edge sources.")]
TargetOption = Annotated[str | None, typer.Option("--target", help="Column of edge targets.")]
WeightOption = Annotated[
    str | None, typer.Option("--weight", help="Column of edge weights, or none.")
]
EdgeTypeOption = Annotated[
    str | None,
    typer.Option(
        "--edge-type",
        help="Column of relations (at most 20), which are weighed by the labels; none to "
        "treat all alike; default: a column named type, relation or kind.",
    ),
]
EdgeTimeOption = Annotated[
    str | None,
    typer.Option("--edge-time", help="Column of times: older edges than the latest count less."),
]
HALF_LIFE = 365.0
HalfLifeOption = Annotated[
    float,
    typer.Option("--half-life", min=1e-6, help="Days after which an edge counts half."),
]
DirectedOption = Annotated[
    bool,
    typer.Option("--directed", help="Distinguish sources and targets of edges."),
]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help="Columns to use, comma-separated; default all.")
]
IgnoreOption = Annotated[
    str | None, typer.Option("--ignore", help="Columns not to use, comma-separated.")
]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column contains: number, flag, date (or day-first, month-first), category, "
        "code, list, text, string; may be repeated, or comma-separated.",
    ),
]
DelimiterOption = Annotated[
    str | None, typer.Option("--delimiter", help="Delimiter of CSV files, or tab; default: guess.")
]
DropOption = Annotated[
    bool, typer.Option("--drop-unknown", help="Drop edges with unknown node ids.")
]


def read_graph(
    nodes: NodesArgument,
    edges: EdgesArgument = None,
    node_query: NodesQueryOption = None,
    edge_query: EdgesQueryOption = None,
    id_column: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    edge_type: EdgeTypeOption = None,
    edge_time: EdgeTimeOption = None,
    half_life: HalfLifeOption = HALF_LIFE,
    directed: DirectedOption = False,
    features: FeaturesOption = None,
    ignore: IgnoreOption = None,
    kind: KindOption = None,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
    *,
    labels_needed: bool = True,
) -> Input:
    """Read the graph that the options describe.

    ``labels_needed`` is no option: a label column is not needed if labels come from other tables.
    """
    if edge_time is None and half_life != HALF_LIFE:
        raise InputError("--half-life has no effect without --edge-time COLUMN")
    columns = Columns(
        id=id_column,
        label=label,
        source=source,
        target=target,
        weight=weight,
        edge_type=edge_type,
        edge_time=edge_time,
        half_life=half_life,
        directed=directed,
        features=split_list(features) if features is not None else None,
        ignore=split_list(ignore),
        kinds=split_kinds(kind),
    )
    return read(
        *table_sources(nodes, edges, node_query, edge_query),
        columns,
        delimiter=delimiter,
        drop_unknown=drop_unknown,
        labels_needed=labels_needed,
    )


def table_sources(
    nodes: str, edges: list[str] | None, node_query: str | None, edge_query: list[str] | None
) -> tuple[Any, Any]:
    """What to read the nodes and the edges from.

    Args:
        nodes: a file, or the address of a database.
        edges: files.
        node_query: query of the nodes, if ``nodes`` is a database.
        edge_query: likewise of the edges.
    """
    if not is_database(nodes):
        if "://" in nodes and not Path(nodes).exists():
            raise InputError(
                f"{without_passwords(nodes)} is not a database that can be read; write "
                "sqlite:///FILE, duckdb:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
            )
        if node_query is not None or edge_query:
            raise InputError(f"--nodes and --edges are queries of a database, but {nodes} is none")
        return nodes, edges[0] if edges and len(edges) == 1 else edges or None
    if edges:
        raise InputError(f"the edges of a database come from --edges SQL; remove {edges[0]}")
    if node_query is None or not edge_query:
        raise InputError('a database needs two queries: --nodes "select …" and --edges "select …"')
    if len(edge_query) > 1:
        raise InputError(
            "there can be one --edges; several relations are one query: select …, 'friend' as "
            "type from friends union all select …, 'payment' from payments"
        )
    return Query(nodes, node_query, "nodes"), Query(nodes, edge_query[0], "edges")


def with_graph_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the parameters of :func:`read_graph` to a command.

    The first parameter of the command is a function without arguments that reads the graph and
    prints its size and notes.
    """
    of_graph = dict(signature(read_graph, eval_str=True).parameters)
    del of_graph["labels_needed"]
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def wrapped(**values: Any) -> None:
        arguments = {name: values.pop(name) for name in of_graph}

        def read_and_describe() -> Input:
            other_tables = values.get("labels") or values.get("audit")
            data = read_graph(**arguments, labels_needed=not other_tables)
            if arguments["label"] is not None and other_tables:
                check_label_column(arguments["label"], data, other_tables)
            if not (values["quiet"] or values["json"]):
                describe(data)
            return data

        command(read_and_describe, **values)

    parameters = sorted([*of_graph.values(), *own], key=lambda p: p.default is not Parameter.empty)
    wrapped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def check_label_column(label: str, data: Input, tables: Sequence[Path]) -> None:
    """Raise if neither the node table nor a table of labels has the named label column.

    The labels in a column of another name would become a feature.
    """
    if data.columns.label == label:
        return
    for table in tables:
        if label not in read_head(Path(table))[0].names:
            raise InputError(
                f"--label {label}: neither the node table nor {table} has a column {label!r}"
            )


def describe(data: Input) -> None:
    """Print the size of a graph and the notes on reading it."""
    graph = data.graph
    known = int((graph.labels >= 0).sum())
    size = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features"
    say(f"{size}, {graph.num_classes:,} classes, {known:,} labels.", errors)
    for note in data.notes:
        say(f"  {note}", errors)
