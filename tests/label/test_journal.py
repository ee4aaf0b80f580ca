"""The file of labels: nothing is lost, undo and redo are events too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dcgst.errors import InputError, WriteError
from dcgst.label.journal import LABEL, SKIP, UNSURE, Journal


@pytest.fixture
def journal(tmp_path) -> Journal:
    return Journal(tmp_path / "labels.jsonl")


def again(journal) -> Journal:
    return Journal(journal.path)


def test_labels_are_read_again(journal):
    assert not journal.path.exists()
    journal.decide(LABEL, "tab", ["a"], "red", "random")
    journal.decide(LABEL, "tab", ["b", 'ü,\n"c'], "blue", "selected")
    journal.decide(SKIP, "tab", ["d"], chosen="suggested")
    state = again(journal).state
    assert state == journal.state
    assert state.classes == {"a": "red", "b": "blue", 'ü,\n"c': "blue"}
    assert (state.random, state.skipped) == ({"a"}, {"d"})
    lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2]


def test_a_later_decision_replaces_an_earlier_one(journal):
    journal.decide(LABEL, "tab", ["a"], "red", "random")
    journal.decide(LABEL, "tab", ["a"], "blue", "selected")
    assert journal.state.classes == {"a": "blue"}
    assert journal.state.random == {"a"}, "it was chosen at random, whoever changes the label"
    journal.decide(UNSURE, "tab", ["a"])
    assert (journal.state.classes, journal.state.skipped) == ({}, {"a"})
    journal.decide(LABEL, "tab", ["a"], "red")
    assert (journal.state.classes, journal.state.skipped) == ({"a": "red"}, set())


def test_undo_and_redo_go_through_the_decisions_of_one_client(journal):
    journal.decide(LABEL, "one", ["a"], "red")
    journal.decide(LABEL, "two", ["b"], "red")
    journal.decide(LABEL, "one", ["a"], "blue")
    assert journal.undo("one").name == "blue"
    assert journal.state.classes == {"a": "red", "b": "red"}
    assert journal.undo("one").name == "red"
    assert journal.undo("one") is None
    assert journal.state.classes == {"b": "red"}, "the other client is not affected"
    assert journal.redo("one").name == "red"
    assert journal.redo("one").name == "blue"
    assert journal.redo("one") is None
    assert journal.state.classes == {"a": "blue", "b": "red"}
    assert again(journal).state == journal.state


def test_a_new_decision_ends_redo(journal):
    journal.decide(LABEL, "tab", ["a"], "red")
    journal.undo("tab")
    journal.decide(LABEL, "tab", ["b"], "red")
    assert journal.redo("tab") is None
    assert journal.state.classes == {"b": "red"}


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_an_interrupted_last_line_is_removed(journal, cut):
    journal.decide(LABEL, "tab", ["a"], "red")
    whole = journal.path.read_bytes()
    journal.decide(LABEL, "tab", ["b"], "red")
    journal.path.write_bytes(journal.path.read_bytes()[:-cut])
    reopened = again(journal)
    assert reopened.state.classes == {"a": "red"}
    assert journal.path.read_bytes() == whole
    reopened.decide(LABEL, "tab", ["c"], "red")
    assert again(journal).state.classes == {"a": "red", "c": "red"}


@pytest.mark.parametrize("name", ["red\u2028blue", "a\x85b", "a\rb", "\U0001f600"])
def test_any_text_can_be_read_again(journal, name):
    journal.decide(LABEL, "tab", [name], name)
    journal.decide(LABEL, "tab", ["b"], "red")
    assert again(journal).state.classes == {name: name, "b": "red"}


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_failed_write_leaves_no_trace(journal, monkeypatch, failing):
    journal.decide(LABEL, "tab", ["a"], "red")
    original = getattr(os, failing)

    def fail(handle, *content):
        if failing == "write":
            original(handle, content[0][:5])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(WriteError, match="No space left"):
            journal.decide(LABEL, "tab", ["b"], "red")
    assert journal.state.classes == {"a": "red"}
    journal.decide(LABEL, "tab", ["c"], "red")
    assert again(journal).state == journal.state
    assert journal.state.classes == {"a": "red", "c": "red"}


def test_another_file_is_not_changed(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"accuracy": 1}\n{"accuracy": 2}')
    with pytest.raises(InputError, match="line 1 is damaged"):
        Journal(path)
    assert path.read_text() == '{"accuracy": 1}\n{"accuracy": 2}'


def test_a_damaged_line_is_named(journal):
    journal.decide(LABEL, "tab", ["a"], "red")
    journal.path.write_text(journal.path.read_text() + "nonsense\n")
    with pytest.raises(InputError, match=r"labels\.jsonl, line 2 is damaged"):
        again(journal)


def test_a_file_that_cannot_be_written_raises(tmp_path):
    journal = Journal(tmp_path / "missing" / "labels.jsonl")
    with pytest.raises(WriteError, match="cannot be written"):
        journal.decide(LABEL, "tab", ["a"], "red")
    assert journal.state.classes == {}


WRITER = """
import sys
from pathlib import Path
from dcgst.label.journal import LABEL, Journal
journal = Journal(Path(sys.argv[1]))
for number in range(100_000):
    journal.decide(LABEL, "tab", [f"n{number}"], "red")
    print(number, flush=True)
"""


def test_no_label_is_lost_when_the_process_is_killed(tmp_path):
    """Killed at ten moments: what was acknowledged is in the file."""
    for attempt in range(10):
        path = tmp_path / f"{attempt}.jsonl"
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(0.01 * attempt)
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = [0, *map(int, process.stdout.read().split())]
        stored = Journal(path).state.classes
        assert stored.keys() >= {f"n{number}" for number in acknowledged}
        assert len(stored) <= len(acknowledged) + 1


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "3",
        '"text"',
        "null",
        "[" * 100_000,
        '{"number": 1}',
        '{"number": 1, "kind": "label", "client": 3, "ids": ["a"]}',
        '{"number": 1, "kind": "label", "client": "t", "ids": [3]}',
        '{"number": 1, "kind": "label", "client": "t", "ids": "abc"}',
        '{"number": 1, "kind": "dance", "client": "t"}',
        '{"number": 1, "kind": "undo", "client": "t"}',
        '{"number": 1, "kind": "undo", "client": "t", "of": 7}',
        '{"number": 1, "kind": "undo", "client": "t", "of": "0"}',
        '{"number": 7, "kind": "skip", "client": "t", "ids": ["a"]}',
        '{"number": 1, "kind": "skip", "client": "t", "what": "a"}',
    ],
)
def test_every_damage_of_a_line_is_an_error_that_names_it(tmp_path, line):
    path = tmp_path / "labels.jsonl"
    journal = Journal(path)
    journal.decide("label", "t", ["a"], "x")
    path.write_bytes(path.read_bytes() + line.encode() + b"\n")
    with pytest.raises(InputError, match=r"labels\.jsonl, line 2 is damaged"):
        Journal(path)


def test_the_journal_is_readable_for_its_user_only_and_keeps_empty_names(tmp_path):
    path = tmp_path / "labels.jsonl"
    Journal(path).decide("skip", "", ["a"])
    assert path.stat().st_mode & 0o077 == 0
    assert Journal(path).events[0].client == ""
