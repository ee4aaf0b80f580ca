"""The session: queues, estimate, export, fit again."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dcgst import Ensemble, InputError, fit, open_run
from dcgst.evaluate.quality import estimate_share
from dcgst.label.cards import landmark_positions, quick_positions
from dcgst.label.journal import Journal
from dcgst.label.session import Session
from dcgst.tables import read_label_table
from tests.label.conftest import TRUTH


@pytest.fixture
def session(folder) -> Session:
    labels = folder.with_name("labels.csv")
    made = Session(open_run(folder), Journal(labels.with_suffix(".jsonl")), labels)
    made.prepare()
    return made


def test_random_and_suggested_nodes_come_in_turn(session):
    kinds = []
    for _ in range(6):
        card = session.next_card("tab", "both")
        kinds.append(card["chosen"])
        session.decide("tab", "label", [card["node"]], "a", card["chosen"])
    assert kinds == ["random", "suggested"] * 3
    assert session.next_card("tab", "audit")["chosen"] == "random"
    assert session.next_card("tab", "suggest")["chosen"] == "suggested"


def test_a_decided_node_does_not_come_again_and_clients_get_different_nodes(session):
    seen = set()
    for kind in ("label", "skip", "unsure") * 4:
        one, two = (session.next_card(client, "audit") for client in ("one", "two"))
        assert one["node"] != two["node"]
        assert one["node"] not in seen
        seen.add(one["node"])
        session.decide("one", kind, [one["node"]], "b", "random")


def test_predictions_of_random_nodes_are_hidden(session):
    card = session.next_card("tab", "audit")
    assert card["likeliest"] == []
    assert all(other["predicted"] == "" for other in card["neighbors"])
    assert card["reason"] is None
    shown = session.next_card("tab", "suggest")
    assert [row["probability"] for row in shown["likeliest"]] == sorted(
        (row["probability"] for row in shown["likeliest"]), reverse=True
    )
    assert shown["reason"]["node"] == shown["node"]
    assert shown["columns"]["title"].startswith("about ")


def test_the_estimate_follows_the_random_labels(session):
    assert session.overview()["estimate"] is None
    nodes = session.random_order[:12]
    for node in nodes:
        session.decide("tab", "label", [node], TRUTH[node], "random")
    for node in session.random_order[40:45]:
        session.decide("tab", "label", [node], TRUTH[node], "suggested")
    proba, names = session.run.result.proba, np.array(session.run.graph.class_names)
    right = names[proba[nodes].argmax(1)] == np.array([TRUTH[node] for node in nodes])
    rest = session.run.split.pool[0].copy()
    rest[session.random_order[40:45]] = False  # chosen by a person: the estimate is about others
    expected = estimate_share(right, proba[nodes].max(1), proba[rest].max(1))
    found = session.overview()
    assert found["estimate"] == vars(expected)
    assert (found["labels"], found["random"]) == (17, 12)


def test_labels_survive_a_new_session_and_are_exported(session):
    first, second = session.random_order[:2]
    session.decide("tab", "label", [first], "a", "random")
    session.decide("tab", "label", [second], "new class", "suggested")
    again = Session(session.base, Journal(session.journal.path), session.export)
    assert again.class_names == ["a", "b", "c", "new class"]
    assert again.next_card("tab", "audit")["node"] == session.random_order[2]
    table = read_label_table(again.write_export(), label_column="kind")
    ids = [str(session.base.graph.ids[node]) for node in (first, second)]
    assert table.classes == dict(zip(ids, ["a", "new class"], strict=True))
    assert table.random == {ids[0]}


def test_a_random_card_stays_hidden_when_it_is_shown_again(session):
    card = session.next_card("tab", "audit")
    again = session.card("tab", card["node"])
    assert (again["chosen"], again["likeliest"]) == ("random", [])
    assert session.card("other", card["node"])["chosen"] == "random"
    unseen = session.random_order[-1]
    assert session.card("other", unseen)["chosen"] == "selected"
    session.decide("tab", "label", [card["node"]], "a", "random")
    session.next_card("tab", "audit")
    undone = session.undo("tab")["card"]
    assert (undone["node"], undone["chosen"], undone["likeliest"]) == (card["node"], "random", [])
    assert all(other["predicted"] == "" for other in undone["neighbors"])


def test_a_random_node_stays_random_while_the_person_looks_at_its_neighbors(session):
    node = next(n for n in session.random_order if session.run.graph.degrees[n] > 0)
    while (card := session.next_card("tab", "audit"))["node"] != node:
        session.decide("tab", "skip", [card["node"]], chosen="random")
    neighbor = session.card("tab", card["neighbors"][0]["node"])
    assert neighbor["chosen"] == "selected"
    assert neighbor["likeliest"] != []
    (back,) = (other for other in neighbor["neighbors"] if other["node"] == node)
    assert back["predicted"] == "", "it would bias the label"
    assert any(other["predicted"] for other in neighbor["neighbors"])
    card = session.card("tab", node)
    assert (card["chosen"], card["likeliest"]) == ("random", [])
    session.decide("tab", "label", [node], TRUTH[node], card["chosen"])
    assert session.overview()["random"] == 1
    assert session.card("other", node)["likeliest"] != [], "it is decided"


def test_random_nodes_without_an_answer_are_counted(session):
    for kind in ("skip", "unsure", "label"):
        card = session.next_card("tab", "audit")
        session.decide("tab", kind, [card["node"]], "a", card["chosen"])
    found = session.overview()
    assert (found["random"], found["random_skipped"]) == (1, 2)


def test_the_table_is_removed_if_all_labels_are_undone(session):
    session.decide("tab", "label", [session.random_order[0]], "a", "random")
    assert session.write_export().exists()
    session.undo("tab")
    assert session.write_export() is None
    assert not session.export.exists()


def test_corrected_and_undone_labels_change_the_estimate(session, tmp_path):
    nodes = session.random_order[:8]
    for node in nodes[:5]:
        session.decide("tab", "label", [node], TRUTH[node], "random")
    session.write_export()
    audited = fit(session.base, tmp_path / "audited", labels=[session.export])
    again = Session(audited, Journal(tmp_path / "again.jsonl"), tmp_path / "again.csv")
    before = again.overview()["estimate"]
    assert before["labels"] == 5
    right = audited.result.proba[nodes[0]].argmax() == "abc".index(TRUTH[nodes[0]])
    other = next(c for c in "abc" if (c == TRUTH[nodes[0]]) != right)
    again.decide("tab", "label", [nodes[0]], other, "selected")  # corrects a label of the audit
    after = again.overview()["estimate"]
    assert after["labels"] == 5
    assert (after["value"] < before["value"]) == right
    session.run = audited  # as after a fit in the background
    session.undo("tab")
    assert session.overview()["estimate"]["labels"] == 4


@pytest.mark.parametrize("audit", [False, True])
def test_the_mean_confidence_counts_if_an_audit_calibrated_it(session, audit, tmp_path):
    nodes = session.random_order[:10]
    for node in nodes:
        session.decide("tab", "label", [node], TRUTH[node], "random")
    session.write_export()
    labels = [session.export] if audit else []
    run = session.run = fit(
        session.base, tmp_path / "new", Ensemble(members="lp,em,mlp", replicas=2), labels=labels
    )
    proba, confidence = run.result.proba, run.result.proba.max(1)
    right = proba[nodes].argmax(1) == ["abc".index(TRUTH[node]) for node in nodes]
    rest = confidence[run.split.pool[0]]
    expected = estimate_share(right, confidence[nodes], rest, calibrated=audit)
    assert session.overview()["estimate"] == pytest.approx(vars(expected))
    if audit:
        assert vars(run.estimate.accuracy) == pytest.approx(vars(expected))


def test_a_node_of_a_closed_tab_comes_again_later(session, monkeypatch):
    first = session.next_card("closed", "audit")["node"]
    assert session.next_card("tab", "audit")["node"] != first
    monkeypatch.setattr("dcgst.label.session.RESERVED", -1)
    assert session.next_card("tab", "audit")["node"] == first


def test_labels_of_another_graph_are_refused(session, tmp_path):
    journal = Journal(tmp_path / "other.jsonl")
    journal.decide("label", "tab", ["nobody"], "a")
    with pytest.raises(InputError, match="'nobody', which is no node of"):
        Session(session.base, journal, tmp_path / "other.csv")


def test_every_node_can_be_labeled(session):
    session.decide("tab", "label", list(range(120)), "a")
    assert session.next_card("tab", "both") is None
    session.decide("tab", "label", [session.random_order[0]], "b", "random")
    assert np.isfinite(session.overview()["estimate"]["value"])


def test_only_nodes_of_the_random_queue_can_be_random(session):
    given = int(np.flatnonzero(session.base.split.given[0])[0])
    session.decide("tab", "label", [given], "a", "random")
    assert session.journal.state.random == set()


def test_decisions_are_checked(session):
    for nodes, name in (([], "a"), ([500], "a"), ([-1], "a"), ([3], " "), ([3], "x" * 201)):
        with pytest.raises(InputError):
            session.decide("tab", "label", nodes, name)
    with pytest.raises(InputError, match="'A' differs from 'a' in letter case only; use 'a'"):
        session.decide("tab", "label", [3], "A")
    with pytest.raises(InputError, match="means a missing value"):
        session.decide("tab", "label", [3], "None")
    with pytest.raises(InputError, match="no node at position 500"):
        session.card("tab", 500)
    with pytest.raises(InputError, match="no new labels"):
        session.start_refit()
    assert not session.journal.path.exists()


def test_search_finds_parts_of_ids(session):
    assert [row["id"] for row in session.search("N01")] == [f"n01{i}" for i in range(10)]
    assert session.search("  ") == []


def test_points_hold_classes_and_sources(session):
    node = session.random_order[0]
    session.decide("tab", "label", [node], "new", "random")
    content = session.points()
    n = np.frombuffer(content, np.int32, 1)[0]
    assert n == 120
    assert len(content) == 4 + 5 * 4 * n
    codes, sources = np.frombuffer(content, np.int32, 2 * n, 4 + 12 * n).reshape(2, n)
    assert (codes[node], sources[node]) == (3, 2)
    assert (sources == 1).sum() == 12


def test_a_fit_in_the_background_replaces_the_predictions(session):
    for node in session.random_order[:20]:
        session.decide("tab", "label", [node], TRUTH[node], "random")
    session.start_refit()
    with pytest.raises(InputError, match="running already"):
        session.start_refit()
    limit = time.monotonic() + 120
    while session.overview()["refit"]["state"] == "running":
        assert time.monotonic() < limit
        time.sleep(0.1)
    found = session.overview()
    assert found["refit"]["state"] == "done", found["refit"]["message"]
    assert found["run"] == "run-2"
    assert found["comparison"]["audit"]["nodes"] == 20
    assert session.run.split.val[0].sum() == 20
    assert found["estimate"]["labels"] == 20
    assert session.base.folder.name == "run", "later fits start from the first run again"


def test_a_failed_fit_is_reported(session):
    session.decide("tab", "label", [session.random_order[0]], "a", "random")
    (session.base.folder / "graph.npz").unlink()
    session.start_refit()
    limit = time.monotonic() + 60
    while session.overview()["refit"]["state"] == "running":
        assert time.monotonic() < limit
        time.sleep(0.1)
    status = session.overview()["refit"]
    assert status["state"] == "failed"
    assert "graph.npz" in status["message"]


def test_map_positions_are_finite_and_in_the_unit_square(session):
    from dcgst.insight.suggestion import similarity_space

    z = similarity_space(session.run.graph)
    for positions in (quick_positions(z), landmark_positions(z), quick_positions(z[:2])):
        assert np.isfinite(positions).all()
        assert positions.min() >= 0
        assert positions.max() <= 1


def test_nodes_that_are_no_landmarks_are_near_similar_ones(monkeypatch):
    import torch

    monkeypatch.setattr("dcgst.label.cards.LANDMARKS", 60)
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 60)
    z = np.eye(3)[group] + 0.05 * rng.normal(size=(180, 3))
    z = torch.tensor(z / np.linalg.norm(z, axis=1, keepdims=True), dtype=torch.float32)
    found = landmark_positions(z)
    centers = np.stack([found[group == g].mean(0) for g in range(3)])
    nearest = ((found[:, None] - centers) ** 2).sum(-1).argmin(1)
    assert (nearest == group).mean() > 0.95
