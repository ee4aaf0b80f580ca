"""``dcgst import``: make a store of large tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dcgst.cli.options import (
    DelimiterOption,
    DropOption,
    FeaturesOption,
    IdOption,
    IgnoreOption,
    KindOption,
    LabelOption,
    SourceOption,
    TargetOption,
    WeightOption,
    describe,
    split_kinds,
    split_list,
)
from dcgst.cli.output import (
    JsonOption,
    ProgressBar,
    QuietOption,
    errors,
    print_json,
    progress,
    say,
)
from dcgst.errors import InputError
from dcgst.runs import open_run
from dcgst.runs.apply import roles_of
from dcgst.tables import Columns, Input
from dcgst.tables.importing import import_tables
from dcgst.tables.store import SUFFIX, open_store

STEPS = {"ids": 0.1, "features": 0.5, "edges": 0.38, "digest": 0.02}
"""Share of each step in the whole time, about."""


def _import_tables(*arguments: Any, **options: Any) -> None:
    """Import, and say how to continue after Ctrl-C, which DuckDB turns into an error of its own."""
    try:
        import_tables(*arguments, **options)
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "interrupted" not in str(error).lower():
            raise
        say("Interrupted. Run the same command again to continue.", errors)
        raise typer.Exit(130) from None


OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder to create.  [default: name of the node table]"),
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="Run whose columns and encoders are used, so that its model can predict the "
        "nodes of the store.",
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing store.")]


def import_command(
    nodes: Annotated[Path, typer.Argument(help="Node table (.csv, .parquet).")],
    edges: Annotated[Path, typer.Argument(help="Edge table (.csv, .parquet).")],
    out: OutOption = None,
    id_column: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    features: FeaturesOption = None,
    ignore: IgnoreOption = None,
    kind: KindOption = None,
    like: LikeOption = None,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a store of large tables, for all other commands.

    A store is a folder of arrays that are read as they are needed, so that the graph may be larger
    than the memory. Limit the memory with `dcgst --memory 8GB import …`. An interrupted import
    continues when the same command is run again.
    """
    columns = Columns(
        id=id_column,
        label=label,
        source=source,
        target=target,
        weight=weight,
        features=split_list(features) if features is not None else None,
        ignore=split_list(ignore),
        kinds=split_kinds(kind),
    )
    encoder = None
    if like is not None:
        if columns != Columns():
            raise InputError("--like uses the columns of the run; remove the other column options")
        columns, encoder = roles_of(open_run(like))
    out = out or Path(nodes.name.split(".")[0] + SUFFIX)
    with progress("import", 1.0, quiet or json) as bar:
        _import_tables(
            nodes,
            edges,
            out,
            columns,
            encoder=encoder,
            delimiter=delimiter,
            drop_unknown=drop_unknown,
            overwrite=overwrite,
            progress=partial(_advance, bar),
        )
    data = open_store(out)
    if json:
        print_json(_facts(out, data))
    else:
        _show(out, data, like, quiet)


def _show(out: Path, data: Input, like: Path | None, quiet: bool) -> None:
    """Describe a store, and say what comes next."""
    if not quiet:
        describe(data)
    for note in data.notes if quiet else ():
        if note.startswith("Warning"):
            say(note, errors)
    say(f"Written: {out}")
    if like is not None:
        say(f"Next: dcgst predict {like} {out} -o predictions.parquet")
        return
    labels = "" if (data.graph.labels >= 0).any() else " --labels FILE"
    say(f"Next: dcgst fit {out}{labels}, or dcgst diagnose {out}{labels}")


def _advance(bar: ProgressBar, step: str, share: float) -> None:
    """Show which step is done to what share."""
    names = list(STEPS)
    before = sum(STEPS[name] for name in names[: names.index(step)])
    bar.describe(step)
    bar.advance_to(before + share * STEPS[step])


def _facts(out: Path, data: Input) -> dict[str, object]:
    graph = data.graph
    return {
        "store": str(out),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": list(graph.class_names),
        "labels": int((graph.labels >= 0).sum()),
        "notes": list(data.notes),
    }
