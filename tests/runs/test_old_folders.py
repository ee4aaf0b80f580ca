"""Run folders of version 0.1.0 (format 1) can still be used.

``tests/data/run-0.1.0`` was written by that version: DC-GST with two replicas on the papers of
``examples/data``. Expected values below were computed by the same version.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dcgst import InputError, explain, fit, open_run, read, suggest, write_report
from dcgst.files import rows_to_csv
from dcgst.io import Columns
from dcgst.methods.legacy import REMOVED, upgrade_settings
from dcgst.runs.format.v1 import BACKBONES as OLD_BACKBONES
from dcgst.runs.format.v1 import upgrade_info
from dcgst.runs.other_graphs import read_other

FOLDER = Path(__file__).parents[1] / "data" / "run-0.1.0"
PAPERS = Path(__file__).parents[2] / "examples" / "data"
TABLES = PAPERS / "papers.csv", PAPERS / "papers_edges.csv"
OLD_INFO = json.loads((FOLDER / "run.json").read_text())


@pytest.fixture(scope="module")
def old_run():
    return open_run(FOLDER)


def test_predictions_equal_the_stored_table(old_run):
    assert rows_to_csv(old_run.predictions) == (FOLDER / "predictions.csv").read_text()


def test_history_and_audit_are_converted(old_run):
    candidates = old_run.result.candidates
    assert set(candidates["replica"]) == {0, 1}
    assert set(candidates["stage"]) == {1, 2, 3}
    first = candidates[0]
    assert (old_run.graph.ids[first["node"]], first["label"], first["rank"]) == ("p0010", 1, 1)
    assert (first["selected"], candidates[1]["selected"]) == (False, True)
    assert first["confidence"] == pytest.approx(0.953333)
    assert first["selection_score"] == pytest.approx(0.417902)
    assert first["ner"] == pytest.approx(0.509325)
    assert (candidates["truth"] == -1).all()
    assert (old_run.graph.labels[candidates["node"]] == -1).all()
    assert old_run.result.edge_probabilities.size == 0
    last = [record["cmd"] for record in old_run.result.history if record["stage"] == 3]
    assert np.mean(last) == pytest.approx(0.2871, abs=1e-4)


def test_settings_are_upgraded(old_run):
    found = old_run.info["settings"]
    assert not found.keys() & REMOVED["dcgst"].keys()
    assert not found.keys() & {"nodes", "pairs", "temperature"}
    assert (found["edge_nodes"], found["edge_pairs"], found["edge_temperature"]) == (200, 1000, 1.2)
    assert (found["hidden"], found["max_stages"], found["experts"]) == (8, 3, True)
    current = old_run.method.get_params()
    assert {name: current[name] for name in found} == {**found, "device": "cpu"}


@pytest.mark.parametrize("name", REMOVED["dcgst"])
def test_a_removed_setting_with_another_value_is_refused(tmp_path, name):
    settings = {**OLD_INFO["settings"], name: "other"}
    with pytest.raises(InputError, match=f"dcgst with {name}=other is not supported since version"):
        upgrade_settings("dcgst", settings)
    shutil.copytree(FOLDER, tmp_path / "run")
    text = json.dumps({**OLD_INFO, "settings": settings})
    (tmp_path / "run" / "run.json").write_text(text)
    with pytest.raises(InputError, match="is not supported since version"):
        open_run(tmp_path / "run")


def test_other_methods_had_no_settings_that_changed():
    settings = {"epochs": 3, "temperature": 2, "nodes": 5, "student": "none"}
    assert upgrade_settings("gcn", settings) == settings


def test_class_names_of_backbones_become_names():
    names = {old: upgrade_info({**OLD_INFO, "models": [{**OLD_INFO["models"][0], "backbone": old}]})
             ["models"][0]["backbone"] for old in OLD_BACKBONES}  # fmt: skip
    assert names == {"gcn": "gcn", "gat": "gat", "graphsage": "sage", "appnp": "appnp",
                     "mlp": "mlp"}  # fmt: skip


def test_the_networks_predict(old_run):
    # The networks are those of version 0.1. EM, which is averaged with them, ignores isolated nodes
    # and uses the features as they are since version 0.2; version 0.1 predicted 0.6935, 0.8482,
    # 0.1239 and 0.0121.
    rows = {row["id"]: row for row in old_run.predict(*TABLES)}
    assert len(rows) == 300
    assert sum(row["source"] == "given" for row in rows.values()) == 16
    assert rows["p0000"]["p(networks)"] == pytest.approx(0.6722, abs=2e-3)
    assert rows["p0003"]["p(vision)"] == pytest.approx(0.8477, abs=2e-3)
    assert rows["p0150"]["p(vision)"] == pytest.approx(0.1214, abs=2e-3)
    assert rows["p0151"]["margin"] == pytest.approx(0.0871, abs=2e-3)


def test_the_encoder_gives_the_stored_features(old_run):
    encoded = read_other(old_run, *TABLES, None, False).graph
    difference = abs(encoded.features - old_run.graph.features)
    assert difference.max() < 1e-6


def test_explanations_equal_those_of_version_0_1(old_run):
    found = explain(old_run, "p0000")
    assert (found.predicted, found.second) == ("networks", "security")
    assert [node.id for node in found.neighbors] == ["p0010", "p0029"]
    assert [node.source for node in found.neighbors] == ["pseudo", "predicted"]
    assert [node.id for node in found.labeled[:3]] == ["p0157", "p0183", "p0012"]
    assert found.labeled[0].weight == pytest.approx(0.25428, abs=1e-4)
    with open(FOLDER / "predictions.csv", newline="") as file:
        pseudo = next(row["id"] for row in csv.DictReader(file) if row["source"] == "pseudo")
    chosen = [c for c in explain(old_run, pseudo).candidacies if c.selected]
    assert len(chosen) >= 2, "in the candidates of both replicas"
    assert all(c.shift_before is not None and c.selection_score is not None for c in chosen)


def test_suggestions_equal_those_of_version_0_1(old_run):
    found = suggest(old_run.graph, old_run.result.proba, old_run.split.given[0], 3)
    assert [s.node for s in found.nodes] == [41, 50, 187]
    # 0.19837 in version 0.1, before isolated nodes were left out of the singular vectors.
    assert found.covered_after == pytest.approx(0.19094, abs=1e-4)


def test_a_report_is_written(old_run, tmp_path):
    text = write_report(old_run, tmp_path / "report.html").read_text()
    assert "dcgst 0.1.0" in text
    assert "shift (CMD)" in text, "the chart of the history"


def test_embeddings_are_computed(old_run):
    assert old_run.embeddings().shape == (300, 16)


def test_an_old_folder_is_not_resumed_but_may_be_replaced(old_run, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "run")
    data = read(*TABLES, Columns(label="topic"))
    settings = {**old_run.info["settings"], "epochs": 2, "experts": False, "max_stages": 1}
    model = type(old_run.method)(**settings)
    with pytest.raises(InputError, match="or by another version; use --overwrite to replace it"):
        fit(data, tmp_path / "run", model, resume=True)
    fit(data, tmp_path / "run", model, overwrite=True)
    assert open_run(tmp_path / "run").info["format"] == 2


def test_no_node_of_the_pool_has_a_known_class(old_run):
    assert not old_run.split.test(old_run.graph).any()
    assert old_run.split.official_test is None
