"""Strategies that generate cases: files to write, and commands to run on them."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from dcgst.runs.folder import digest_of, seal
from dcgst.tables.store import ARRAYS, _digest
from tests.fuzz.valid import (
    EDGES,
    NODES,
    arrays,
    interrupted_fit,
    npz,
    run_of_tables,
    sparse_arrays,
    valid_file,
    valid_journal,
    valid_run,
    valid_store,
)
from tests.runs.helpers import QUICK

FIT = ("fit", "--label", "label", "-o", "out", "--no-report", "--method")


@dataclass(frozen=True)
class Case:
    """Files by name, and the command to run in their folder.

    Attributes:
        files: content by name.
        command: arguments of ``dcgst``.
        creates: name of the run folder that the command creates, if it does.
        folder: a function that returns a folder to copy first.
        expected: files that must have this content if the command succeeds.
    """

    files: dict[str, bytes]
    command: tuple[str, ...]
    creates: str | None = None
    folder: Callable[[], Path] | None = None
    expected: dict[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        if self.folder is not None:
            shutil.copytree(self.folder(), folder / self.folder().name)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


@st.composite
def damaged(draw: Callable[..., Any], content: bytes) -> bytes:
    """The content with up to four changes: bits, bytes, pieces removed, repeated or inserted."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        match draw(st.sampled_from(("flip", "set", "cut", "remove", "repeat", "insert"))):
            case "flip" if changed:
                changed[at] ^= 1 << draw(st.integers(0, 7))
            case "set" if changed:
                changed[at] = draw(st.integers(0, 255))
            case "cut":
                del changed[at:]
            case "remove":
                del changed[at : at + draw(st.integers(1, 40))]
            case "repeat":
                changed[at:at] = changed[at : at + draw(st.integers(1, 40))]
            case "insert":
                changed[at:at] = draw(st.binary(max_size=20))
    return bytes(changed)


STRANGE = ["", "1", "-1", "0", "nan", "inf", "-inf", "1e30", "1e31", "1e-30", "1e308", "1e400", "x",
           "n1", "n2", "NULL", "true", "2024-01-01", "=1+1", "\x1b[31m", "a b c d", "ü", "\u202e",
           '"', "'", "1,5", "$3", "٣", "0x10", "1_000", " ", "\t", "[red]"]  # fmt: skip
CELLS = st.one_of(
    st.sampled_from(STRANGE),
    st.text(max_size=6),
    st.floats().map(str),
    st.integers().map(str),
)


def csv_text(rows: list[list[str]]) -> bytes:
    import csv

    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode("utf-8", "replace")


@st.composite
def tables(draw: Callable[..., Any]) -> Case:
    """A node table of any cells, and edges between its ids, now and then of any cells as well."""
    columns = draw(st.integers(1, 4))
    count = draw(st.integers(4, 12))
    strange = draw(st.sampled_from(("", "", "", "labels", "ids", "weights")))
    rows = [["id", *(f"c{i}" for i in range(columns)), "label"]]
    for number in range(count):
        cells = [draw(CELLS) for _ in range(columns)]
        label = draw(CELLS) if strange == "labels" else draw(st.sampled_from(("x", "y", "", "")))
        node = draw(CELLS) if strange == "ids" else f"n{number}"
        rows.append([node, *cells, label])
    ends = st.integers(0, count).map(lambda i: f"n{i}")
    edges = [["source", "target", "weight"]]
    for _ in range(draw(st.integers(0, 15))):
        weight = draw(CELLS) if strange == "weights" else draw(st.sampled_from(("1", "2.5", "0")))
        edges.append([draw(ends), draw(ends), weight])
    method = draw(st.sampled_from(("em", "gcn", "lp", "dcgst", "cs")))
    settings = ("--set", "epochs=3") if method in ("gcn", "cs") else ()
    if method == "dcgst":
        settings = (*(f"--set={k}={v}" for k, v in QUICK.items()), "--replicas", "1")
    return Case(
        {"nodes.csv": csv_text(rows), "edges.csv": csv_text(edges)},
        (*FIT, method, *settings, "--drop-unknown", "nodes.csv", "edges.csv"),
        "out",
    )


def damaged_file(kind: str) -> st.SearchStrategy[Case]:
    """A damaged graph file or Parquet table."""
    name = f"graph.{kind}"
    if kind == "parquet":
        files = {"edges.csv": EDGES}
        command = (*FIT, "em", name, "edges.csv")
    else:
        files = {}
        label = ("--label", "label") if kind == "graphml" else ()
        command = ("fit", name, *label, "-o", "out", "--no-report", "--method", "em")
    return damaged(valid_file(kind)).map(
        lambda content: Case({name: content, **files}, command, "out")
    )


def damaged_csv() -> st.SearchStrategy[Case]:
    def case(content: tuple[bytes, bytes]) -> Case:
        files = {"nodes.csv": content[0], "edges.csv": content[1]}
        return Case(files, (*FIT, "em", "nodes.csv", "edges.csv"), "out")

    either = st.one_of(
        st.tuples(damaged(NODES), st.just(EDGES)), st.tuples(st.just(NODES), damaged(EDGES))
    )
    return either.map(case)


ANY_ARRAY = arrays_of.arrays(
    st.one_of(
        arrays_of.integer_dtypes(endianness="="),
        arrays_of.floating_dtypes(endianness="="),
        arrays_of.boolean_dtypes(),
        arrays_of.unicode_string_dtypes(endianness="=", max_len=3),
        arrays_of.datetime64_dtypes(endianness="="),
    ),
    arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=13),
)


EXTREMES = (-1, 10**6, 10**9, 10**18, 2**31, -(2**63), 0, 1e30, 1e-40)


@st.composite
def any_arrays(draw: Callable[..., Any]) -> Case:
    """An npz file in which one or two arrays are replaced, or single values are extreme."""
    values = draw(st.sampled_from((arrays, sparse_arrays)))()
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(values)))
        if draw(st.booleans()) or values[name].size == 0 or values[name].dtype.kind not in "fiub":
            values[name] = draw(ANY_ARRAY)
        else:
            extreme = draw(st.sampled_from(EXTREMES))
            array = values[name].astype(type(extreme)) if draw(st.booleans()) else values[name]
            flat = array.copy().reshape(-1)
            with np.errstate(all="ignore"):
                flat[draw(st.integers(0, flat.size - 1))] = np.array(extreme).astype(flat.dtype)
            values[name] = flat.reshape(array.shape)
    method = draw(st.sampled_from(("em", "gcn")))
    settings = ("--set", "epochs=3") if method == "gcn" else ()
    command = ("fit", "g.npz", "-o", "out", "--no-report", "--method", method, *settings)
    return Case({"g.npz": npz(values)}, command, "out")


COMMANDS = st.sampled_from(
    (
        ("predict", "run"),
        ("explain", "run", "3"),
        ("suggest", "run", "-n", "2"),
        ("report", "run"),
    )
)


@st.composite
def damaged_runs(draw: Callable[..., Any]) -> Case:
    """A run folder with a damaged file; in half of the cases the digests fit the damage."""
    names = sorted(path.name for path in valid_run().iterdir())
    name = draw(st.sampled_from(names))
    content = draw(damaged((valid_run() / name).read_bytes()))
    files = {f"run/{name}": content}
    if draw(st.booleans()) and name != "run.json":
        info = json.loads((valid_run() / "run.json").read_text())
        if name in info["files"]:
            info["files"][name] = digest_of(content)
        files["run/run.json"] = json.dumps(seal(info)).encode()
    return Case(files, draw(COMMANDS), folder=valid_run)


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def changed_runs(draw: Callable[..., Any]) -> Case:
    """A run folder in which entries of run.json or arrays are replaced; all digests fit."""
    info = json.loads((valid_run() / "run.json").read_text())
    files = {}
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(info)))
        if draw(st.booleans()) and isinstance(info[key], dict) and info[key]:
            inner = draw(st.sampled_from(sorted(info[key])))
            info[key][inner] = draw(JSON_VALUES)
        else:
            info[key] = draw(JSON_VALUES)
    else:
        with np.load(valid_run() / "graph.npz") as archive:
            values = {name: archive[name] for name in archive.files}
        name = draw(st.sampled_from(sorted(values)))
        values[name] = draw(ANY_ARRAY)
        files["run/graph.npz"] = npz(values)
        info["files"]["graph.npz"] = digest_of(files["run/graph.npz"])
    files["run/run.json"] = json.dumps(seal(info)).encode()
    return Case(files, draw(COMMANDS), folder=valid_run)


@st.composite
def damaged_checkpoints(draw: Callable[..., Any]) -> Case:
    """An interrupted fit with a damaged file; resumed, it must give the same predictions."""
    out = interrupted_fit()
    paths = sorted(path for path in out.rglob("*") if path.is_file())
    path = draw(st.sampled_from(paths))
    files = {
        "nodes.csv": NODES,
        "edges.csv": EDGES,
        str(path.relative_to(out.parent)): draw(damaged(path.read_bytes())),
    }
    settings = tuple(f"--set={key}={value}" for key, value in QUICK.items())
    command = (*FIT, "dcgst", *settings, "--replicas", "1", "--resume", "nodes.csv", "edges.csv")
    expected = {"out/predictions.csv": (out.parent / "expected.csv").read_bytes()}
    return Case(files, command, folder=interrupted_fit, expected=expected)


STORE_COMMANDS = st.sampled_from(
    (
        ("check", "g.store"),
        ("diagnose", "g.store"),
        ("fit", "g.store", "-o", "out", "--no-report", "--method", "lp", "--replicas", "1"),
    )
)


@st.composite
def damaged_stores(draw: Callable[..., Any]) -> Case:
    """A store with a damaged file; in half of the cases the digests fit the damage."""
    names = sorted(path.name for path in valid_store().iterdir())
    name = draw(st.sampled_from(names))
    content = draw(damaged((valid_store() / name).read_bytes()))
    files = {f"g.store/{name}": content}
    if draw(st.booleans()) and name in ARRAYS:
        files |= store_with({"files": {name: hashlib.sha256(content).hexdigest()}})
    return Case(files, draw(STORE_COMMANDS), folder=valid_store)


@st.composite
def changed_stores(draw: Callable[..., Any]) -> Case:
    """A store in whose description an entry is replaced or missing; the digest of it fits."""
    content = json.loads((valid_store() / "store.json").read_text())
    key = draw(st.sampled_from(sorted(content)))
    value = draw(st.one_of(st.just(None), JSON_VALUES, st.integers(-2, 20)))
    return Case(store_with({key: value}), draw(STORE_COMMANDS), folder=valid_store)


def store_with(changes: dict[str, Any]) -> dict[str, bytes]:
    """The description of the valid store with changed entries, sealed; None removes an entry."""
    content = json.loads((valid_store() / "store.json").read_text())
    del content["seal"]
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(content.get(key), dict):
            content[key] |= value
        elif value is None:
            content.pop(key, None)
        else:
            content[key] = value
    text = json.dumps({**content, "seal": _digest(content)})
    return {"g.store/store.json": text.encode(), "g.store/verified.json": b""}


CONFIG = b"""label = "label"
[fit]
inputs = ["nodes.csv", "edges.csv"]
out = "out"
method = "em"
seed = 3
no-report = true
set = ["epochs=2"]
"""


@st.composite
def damaged_configs(draw: Callable[..., Any]) -> Case:
    """A damaged file of options."""
    files = {"nodes.csv": NODES, "edges.csv": EDGES, "c.toml": draw(damaged(CONFIG))}
    return Case(files, ("fit", "--config", "c.toml", "--method", "lp"))


@st.composite
def damaged_journals(draw: Callable[..., Any]) -> Case:
    """A damaged journal of labels."""
    files = {"labels.jsonl": draw(damaged(valid_journal()))}
    return Case(files, ("check", "labels.jsonl"))


@st.composite
def other_graphs(draw: Callable[..., Any]) -> Case:
    """Damaged tables of another graph, predicted by a run."""
    name = draw(st.sampled_from(("nodes.csv", "edges.csv")))
    files = {"nodes.csv": NODES, "edges.csv": EDGES}
    files[name] = draw(damaged(files[name]))
    more = draw(st.sampled_from(((), ("--use-labels",), ("--drop-unknown",), ("--add",))))
    command = ("predict", "run", "nodes.csv", "edges.csv", "-o", "p.csv", *more)
    return Case(files, command, folder=run_of_tables)


STRATEGIES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "tables": tables,
    "csv": damaged_csv,
    "parquet": lambda: damaged_file("parquet"),
    "graphml": lambda: damaged_file("graphml"),
    "npz": lambda: damaged_file("npz"),
    "arrays": any_arrays,
    "pt": lambda: damaged_file("pt"),
    "run": damaged_runs,
    "run entries": changed_runs,
    "checkpoint": damaged_checkpoints,
    "store": damaged_stores,
    "store entries": changed_stores,
    "config": damaged_configs,
    "journal": damaged_journals,
    "other graph": other_graphs,
}
