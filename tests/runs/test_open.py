"""``open_run``: what is written can be read again, and damage is reported."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import DCGST, EM, GCN, ST, Graph, InputError, fit, open_run, synthetic
from dcgst.methods import METHODS
from dcgst.nn import BACKBONES
from tests.runs.helpers import QUICK, reseal, with_known_truth


def test_an_opened_run_equals_the_fitted_one(run):
    opened = open_run(run.folder)
    for name in ("proba", "given", "labels", "labeled_stage", "agreement"):
        np.testing.assert_array_equal(getattr(opened.result, name), getattr(run.result, name))
    assert opened.result.history == run.result.history
    assert opened.result.stop_reason == run.result.stop_reason
    assert opened.info == json.loads(json.dumps(run.info))
    assert opened.predictions == run.predictions
    for mask in ("train", "val", "pool"):
        np.testing.assert_array_equal(getattr(opened.split, mask), getattr(run.split, mask))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_graph_is_stored_with_weights_ids_and_names(graph, tmp_path, sparse):
    weighted = graph.adjacency.copy()
    weighted.data = weighted.data * 0.25
    features = sp.csr_array(graph.features) if sparse else graph.features
    ids = np.array([f"n{i}" for i in range(120)], dtype=object)
    names = ("é", "b,c", '"d"')
    other = replace(graph, adjacency=weighted, features=features, ids=ids, class_names=names)
    found = open_run(fit(other, tmp_path / "run", GCN(epochs=2)).folder).graph
    np.testing.assert_array_equal(found.adjacency.toarray(), weighted.toarray())
    assert sp.issparse(found.features) == sparse
    np.testing.assert_array_equal(sp.csr_array(found.features).toarray(), graph.features)
    np.testing.assert_array_equal(found.labels, graph.labels)
    assert (found.ids.tolist(), found.class_names, found.name) == (ids.tolist(), names, "small")


def test_a_graph_with_masks_keeps_them(graph, tmp_path):
    known = with_known_truth(graph)
    found = open_run(fit(known, tmp_path / "run", GCN(epochs=2)).folder).graph
    np.testing.assert_array_equal(found.labels, known.labels)
    np.testing.assert_array_equal(found.masks["train"], known.masks["train"])


@pytest.mark.parametrize("known_truth", [False, True])
@pytest.mark.parametrize("make", [
    lambda: DCGST(**{**QUICK, "replicas": 2, "backbone": "gcn", "edge_predictor": True,
                     "edge_nodes": 20, "edge_pairs": 30}),
    lambda: ST(stages=2, epochs=3),
    lambda: EM(),
], ids=["dcgst", "st", "em"])  # fmt: skip
def test_audit_and_edges_are_stored_exactly(graph, tmp_path, make, known_truth):
    run = fit(with_known_truth(graph) if known_truth else graph, tmp_path / "run", make())
    opened = open_run(run.folder)
    for name in ("candidates", "edge_probabilities"):
        stored, original = getattr(opened.result, name), getattr(run.result, name)
        assert stored.dtype == original.dtype
        assert stored.tobytes() == original.tobytes(), name
    candidates = run.result.candidates
    if run.info["method"] == "dcgst":
        assert set(candidates["replica"]) == {0, 1}
        assert run.result.edge_probabilities.size > 0
    if run.info["method"] == "st":
        assert np.isnan(candidates["selection_score"]).all()
        assert (candidates["truth"] >= 0).all() == known_truth


def test_the_audit_table_has_ids_and_class_names_and_no_truth(run, graph):
    with gzip.open(run.folder / "candidates.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    candidates = run.result.candidates
    assert len(rows) == candidates.size > 0
    assert "truth" not in rows[0]
    assert [row["node"] for row in rows] == graph.ids[candidates["node"]].astype(str).tolist()
    assert [row["label"] for row in rows] == [
        graph.class_names[code] for code in candidates["label"]
    ]
    assert [row["selected"] == "True" for row in rows] == candidates["selected"].tolist()
    confidence = np.array([float(row["confidence"]) for row in rows])
    np.testing.assert_allclose(confidence, candidates["confidence"], rtol=1e-5)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "sage", "appnp", "mlp"])
def test_the_stored_networks_predict_as_the_fitted_ones(graph, tmp_path, backbone):
    model = GCN(epochs=3, hidden=8, replicas=2, backbone=backbone)
    run = fit(graph, tmp_path / "run", model)
    other = synthetic(60, 3, features=8, seed=5)
    expected = model.predict_proba(other)
    np.testing.assert_array_equal(run.method.predict_proba(other), expected)
    np.testing.assert_array_equal(open_run(run.folder).method.predict_proba(other), expected)


def test_embeddings_are_the_hidden_layers_of_all_replicas(run, graph):
    found = open_run(run.folder).embeddings()
    assert found.shape == (120, 2 * QUICK["hidden"])
    np.testing.assert_array_equal(found, run.method.embed(graph))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"{", r"run.json is damaged"),
        ("run.json", b"[]", r"run.json is damaged \(not a JSON object\)"),
        ("run.json", b'{"format": 99, "dcgst": "7.0"}', r"has format 99 \(dcgst 7.0\), this ver"),
        ("run.json", b'{"format": 3}', "run.json was changed or damaged"),
        ("run.json", b'{"format": 2}', "this version reads format 3; fit again"),
        ("graph.npz", b"PK", "graph.npz was changed or damaged since the fit"),
        ("graph.npz", b"", "graph.npz was changed or damaged since the fit"),
        ("history.csv", b"\xff\xfe", "history.csv was changed or damaged since the fit"),
        ("model.safetensors", b"no", "model.safetensors was changed or damaged since the fit"),
    ],
)
def test_damaged_files_and_other_formats_are_reported(run, tmp_path, name, content, message):
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_run(tmp_path / "run")


def test_a_missing_file_that_is_never_read_back_is_a_warning(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.warns(UserWarning, match=r"metrics\.json is missing; the run itself is intact"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["graph.npz", "history.csv", "model.safetensors"])
def test_missing_files_are_reported(run, tmp_path, name):
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(InputError, match=rf"{name} is missing; restore it"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("graph.npz", b"PK", "graph.npz is not an npz file"),
        ("graph.npz", b"", "graph.npz is not an npz file"),
        ("history.csv", b"\xff\xfe", "is damaged"),
        ("model.safetensors", b"no", "model.safetensors is damaged"),
    ],
)
def test_invalid_files_with_the_right_digests_are_reported(run, tmp_path, name, content, message):
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(content)
    reseal(tmp_path / "run")
    with pytest.raises(InputError, match=message):
        open_run(tmp_path / "run")


@pytest.mark.parametrize("key", ["method", "settings", "models", "calibration", "stop_reason"])
def test_entries_of_the_wrong_type_are_reported(run, tmp_path, key):
    shutil.copytree(run.folder, tmp_path / "run")
    reseal(tmp_path / "run", **{key: 3})
    with pytest.raises(InputError, match=rf"is damaged \(TypeError: {key} is int\)"):
        open_run(tmp_path / "run")


def test_arrays_of_another_length_are_reported(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "run")
    with np.load(run.folder / "graph.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["proba"] = arrays["proba"][:-1]
    np.savez(tmp_path / "run" / "graph.npz", **arrays)
    reseal(tmp_path / "run")
    with pytest.raises(InputError, match=r"proba is float32 \(119, 3\), expected \(120, 3\)"):
        open_run(tmp_path / "run")


def test_a_folder_without_a_run_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"is not a run folder: it has no run.json"):
        open_run(tmp_path)


MODULE = """
from dataclasses import dataclass
from dcgst.methods import GCN
from dcgst.nn import GCNBackbone

@dataclass(eq=False, kw_only=True)
class Mine(GCN):
    name = "mine"

class Net(GCNBackbone):
    pass
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """Return a function that imports a module with a method and a backbone of a user."""
    (tmp_path / "user_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METHODS, "_items", dict(METHODS._items))
    monkeypatch.setattr(BACKBONES, "_items", dict(BACKBONES._items))
    yield lambda: importlib.import_module("user_module")
    sys.modules.pop("user_module", None)


def forget(module: str) -> None:
    """Undo an import, as in a new process."""
    del sys.modules[module]


def test_a_run_of_an_unknown_method_opens_and_advises_to_import_it(graph, tmp_path, user_module):
    run = fit(graph, tmp_path / "run", user_module().Mine(epochs=2, hidden=4))
    other = synthetic(60, 3, features=8, seed=5)
    expected = run.predict(other)
    forget("user_module")
    opened = open_run(run.folder)
    assert opened.predictions == run.predictions, "stored predictions need no method"
    with pytest.raises(InputError, match=r"method 'user_module:Mine' is not registered; import "
                       r"user_module first \(on the command line: dcgst --import"):  # fmt: skip
        opened.predict(other)
    assert "user_module" not in sys.modules, "a file must not cause an import"
    user_module()
    assert open_run(run.folder).predict(other) == expected


@pytest.mark.parametrize("by_name", [False, True])
def test_a_run_of_an_unknown_backbone_is_refused(graph, tmp_path, user_module, by_name):
    net = user_module().Net
    name = "net" if by_name else "user_module:Net"
    if by_name:
        BACKBONES.register("net", net)
    run = fit(graph, tmp_path / "run", GCN(epochs=2, hidden=4, backbone=net))
    assert run.info["settings"]["backbone"] == run.info["models"][0]["backbone"] == name
    forget("user_module")
    BACKBONES._items.pop("net", None)
    message = "'net' is not registered" if by_name else "dcgst --import user_module"
    with pytest.raises(InputError, match=message):
        open_run(run.folder)
    net = user_module().Net
    if by_name:
        BACKBONES.register("net", net)
    assert isinstance(open_run(run.folder).result.models[0], net)


def test_ids_are_found_as_text(graph, run):
    assert run.node("7") == run.node(7) == 7
    with pytest.raises(
        InputError, match=r"no node has the id '500'; ids are in .*predictions\.csv"
    ):
        run.node(500)


def test_integer_ids_stay_integers(run):
    assert open_run(run.folder).predictions[7]["id"] == 7
    assert isinstance(run.graph, Graph)


def test_the_test_nodes_of_an_official_split_are_stored(tmp_path):
    graph = synthetic(120, 3, features=8, labels_per_class=4, seed=1)
    some = np.arange(120) % 2 == 0
    masks = {"train": graph.masks["train"], "test": graph.masks["test"] & some}
    run = fit(replace(graph, masks=masks), tmp_path / "run", EM())
    np.testing.assert_array_equal(
        open_run(run.folder).split.test(run.graph), run.split.test(run.graph)
    )
