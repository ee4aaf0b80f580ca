"""``predict --add``: batches of new nodes whose edges lead to the graph of the run."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from make_fraud import make_fraud_case

from dcgst import Ensemble, InputError, fit, open_run, read
from dcgst.methods.relations import use_relations, weigh_relations
from tests.cli.helpers import dcgst

OLD, NEW = 120, 30
HEAD = "id,size,color,label"


def rows_of(numbers, rng) -> list[str]:
    """Two classes that differ in size and color."""
    rows = []
    for i in numbers:
        color = "red" if rng.random() < 0.2 + 0.6 * (i % 2) else "blue"
        label = "ab"[i % 2] if i < 20 else ""
        rows.append(f"n{i:03d},{rng.normal() + 2 * (i % 2):.3f},{color},{label}")
    return rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of the fit, of a batch, and of both together."""
    folder = tmp_path_factory.mktemp("batch")
    rng = np.random.default_rng(0)
    nodes = rows_of(range(OLD + NEW), rng)
    edges = [(i, int(j)) for i in range(2, OLD + NEW) for j in rng.integers(0, i, 3)]
    edges = [(i, j) for i, j in edges if (i - j) % 2 == 0 or rng.random() < 0.2]
    texts = {
        "old": (nodes[:OLD], [e for e in edges if max(e) < OLD]),
        "new": (nodes[OLD:], [e for e in edges if max(e) >= OLD]),
        "all": (nodes, edges),
    }
    for name, (own, links) in texts.items():
        (folder / f"{name}.csv").write_text("\n".join([HEAD, *own]))
        lines = [f"n{i:03d},n{j:03d}" for i, j in links]
        (folder / f"{name}_edges.csv").write_text("\n".join(["source,target", *lines]))
    return folder


@pytest.fixture(scope="module")
def run(tables):
    data = read(tables / "old.csv", tables / "old_edges.csv")
    return fit(data, tables / "run", Ensemble())


def test_a_batch_has_the_same_predictions_as_in_tables_of_all_nodes(run, tables):
    stored = open_run(run.folder)
    batch = stored.predict(tables / "new.csv", tables / "new_edges.csv", add=True)
    everything = stored.predict(tables / "all.csv", tables / "all_edges.csv")
    assert [row["id"] for row in batch] == [f"n{i:03d}" for i in range(OLD, OLD + NEW)]
    for row, expected in zip(batch, everything[OLD:], strict=True):
        assert row["class"] == expected["class"]
        assert row["probability"] == pytest.approx(expected["probability"], abs=2e-3)
    right = np.mean([row["class"] == "ab"[i % 2] for i, row in enumerate(batch, OLD)])
    assert right > 0.8


def test_command_line(run, tables, tmp_path):
    batch = (tables / "new.csv", tables / "new_edges.csv")
    done = dcgst("predict", run.folder, *batch, "--add", "-o", tmp_path / "out.csv")
    assert done.code == 0, done.err
    assert f"{NEW} predictions" in done.out
    done = dcgst("predict", run.folder, "--add")
    assert (done.code, "--add needs tables" in done.err) == (2, True)


def test_drift_is_that_of_the_new_nodes(run, tables, tmp_path):
    same = run.predict_other(tables / "new.csv", tables / "new_edges.csv", add=True)
    assert not [drift for drift in same.drift if drift.what == "size"]
    lines = (tables / "new.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines[1:]]
    moved = [",".join([own[0], str(float(own[1]) + 9), *own[2:]]) for own in cells]
    (tmp_path / "moved.csv").write_text("\n".join([HEAD, *moved]))
    found = run.predict_other(tmp_path / "moved.csv", tables / "new_edges.csv", add=True)
    assert any(drift.what == "size" for drift in found.drift)


def test_mistakes_are_named(run, tables, tmp_path):
    with pytest.raises(
        InputError, match=r"old.csv, line 2: the node 'n000' is in the graph already"
    ):
        run.predict(tables / "old.csv", tables / "old_edges.csv", add=True)
    (tmp_path / "edges.csv").write_text("source,target\nn120,n999\n")
    with pytest.raises(InputError, match="no node has the id 'n999'"):
        run.predict(tables / "new.csv", tmp_path / "edges.csv", add=True)
    with pytest.raises(InputError, match="new nodes need a table of their edges"):
        run.predict(tables / "new.csv", add=True)
    directed = replace(run, info={**run.info, "columns": {"directed": True}})
    with pytest.raises(InputError, match="new nodes can be added to a run that was fitted on"):
        directed.predict(tables / "new.csv", tables / "new_edges.csv", add=True)


def test_a_batch_with_weighed_kinds_of_edges(tmp_path):
    """The same as in tables of all nodes: factors of the fit are used."""
    case = make_fraud_case(tmp_path, 800, seed=3)
    header, *rows = case.nodes.read_text().splitlines()
    old = [row for row in rows if int(row[1:6]) < 760]
    new = [row for row in rows if int(row[1:6]) >= 760]
    ends, *links = case.edges.read_text().splitlines()
    within = [link for link in links if all(int(part[1:]) < 760 for part in link.split(",")[:2])]
    others = [link for link in links if link not in set(within)]
    for name, lines in (("old", old), ("new", new)):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]))
    for name, lines in (("old_links", within), ("new_links", others)):
        (tmp_path / f"{name}.csv").write_text("\n".join([ends, *lines]))
    data = read(tmp_path / "old.csv", tmp_path / "old_links.csv")
    relations = [
        replace(own, weight=1.0 if own.name == "device" else 0.5, factor=factor)
        for own, factor in zip(
            weigh_relations(data.graph, data.relations, data.graph.labels >= 0),
            (1.0, 0.3, 0.0),
            strict=True,
        )
    ]
    weighed = replace(data, weighed=tuple(asdict(own) for own in relations), relations={})
    graph = use_relations(data.graph, data.relations, relations)
    run = fit(replace(weighed, graph=graph), tmp_path / "run", Ensemble())
    batch = run.predict(tmp_path / "new.csv", tmp_path / "new_links.csv", add=True)
    everything = {row["id"]: row for row in run.predict(case.nodes, case.edges)}
    assert len(batch) == 40
    for row in batch:
        expected = everything[row["id"]]["p(fraud)"]
        assert row["p(fraud)"] == pytest.approx(expected, abs=2e-3)
