"""Names and values from users cannot change what the terminal or a spreadsheet does."""

from __future__ import annotations

import csv

import pytest

from dcgst.cli import output
from dcgst.runs.folder import stored_steps
from dcgst.text import printable
from tests.cli.helpers import dcgst, read_table, write_table

FAST = ("--method", "em")


@pytest.mark.parametrize("name", ["[/red]", "[bold]run", "[link=x]run"])
def test_markup_in_the_name_of_the_folder_is_text(tables, tmp_path, name):
    folder = tmp_path / name
    done = dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind",
                 "-o", folder, *FAST)  # fmt: skip
    assert done.code == 0, done.err
    assert f"Predictions: {folder}/predictions.csv" in done.out
    assert dcgst("explain", folder, "n003").code == 0
    assert dcgst("suggest", folder, "-n", 2).code == 0
    missing = dcgst("explain", tmp_path / f"{name}2", "n003")
    assert missing.code == 2
    assert f"{name}2 is not a run folder" in missing.err


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """Tables with control characters, markup and formulas in ids, classes and columns."""
    folder = tmp_path_factory.mktemp("strange")
    ids = ["=1+1", "+2", "-3", "@4", "\x1b[2J", "[red]6", "7", "8", "9", "10"]
    classes = ["=cmd()", "\x1b]0;title\x07", "[/red]"]
    rows = [[node, i % 3, classes[i % 3] if i < 6 else ""] for i, node in enumerate(ids)]
    write_table(folder / "nodes.csv", ["id", "[blink]x", "class"], rows)
    pairs = [[ids[i], ids[(i + 1) % 10]] for i in range(10)]
    write_table(folder / "edges.csv", ["source", "target"], pairs)
    return folder


def test_no_output_contains_control_characters(strange):
    fit = ("fit", strange / "nodes.csv", strange / "edges.csv", "-o", strange / "run", *FAST)
    shown = [
        dcgst(*fit),
        dcgst("diagnose", strange / "nodes.csv", strange / "edges.csv"),
        dcgst("explain", strange / "run", "[red]6"),
        dcgst("explain", strange / "run", "\x1b[2J"),
        dcgst("explain", strange / "run", "\x1b[31m"),
        dcgst("suggest", strange / "run", "-n", 3),
        dcgst("predict", strange / "\x1b[31m"),
        dcgst("fit", strange / "nodes.csv", strange / "edges.csv", "--label", "\x1b[31m"),
    ]
    assert [done.code for done in shown] == [0, 0, 0, 0, 2, 0, 2, 2]
    for done in shown:
        assert "\x1b" not in done.out + done.err
        assert "\x07" not in done.out + done.err
    assert "[/red]" in shown[0].out
    assert r"\x1b]0;title\x07" in shown[0].out


def cells(text: str) -> set[str]:
    return {cell for row in csv.reader(text.splitlines()) for cell in row}


def test_formulas_are_quoted_on_request(strange, tmp_path):
    fit = ("fit", strange / "nodes.csv", strange / "edges.csv", *FAST)
    assert dcgst(*fit, "-o", tmp_path / "plain").code == 0
    assert dcgst(*fit, "-o", tmp_path / "safe", "--spreadsheet").code == 0
    plain = cells((tmp_path / "plain" / "predictions.csv").read_text())
    safe = cells((tmp_path / "safe" / "predictions.csv").read_text())
    assert {"=1+1", "+2", "-3", "@4", "=cmd()"} <= plain
    assert {"'=1+1", "'+2", "'-3", "'@4", "'=cmd()", "7"} <= safe
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in safe)
    printed = dcgst("predict", tmp_path / "plain", "--spreadsheet").out
    assert read_table(printed)[0]["id"] == "'=1+1"
    out = tmp_path / "next.csv"
    assert dcgst("suggest", tmp_path / "plain", "-n", 4, "-o", out, "--spreadsheet").code == 0
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells(out.read_text()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本", "plain ü 日本"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\rb", r"a\rb"),
        ("\u202eabc", r"\u202eabc"),
        ("\x9b1m", r"\x9b1m"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown


def test_without_a_terminal_progress_is_printed_as_lines(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    with output.progress("fit", 10.0, quiet=False) as bar:
        for now[0], done in ((30.0, 1), (61.0, 2), (100.0, 3), (130.0, 5)):
            bar.advance_to(done)
        bar.show_task("prediction", 0.0)
        now[0] = 230.0
        bar.show_task("prediction", 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "fit: 20%, about 4 min left",
        "fit: 50%, about 2 min left",
        "fit: prediction: 50%, about 2 min left",
    ]
    with output.progress("fit", 10.0, quiet=True) as bar:
        now[0] = 1000.0
        bar.advance_to(5)
    assert capsys.readouterr().err == ""


def test_a_resumed_fit_says_what_it_kept(tables, tmp_path):
    command = ("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", "-o",
               tmp_path / "run", "--method", "gcn", "--set", "epochs=3")  # fmt: skip
    assert dcgst(*command).code == 0
    run = tmp_path / "run"
    (run / "checkpoint" / "replica-000-1").mkdir(parents=True)
    (run / "checkpoint" / "replica-000-1" / "training.step").write_bytes(b"")
    (run / "checkpoint" / "0-hops.f32").write_bytes(b"1234")
    assert stored_steps(run) == (
        "1 trained or selected steps and 1 blocks of propagated features (0 MiB)"
    )
    done = dcgst(*command, "--resume")
    assert done.code == 0
    assert "holds 1 trained or selected steps" in done.err
    assert stored_steps(run) == ""
