"""Options in files, and messages as JSON lines."""

from __future__ import annotations

import json
import os
import tomllib

import pytest

from dcgst import InputError
from dcgst.cli.config_file import expand
from tests.cli.helpers import dcgst


def test_a_file_of_options_does_the_same(tables, tmp_path):
    options = (tables / "nodes.csv", tables / "edges.csv", "--label", "kind", "--method", "em",
               "--out", tmp_path / "run", "--kind", "w=number", "--kind", "x1=number")  # fmt: skip
    written = dcgst("config", "--save", tmp_path / "run.toml", "fit", *options)
    assert written.code == 0, written.err
    content = tomllib.loads((tmp_path / "run.toml").read_text())
    assert content["fit"]["inputs"] == [str(tables / "nodes.csv"), str(tables / "edges.csv")]
    assert content["fit"]["kind"] == ["w=number", "x1=number"]
    done = dcgst("fit", "--config", tmp_path / "run.toml")
    assert done.code == 0, done.err
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["method"] == "em"
    assert info["columns"]["kinds"] == {"w": "number", "x1": "number"}
    other = dcgst("fit", f"--config={tmp_path / 'run.toml'}", "--out", tmp_path / "other")
    assert other.code == 0, other.err
    assert (tmp_path / "other" / "run.json").exists(), "the command line replaces the file"


def test_options_at_the_top_apply_to_every_command(tables, tmp_path):
    (tmp_path / "all.toml").write_text(
        f"inputs = {[str(tables / 'nodes.csv'), str(tables / 'edges.csv')]}\n"
        'label = "kind"\nquiet = true\njson = false\n[fit]\nmethod = "em"\n'
        f'out = "{tmp_path / "run"}"\n'
    )
    assert dcgst("diagnose", "--config", tmp_path / "all.toml").code == 0
    assert dcgst("fit", "--config", tmp_path / "all.toml").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[predict]\nx = 1", "has no options of fit; add a table [fit]"),
        ("[fit\n", "cannot be read as TOML"),
        ("[fit]\n[fit.label]\nx = 1", "label must be a value, got a table"),
        ("[fit]\nsmell = 1", "--smell"),
    ],
)
def test_mistakes_in_the_file(tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    done = dcgst("fit", "--config", tmp_path / "run.toml")
    assert done.code == 2
    assert message in done.err
    assert "does not exist" in dcgst("fit", "--config", tmp_path / "none.toml").err
    assert "--config needs a file" in dcgst("fit", "--config").err
    assert "there is no command 'smell'" in dcgst("config", "smell").err


def test_messages_as_json_lines(tables, tmp_path):
    both = tables / "nodes.csv", tables / "edges.csv"
    options = "--label", "kind", "-o", tmp_path / "run", "--method", "em", "--json"
    done = dcgst("--json-logs", "fit", *both, *options)
    assert done.code == 0, done.err
    json.loads(done.out)
    failed = dcgst("--json-logs", "diagnose", tables / "none.csv", tables / "edges.csv")
    (record,) = [json.loads(line) for line in failed.err.splitlines()]
    assert record["level"] == "error"
    assert record["message"].endswith("none.csv does not exist; check the path")
    assert set(record) == {"time", "level", "message"}
    assert dcgst("diagnose", tables / "none.csv", tables / "edges.csv").err.startswith("Error: ")


def test_an_option_on_the_command_line_replaces_a_list_in_the_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[fit]\nedges = "select 1"\nkind = ["a=number", "b=text"]\nlabel = "x"\n')
    words = expand(["fit", "--config", str(path), "--edges", "select 2"], ["fit"])
    assert words.count("--edges") == 1
    assert words[-1] == "select 2"
    words = expand(["fit", "--config", str(path), "--kind=c=date"], ["fit"])
    assert [word for word in words if "=" in word] == ["--kind=c=date"]


def test_inputs_are_in_the_file_or_on_the_command_line(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[fit]\ninputs = ["n.csv", "e.csv"]\n')
    with pytest.raises(InputError, match=r"run.toml has inputs already; remove 'other.csv'"):
        expand(["fit", "--config", str(path), "other.csv", "--quiet"], ["fit"])


def test_json_logs_may_follow_the_command(tmp_path):
    done = dcgst("fit", "no.csv", "no_edges.csv", "--json-logs")
    assert done.code == 2
    assert json.loads(done.err.splitlines()[-1])["message"].startswith("no.csv does not exist")


def test_warnings_of_the_diagnosis_are_in_the_json(tables, tmp_path):
    nodes, edges = (tables / name for name in ("nodes.csv", "edges.csv"))
    header, *rows = nodes.read_text().splitlines()
    alone = "alone" + rows[-1][rows[-1].index(",") :]
    (tmp_path / "nodes.csv").write_text("\n".join([header, *rows, alone]))
    options = ("--label", "kind", "--method", "em", "--no-report", "--json", "-o", tmp_path / "run")
    done = dcgst("fit", tmp_path / "nodes.csv", edges, *options)
    assert done.code == 0, done.err
    assert any("no edge" in text for text in json.loads(done.out)["warnings"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("fit = 3", "fit must be a table"),
        ("[[fit]]", "fit must be a table"),
        ("a = " + "[" * 3000 + "]" * 3000, "cannot be read as TOML"),
        ("fit.seed = " + "9" * 5000, "cannot be read as TOML"),
        ("a = 1\n" * 200_000, "more than 1,000,000 bytes"),
    ],
    ids=["number", "list", "deep", "long number", "large"],
)
def test_files_that_are_no_options_are_errors(tmp_path, content, message):
    path = tmp_path / "c.toml"
    path.write_text(content)
    done = dcgst("fit", "n.csv", "--config", path)
    assert (done.code, message in done.words) == (2, True), done.words


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        done = dcgst("fit", "n.csv", "--config", path)
        assert (done.code, "is not a regular file" in done.words) == (2, True)


def test_an_option_that_was_switched_off_stays_off(tmp_path):
    path = tmp_path / "c.toml"
    done = dcgst("config", "--save", path, "fit", "n.csv", "e.csv", "--no-report")
    assert done.code == 0
    assert "--no-report" in expand(["fit", "--config", str(path)], ("fit",))
