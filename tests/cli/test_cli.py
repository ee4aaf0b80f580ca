"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def dcgst(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from dcgst.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )


def test_demo_shows_what_bias_costs_and_what_wins_it_back():
    done = dcgst("demo", "--json")
    assert done.returncode == 0, done.stderr
    fair, biased, _, alone, ours = (json.loads(line) for line in done.stdout.splitlines())
    assert fair["sampler"] == "uniform"
    assert fair["mean"] > biased["mean"] + 5
    assert fair["cmd_before"] < biased["cmd_before"]
    assert ours["method"] == "dcgst"
    assert ours["mean"] > biased["mean"] + 5
    assert alone["settings"]["prior"] == "none"
    assert alone["mean"] > biased["mean"] + 3
    assert ours["cmd_after"] < ours["cmd_before"]


def test_bench_in_json_has_every_field():
    done = dcgst("bench", "--method", "gcn", "--dataset", "synthetic", "--per-class", "3",
                 "--runs", "2", "--json",
                 "--first-run", "10", "--set", "epochs=5", "--set", "hidden=8")  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record.keys() >= {
        "dataset", "method", "backbone", "sampler", "rate", "per_class", "runs", "preset",
        "accuracy", "mean", "std", "cmd_before", "cmd_after", "seconds",
    }  # fmt: skip
    assert len(record["accuracy"]) == 2
    assert record["first_run"] == 10
    assert record["settings"]["hidden"] == 8


def test_bench_as_a_table_with_settings_from_a_file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[gcn]\nepochs = 5\nbackbone = 'sage'\n")
    done = dcgst("bench", "--method", "gcn", "--dataset", "synthetic", "--runs", "2",
                 "--config", str(path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "gcn (sage)" in done.stdout
    assert "5/class" in done.stdout
    assert "ppr-s labels" in done.stdout
    assert done.stderr == ""


def test_published_settings_by_labels_per_class_are_found():
    done = dcgst("bench", "--method", "st,drgst", "--dataset", "synthetic", "--per-class", "8",
                 "--preset", "paper/cora", "--runs", "1", "--json",
                 "--set", "epochs=3", "--set", "passes=2", "--set", "hidden=8")  # fmt: skip
    assert done.returncode == 0, done.stderr
    plain, rows = (json.loads(line) for line in done.stdout.splitlines())
    assert plain["preset"] == "paper/cora"
    assert rows["preset"] == "paper/cora/10"
    assert rows["settings"]["threshold"] == 0.7


def test_a_preset_that_one_method_has_leaves_others_at_their_default():
    done = dcgst("bench", "--method", "gcn,lp,mlp", "--dataset", "synthetic", "--runs", "1",
                 "--preset", "paper/cora", "--set", "epochs=2",
                 "--set", "backbone=sage")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "gcn (sage, paper/cora)" in done.stdout.replace("\n", "")
    assert "lp (" not in done.stdout
    assert "mlp (" not in done.stdout
    nobody = dcgst("bench", "--method", "lp", "--preset", "paper/cora")
    assert nobody.returncode == 2
    assert "unknown preset of lp 'paper/cora'" in nobody.stderr


def test_bad_values_are_told_before_anyone_trains():
    done = dcgst("bench", "--method", "drgst,st", "--set", "stages=0", "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "st: stages must be at least 1, got 0" in done.stderr


def test_methods_lists_names_and_the_settings_of_one():
    names = [json.loads(line)["name"] for line in dcgst("methods", "--json").stdout.splitlines()]
    assert {"dcgst", "gcn", "st", "m3s", "drgst", "srgnn", "eerm", "srgnn_st"} <= set(names)
    shown = dcgst("methods", "drgst").stdout
    assert "threshold" in shown
    assert "paper/cora/20: threshold=0.53, beta=0.333" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gnc]\nepochs = 5", "'gnc' is no method"),
        ("epochs = 5", "tables like [gcn]"),
        ("=", "not TOML"),
    ],
)
def test_mistakes_in_a_settings_file_are_named(text, message, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    done = dcgst("bench", "--config", str(path))
    assert done.returncode == 2
    assert message in done.stderr


def test_lists():
    done = dcgst("datasets", DCGST_DATA="/nowhere")
    assert "cora" in done.stdout
    assert "/nowhere" in done.stdout.replace("\n", "")
    assert json.loads(dcgst("methods", "--json").stdout.splitlines()[0])["name"] == "dcgst"
    assert "weight_decay" in dcgst("methods", "gcn").stdout
    assert dcgst("--version").stdout.startswith("dcgst 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench", "--dataset", "corra"), "unknown data set 'corra'"),
        (("bench", "--method", "gnc"), "unknown method 'gnc'"),
        (("bench", "--sampler", "fair"), "unknown sampler 'fair'"),
        (("bench", "--set", "hidden"), "--set takes KEY=VALUE"),
        (("bench", "--set", "widht=3"), "unknown setting of gcn, dcgst 'widht'"),
        (("bench", "--set", "hidden=wide"), "hidden must be int, got 'wide'"),
        (("bench", "--config", "missing.toml"), "missing.toml cannot be read"),
        (("bench", "--preset", "best"), "unknown preset"),
        (("methods", "gnc"), "unknown method"),
        (("bench", "--rate", "much"), "--rate"),
        (("fitt",), "fitt"),
    ],
)
def test_bad_usage_exits_2_without_a_traceback(arguments, message):
    done = dcgst(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback():
    done = dcgst("--debug", "bench", "--dataset", "corra")
    assert "Traceback" in done.stderr


def test_the_core_imports_without_the_command_line():
    """On machines without typer and rich the library must still work."""
    code = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None;"
        "import dcgst.bench.protocol, dcgst.methods, dcgst.testing; print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def test_reproduce_lists_what_it_would_run(tmp_path):
    results = str(tmp_path / "none.jsonl")
    done = dcgst("reproduce", "table2", "--runs", "2", "--dry-run", "--results", results)
    assert done.returncode == 0, done.stderr
    assert "m3s on citeseer, released 0.5 %: about" in done.stdout
    assert "36 of 36 cells to run, about" in done.stdout
    only = dcgst("reproduce", "--only", "table2", "--runs", "2", "--dry-run", "--json",
                 "--results", results)  # fmt: skip
    assert [json.loads(line)["done"] for line in only.stdout.splitlines()] == [False] * 36


def test_reproduce_shows_a_table_that_needs_no_runs_and_names_mistakes(tmp_path):
    results = str(tmp_path / "none.jsonl")
    done = dcgst("reproduce", "table4", "--results", results)
    assert done.returncode == 0, done.stderr
    assert "19,717" in done.stdout
    wrong = dcgst("reproduce", "table9", "--results", results)
    assert wrong.returncode == 2
    assert "unknown experiment 'table9'" in wrong.stderr
    apart = dcgst("reproduce", "table4", "--only", "fig1", "--results", results)
    assert apart.returncode == 2
    assert "nothing is asked for" in apart.stderr


def test_reproduce_notices_before_the_work_that_nothing_could_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    done = dcgst(
        "reproduce", "fig1", "--runs", "1", "--results", str(tmp_path / "file" / "r.jsonl")
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_reproduce_interrupted_ends_at_once_and_tells_how_to_go_on(tmp_path):
    code = "from dcgst.cli import main; main()"
    arguments = ["reproduce", "fig7", "--device", "cpu", "--results", str(tmp_path / "r.jsonl")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--figures", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in the background
    )
    deadline = time.monotonic() + 60
    while not list_children(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 130
    assert "cells are in" in said
    assert "Traceback" not in said


def list_children(pid: int) -> list[int]:
    """Processes that another one has started."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else [0]


def test_tune_tells_the_best_settings(tmp_path):
    done = dcgst("tune", "--method", "lp", "--dataset", "synthetic", "--runs", "2", "--trials", "2",
                 "--studies", str(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 trials of lp on synthetic, runs 10 to 11." in done.stdout
    assert "--set alpha=" in done.stdout
    name = "lp-default-ppr-s-5-per-class-runs-10-11.json"
    assert (tmp_path / "synthetic" / name).exists()
