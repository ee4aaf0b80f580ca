"""Import large tables into a store with DuckDB, in bounded memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from dcgst.engine.progress import Report
from dcgst.errors import InputError
from dcgst.files import write_text
from dcgst.io.columns import (
    Columns,
    describe_node_columns,
    feature_columns,
    resolve_node_columns,
)
from dcgst.io.edge_columns import NO_COLUMN, describe_edge_columns, resolve_edge_columns
from dcgst.io.edges import has_header, header_as_row
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.store import format as files
from dcgst.io.store.edges import import_edges
from dcgst.io.store.job import Job, Plan
from dcgst.io.store.nodes import import_ids, import_nodes
from dcgst.io.store.sql import Database, source_of
from dcgst.io.table_files import read_head
from dcgst.memory import available_memory, unlimited_addresses

WORK = "import"
"""Folder within a store for an import that is not complete."""


def import_tables(
    nodes: Path,
    edges: Path,
    out: Path,
    columns: Columns | None = None,
    *,
    encoder: FeatureEncoder | None = None,
    delimiter: str | None = None,
    drop_unknown: bool = False,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Report = lambda _step, _share: None,
) -> tuple[str, ...]:
    """Import a node table and an edge table into a store.

    Columns are encoded as by :func:`dcgst.io.read`, except that the kind of a column and the words
    of a text column are those of some of the rows. Nodes are sorted by id.

    Args:
        nodes: CSV or Parquet file.
        edges: CSV or Parquet file.
        out: folder to create. If it holds an interrupted import of the same tables, it continues.
        columns: role of each column; guessed where they are not given.
        encoder: of the feature columns, fitted on other tables; by default, one is fitted.
        delimiter: of CSV files; guessed by default.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
        memory: bytes to use; default half of what is available.
        overwrite: replace an existing store.
        progress: called with the name of a step and the share of it that is done.

    Returns:
        notes for the user.

    Raises:
        InputError: if a table cannot be used. The message names the file, the row and a remedy.
    """
    columns = columns or Columns()
    node_head, node_delimiter = read_head(nodes, delimiter)
    edge_head, edge_delimiter = read_head(edges, delimiter)
    if columns.label is not None and encoder is None:
        node_head.column(columns.label)  # a misspelled name would make the labels a feature
    node_columns = resolve_node_columns(columns, node_head, edge_head, labels_needed=False)
    notes = describe_node_columns(columns, node_columns)
    if node_columns.label is None and encoder is None:
        notes.append(
            "Warning: no label column was found; if there is one, name it with --label, else it is "
            "a feature; or give labels with --labels when you fit"
        )
    header = has_header(edge_head, node_head.column(node_columns.id))
    if not header:
        edge_head = header_as_row(edge_head)
        notes.append(f"{edges.name} has no header: its first line is read as an edge")
    if columns.edge_type not in (None, NO_COLUMN) or columns.edge_time is not None:
        raise InputError(
            "a store has one kind of edges and no times; import the edges of one kind, or fit the "
            "tables themselves"
        )
    columns = replace(columns, edge_type=NO_COLUMN)
    edge_columns = resolve_edge_columns(columns, edge_head)
    notes += describe_edge_columns(columns, edge_columns, edge_head)
    plan = Plan(
        nodes,
        edges,
        node_columns,
        edge_columns,
        tuple(encoder.names_in(node_head))
        if encoder
        else tuple(feature_columns(columns, node_columns, node_head)),
        dict(columns.kinds),
        encoder,
        header,
        drop_unknown,
    )
    target = out.resolve()
    out = _folder_for(target, overwrite)
    if overwrite:
        overwrite = (out / files.DESCRIPTION).exists() or not _is_import_of(out, plan)
    work = _prepare(out, plan, overwrite)
    memory = memory or available_memory() // 2
    with unlimited_addresses(), Database(work, memory // 2) as database:
        database.view("nodes", source_of(nodes, node_head.names, node_delimiter, header=True))
        database.view("edges", source_of(edges, edge_head.names, edge_delimiter, header=header))
        job = Job(plan, out, work, database, memory, progress)
        ids = job.step("ids", lambda: import_ids(job))
        encoded = job.step("features", lambda: import_nodes(job, ids["count"]))
        linked = job.step("edges", lambda: import_edges(job, ids["count"]))
        checked = job.step("digest", lambda: {"digest": files.digest_of(out)})
    notes += [*encoded["notes"], *linked["notes"]]
    files.write_description(
        out,
        name=nodes.stem,
        shape=(ids["count"], encoded["columns"]),
        num_entries=linked["num_entries"],
        index=linked["index"],
        num_values=encoded["num_values"],
        class_names=tuple(encoded["class_names"]),
        columns=replace(
            columns, **asdict(node_columns), **{**asdict(edge_columns), "edge_type": NO_COLUMN}
        ),
        encoder=FeatureEncoder.from_json(encoded["encoder"]),
        weighted=linked["weighted"],
        notes=tuple(notes),
        digest=checked["digest"],
    )
    shutil.rmtree(work, ignore_errors=True)
    if out != target:
        _replace_store(target, out)
    return tuple(notes)


def _folder_for(target: Path, overwrite: bool) -> Path:
    """Where a store is built: an old store stays until the new one is complete."""
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)  # interrupted between the two renames of _replace_store
    if overwrite and (target / files.DESCRIPTION).exists():
        _check_folder(target)
        return target.with_name(f".{target.name}.new")
    return target


def _replace_store(target: Path, new: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _is_import_of(out: Path, plan: Plan) -> bool:
    """Whether a folder holds an interrupted import of the same tables."""
    begun = out / WORK / "plan.json"
    return begun.exists() and bool(json.loads(begun.read_text(encoding="utf-8")) == plan.identity())


def _check_folder(out: Path) -> list[str]:
    """The files in the folder of a store; raises if it has others."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; choose another name for the store")
    found = [path.name for path in out.iterdir()] if out.exists() else []
    others = sorted(name for name in found if name not in files.FILES and name != WORK)
    if others:
        raise InputError(f"{out} contains other files ({others[0]}); choose another name")
    return found


def _prepare(out: Path, plan: Plan, overwrite: bool) -> Path:
    """Create the folder, or check that it holds an import of the same tables."""
    work = out / WORK
    begun = work / "plan.json"
    found = _check_folder(out)
    if files.DESCRIPTION in found and not overwrite:
        raise InputError(f"{out} exists already; use --overwrite, or another name")
    if begun.exists() and not overwrite:
        before = json.loads(begun.read_text(encoding="utf-8"))
        if before["nodes"] != plan.identity()["nodes"] and not (work / "features.json").exists():
            overwrite = True  # nothing that took long is lost
        elif before["nodes"] != plan.identity()["nodes"]:
            raise InputError(
                f"{out} holds an interrupted import of another node table, or with other options; "
                "use --overwrite to replace it"
            )
        elif before != plan.identity():  # ids and features stay valid
            for step in ("edges", "digest"):
                (work / f"{step}.json").unlink(missing_ok=True)
            write_text(begun, json.dumps(plan.identity()))
    if overwrite or not begun.exists():
        shutil.rmtree(work, ignore_errors=True)
        for name in files.FILES:
            (out / name).unlink(missing_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    if not begun.exists():
        write_text(begun, json.dumps(plan.identity()))
    return work
