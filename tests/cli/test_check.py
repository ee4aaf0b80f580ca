"""``dcgst check``: stores, runs and journals are read completely."""

from __future__ import annotations

import json
from pathlib import Path

from dcgst import EM, fit, synthetic
from dcgst.label.journal import Journal
from tests.cli.helpers import dcgst


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(bytes(content))


def test_a_run(tmp_path):
    run = tmp_path / "run"
    fit(synthetic(60, 2, features=8), run, EM())
    done = dcgst("check", run)
    assert (done.code, "a complete run, 60 nodes" in done.words) == (0, True)
    flip(run / "graph.npz", 200)
    done = dcgst("check", run)
    assert (done.code, "graph.npz" in done.err) == (2, True)
    flip(run / "graph.npz", 200)
    flip(run / "predictions.csv", 20)
    done = dcgst("check", run)
    assert (done.code, "predictions.csv was changed" in done.words) == (2, True)


def test_a_store(tmp_path):
    (tmp_path / "n.csv").write_text("id,label,x\na,p,1\nb,q,2\nc,,3\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    store = tmp_path / "g.store"
    assert dcgst("import", tmp_path / "n.csv", tmp_path / "e.csv", "-o", store).code == 0
    done = dcgst("check", store, "--json")
    assert json.loads(done.out) == {"path": str(store), "kind": "store", "complete": True}
    flip(store / "indptr.bin", 9)
    done = dcgst("check", store)
    assert (done.code, "indptr.bin is damaged" in done.words) == (2, True)
    assert dcgst("diagnose", store).code == 2


def test_a_journal_is_not_changed(tmp_path):
    path = tmp_path / "labels.jsonl"
    journal = Journal(path)
    journal.decide("label", "someone", ["a"], "p")
    done = dcgst("check", path)
    assert (done.code, "a complete journal, 1 events" in done.words) == (0, True)
    with open(path, "a") as file:
        file.write('{"kind": "la')
    content = path.read_bytes()
    assert dcgst("check", path).code == 2
    assert path.read_bytes() == content


def test_other_paths(tmp_path):
    done = dcgst("check", tmp_path / "missing")
    assert (done.code, "is not a store, a run folder or a journal" in done.words) == (2, True)
    assert "is not a store, a run folder or a journal" in dcgst("check", tmp_path).words
    (tmp_path / "n.csv").write_text("id,label\n")
    assert "is not a journal of labels" in dcgst("check", tmp_path / "n.csv").words
    (tmp_path / "empty").write_text("")
    assert "is empty" in dcgst("check", tmp_path / "empty").words
