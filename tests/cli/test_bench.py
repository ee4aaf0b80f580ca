"""``dcgst bench``, ``demo``, ``methods`` and ``datasets``."""

from __future__ import annotations

import json
import re

import pytest

from dcgst import DCGST, GCN, synthetic
from dcgst.cli import demo
from dcgst.datasets import DATASETS
from dcgst.methods import METHODS
from tests.cli.helpers import dcgst
from tests.runs.helpers import QUICK

SMALL = ["--dataset", "synthetic/120", "--per-class", 3, "--runs", 1]


def test_bench_prints_json_with_all_fields_of_a_record():
    done = dcgst("bench", "--method", "gcn,lp", "--dataset", "synthetic/120", "--per-class", 3,
                 "--runs", 2, "--first-run", 10, "--set", "epochs=5", "--set", "hidden=8",
                 "--json")  # fmt: skip
    assert done.code == 0, done.err
    gcn, lp = (json.loads(line) for line in done.out.splitlines())
    assert gcn.keys() >= {
        "dataset", "method", "backbone", "sampler", "rate", "per_class", "runs", "preset",
        "accuracy", "mean", "std", "cmd_before", "cmd_after", "seconds", "versions",
    }  # fmt: skip
    assert (gcn["method"], lp["method"]) == ("gcn", "lp")
    assert len(gcn["accuracy"]) == 2
    assert gcn["first_run"] == 10
    assert (gcn["settings"]["hidden"], gcn["settings"]["epochs"]) == (8, 5)
    assert "hidden" not in lp["settings"], "a setting is for the methods that have it"


def test_bench_prints_a_table_with_settings_from_a_file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[gcn]\nepochs = 5\nbackbone = 'sage'\n")
    done = dcgst("bench", "--method", "gcn", *SMALL, "--settings", path)
    assert done.code == 0, done.err
    assert "gcn (sage)" in done.out
    assert "3/class" in done.out
    assert "over 1 run with ppr-s labels" in done.words
    assert done.err == ""


def test_published_settings_by_labels_per_class_are_found():
    done = dcgst("bench", "--method", "st,drgst", "--dataset", "synthetic/120", "--per-class", 8,
                 "--preset", "paper/cora", "--runs", 1, "--json",
                 "--set", "epochs=3", "--set", "passes=2", "--set", "hidden=8")  # fmt: skip
    assert done.code == 0, done.err
    st, drgst = (json.loads(line) for line in done.out.splitlines())
    assert st["preset"] == "paper/cora"
    assert drgst["preset"] == "paper/cora/10"
    assert drgst["settings"]["threshold"] == 0.7


def test_a_preset_of_one_method_leaves_others_at_their_default():
    done = dcgst("bench", "--method", "gcn,lp,mlp", *SMALL, "--preset", "paper/cora",
                 "--set", "epochs=2", "--set", "backbone=sage")  # fmt: skip
    assert done.code == 0, done.err
    assert "gcn (sage, " in done.words
    assert "paper/cora) " in done.words
    assert "lp (" not in done.out
    assert "mlp (" not in done.out
    other = dcgst("bench", "--method", "lp", "--preset", "paper/cora")
    assert (other.code, "unknown preset of lp 'paper/cora'" in other.err) == (2, True)


def test_invalid_settings_are_reported_before_any_training():
    done = dcgst("bench", "--method", "drgst,st", "--set", "stages=0", "--json")
    assert (done.code, done.out) == (2, "")
    assert "st: stages must be at least 1, got 0" in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gnc]\nepochs = 5", "'gnc' is not a method; settings are in tables like [gcn]"),
        ("epochs = 5", "'epochs' is not a method"),
        ("gcn = 5", "gcn must be a table of settings: [gcn]"),
        ("=", "is not valid TOML"),
    ],
)
def test_mistakes_in_a_settings_file_are_reported(text, message, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    done = dcgst("bench", "--settings", path)
    assert (done.code, message in done.words) == (2, True), done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "corra"], "unknown dataset 'corra'"),
        (["--method", "gnc"], "unknown method 'gnc'"),
        ([*SMALL, "--sampler", "fair"], "unknown sampler 'fair'"),
        (["--set", "hidden"], "--set needs name=value, got 'hidden'"),
        (["--set", "widht=3"], "unknown setting of gcn, dcgst 'widht'"),
        (["--set", "hidden=wide"], "hidden must be a whole number, got 'wide'"),
        (["--settings", "missing.toml"], "missing.toml cannot be read: No such file"),
        (["--preset", "best"], "unknown preset of gcn 'best'"),
        (["--suite", "--sampler", "degree"], "leave out --rate, --per-class, --sampler, --preset"),
        (
            [*SMALL, "--results", "b.jsonl"],
            "--results, --workers and --ray belong to --suite and --protocol",
        ),
        ([*SMALL, "--rate", 0.1], "set a label rate or labels per class, not both"),
    ],
)
def test_invalid_values_exit_with_2(arguments, message):
    done = dcgst("bench", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.words


def test_methods_lists_all_methods():
    lines = dcgst("methods", "--json").out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == list(METHODS)
    shown = dcgst("methods")
    assert "paper/cora/LABELS" in shown.words
    assert "Settings of a method: dcgst methods NAME" in shown.out


def test_methods_lists_the_settings_of_one():
    settings = [json.loads(line) for line in dcgst("methods", "gcn", "--json").out.splitlines()]
    assert {s["setting"]: s["default"] for s in settings} == GCN().get_params()
    backbone = next(s for s in settings if s["setting"] == "backbone")
    assert backbone["choices"] == ["gcn", "gat", "sage", "appnp", "mlp", "sign"]
    shown = dcgst("methods", "drgst").out
    assert "threshold" in shown
    assert "paper/cora/20: threshold=0.53, beta=0.333" in shown
    assert "Edge predictor:" in dcgst("methods", "dcgst").out


def test_datasets_lists_all_datasets(monkeypatch):
    monkeypatch.setenv("DCGST_DATA", "/nowhere")
    lines = [json.loads(line) for line in dcgst("datasets", "--json").out.splitlines()]
    assert [line["name"] for line in lines] == list(DATASETS)
    found = {line["name"]: line for line in lines}
    assert (found["digits"]["nodes"], found["digits"]["available"]) == (1797, True)
    shown = dcgst("datasets")
    assert "Files are searched in /nowhere" in shown.words
    assert "2,708" in shown.out


class QuickDCGST(DCGST):
    def __init__(self, **settings):
        super().__init__(**{**QUICK, **settings})


@pytest.fixture
def quick_demo(monkeypatch):
    """The demo with small data and quick settings."""
    quick = {"GCN": GCN(epochs=60), "DC-GST": QuickDCGST()}
    rows = [demo.Row(r.labels, r.title, quick.get(r.title, r.method)) for r in demo.ROWS]
    monkeypatch.setattr(demo, "ROWS", tuple(rows))
    monkeypatch.setattr(demo, "DCGST", QuickDCGST)  # whose shift is shown
    monkeypatch.setattr(demo, "load", lambda name: synthetic(200, 3, features=12, seed=2))


def test_the_demo_compares_random_and_biased_labels(quick_demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = dcgst("demo", "--json", "--runs", 2)
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert len(records) == len(demo.ROWS)
    random, biased = records[:2]
    assert (random["sampler"], biased["sampler"]) == ("uniform", "ppr-s")
    assert random["mean"] > biased["mean"]
    assert list(tmp_path.iterdir()) == [], "JSON only"


def test_the_demo_writes_a_run_with_a_report(quick_demo, tmp_path):
    done = dcgst("demo", "-o", tmp_path / "run", "--quiet", "--runs", 2)
    assert done.code == 0, done.err
    for row in demo.ROWS:
        assert row.title in done.out
    assert "Biased labels cost a GCN" in done.out
    assert len(re.findall(r"\d → \d", done.out)) == 1, "shift before and after pseudo-labels"
    assert f"Report of run 0: {tmp_path / 'run' / 'report.html'}" in done.words
    assert "expected calibration error" in (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "file").write_text("")
    assert dcgst("demo", "-o", tmp_path / "file" / "run").code == 2


def test_the_suite_names_the_graphs_that_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr("dcgst.cli.bench.available_graphs", lambda _: ["digits"])
    monkeypatch.setattr("dcgst.cli.bench.run_suite", lambda *_: None)
    done = dcgst("bench", "--suite", "--results", tmp_path / "suite.jsonl")
    assert done.code == 0
    assert "Warning: 18 of 19 graphs are left out" in done.err
    assert "cora_ml, amazon_photo" in " ".join(done.err.split())
