"""Existing folders: when a fit refuses, resumes or replaces what is in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst import DCGST, GCN, InputError, Split, fit
from dcgst.files import TEMPORARY
from dcgst.runs.folder import identity, prepare, remove
from tests.runs.helpers import QUICK, with_few_labels, with_known_truth


@pytest.fixture
def fingerprint(graph):
    """Return a function that computes a fingerprint; arguments replace the defaults."""

    def compute(graph=graph, split=None, method="gcn", **settings):
        split = Split.known_labels(graph) if split is None else split
        return identity(graph, split, method, {"lr": 0.01, "device": "cpu", **settings})

    return compute


def test_the_fingerprint_changes_with_graph_labels_split_method_and_settings(graph, fingerprint):
    split = Split.known_labels(graph)
    features = graph.features.copy()
    features[100, 0] += 1
    heavier = graph.adjacency.copy()
    heavier.data = heavier.data * 2
    swapped = np.where(graph.labels >= 0, 2 - graph.labels, -1)
    ids = np.array([f"n{i}" for i in range(120)])
    variants = {
        "features": fingerprint(replace(graph, features=features)),
        "edge weights": fingerprint(replace(graph, adjacency=heavier)),
        "node order": fingerprint(graph.reorder(np.roll(np.arange(120), 1))),
        "ids": fingerprint(replace(graph, ids=ids)),
        "labels": fingerprint(graph.with_labels(swapped), split),
        "labels of the pool": fingerprint(with_known_truth(graph), split),
        "class names": fingerprint(replace(graph, class_names=("a", "b", "c"))),
        "split": fingerprint(split=split.hold_out(graph, 0.5)),
        "method": fingerprint(method="mlp"),
        "settings": fingerprint(lr=0.02),
        "seed": fingerprint(seed=1),
    }
    found = {name: value["fingerprint"] for name, value in variants.items()}
    found["original"] = fingerprint()["fingerprint"]
    assert len(set(found.values())) == len(found), found


def test_the_fingerprint_does_not_depend_on_where_it_is_computed(fingerprint):
    assert fingerprint(device="cuda", chunk_size=4) == fingerprint(device="cpu", chunk_size=None)


def test_a_complete_run_is_resumed_without_training(graph, run):
    events = []
    again = fit(
        graph, run.folder, DCGST(replicas=2, **QUICK), resume=True, callbacks=[events.append]
    )
    assert events == []
    assert again.predictions == run.predictions


def test_a_folder_with_a_run_is_refused(graph, run):
    with pytest.raises(InputError, match="already contains a run; use resume=True to continue it"):
        fit(graph, run.folder, DCGST(replicas=2, **QUICK))


def test_resume_and_overwrite_exclude_each_other(graph, run):
    with pytest.raises(InputError, match="choose one"):
        fit(graph, run.folder, DCGST(replicas=2, **QUICK), resume=True, overwrite=True)


def test_another_fit_is_not_resumed(graph, run):
    model = DCGST(replicas=2, **QUICK)
    others = [
        (graph, model.__class__(replicas=2, seed=1, **QUICK), 0.0),
        (replace(graph, class_names=("za", "b", "c")), model, 0.0),
        (with_few_labels(with_known_truth(graph), 5), model, 0.0),
        (graph, model, 0.5),
        (graph, GCN(), 0.0),
    ]
    for other, method, share in others:
        with pytest.raises(InputError, match="was started with another graph, other labels or"):
            fit(other, run.folder, method, validate=share, resume=True)


def test_a_fit_may_be_resumed_with_another_chunk(graph, tmp_path):
    class Interruption(Exception):  # noqa: N818
        pass

    def stop(event):
        raise Interruption

    with pytest.raises(Interruption):
        fit(graph, tmp_path / "run", GCN(epochs=3, replicas=2), callbacks=[stop])
    run = fit(graph, tmp_path / "run", GCN(epochs=3, replicas=2, chunk_size=2), resume=True)
    whole = GCN(epochs=3, replicas=2).fit(graph)
    np.testing.assert_allclose(run.method.proba_, run.calibration.apply(whole.proba_), atol=1e-5)


def test_a_folder_with_other_files_is_refused(graph, tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=r"contains other files \(thesis.txt\); choose"):
            fit(graph, tmp_path, GCN(epochs=2), **options)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_and_temporary_files_are_accepted(graph, tmp_path):
    (tmp_path / ".abc.part").write_text("{")
    assert fit(graph, tmp_path, GCN(epochs=2)).predictions


def test_overwriting_replaces_the_run_and_keeps_other_files(graph, tmp_path):
    first = fit(graph, tmp_path, GCN(epochs=3))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "report.html").write_text("old")
    second = fit(graph, tmp_path, GCN(epochs=4, seed=1), overwrite=True)
    assert (second.result.proba != first.result.proba).any()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "report.html").exists()


def test_the_folder_is_marked_before_the_training(graph, tmp_path):
    seen = []

    def look(event):
        seen.append({path.name for path in tmp_path.iterdir()})

    fit(graph, tmp_path, GCN(epochs=2), callbacks=[look])
    assert seen[0] == {"begun.json", ".lock"}
    assert not (tmp_path / ".lock").exists()


def test_removing_deletes_temporary_files(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    (run.folder / ".abc.part").write_text("")
    (run.folder / "checkpoint" / "replica").mkdir(parents=True)
    remove(run.folder)
    assert list(run.folder.iterdir()) == []


def test_removing_keeps_a_folder_with_other_files(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    (run.folder / "notes.txt").write_text("mine")
    remove(run.folder)
    assert [path.name for path in run.folder.iterdir()] == ["notes.txt"]


def test_a_damaged_mark_is_named(tmp_path, fingerprint):
    (tmp_path / "run").mkdir()
    prepare(tmp_path / "run", fingerprint(), resume=False, overwrite=False)
    (tmp_path / "run" / "begun.json").write_text("{")
    with pytest.raises(InputError, match=r"begun.json is damaged .*overwrite=True"):
        prepare(tmp_path / "run", fingerprint(), resume=True, overwrite=False)
    assert not prepare(tmp_path / "run", fingerprint(), resume=False, overwrite=True)


def test_a_temporary_file_that_another_process_renames_is_no_error(tmp_path, fingerprint):
    """The report is written without the lock of the folder."""

    class Vanishing(type(tmp_path)):
        def rglob(self, pattern):
            for path in super().rglob(pattern):
                path.unlink()
                yield path

    folder = Vanishing(tmp_path / "run")
    folder.mkdir()
    (folder / f".report.html{TEMPORARY}").write_text("")
    assert not prepare(folder, fingerprint(), resume=False, overwrite=False)
    assert [path.name for path in folder.iterdir()] == ["begun.json"]
