"""The report: one file, safe with any names, and working in a browser."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from dcgst import DCGST, EM, GCN, Graph, fit, read, synthetic, write_report
from dcgst.insight import report as page_module
from dcgst.insight.report import (
    SHOWN,
    Line,
    _ticks,
    color_of,
    line_chart,
    positions,
    render,
    shown_nodes,
)
from tests.runs.helpers import QUICK, small_graph, with_known_truth

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    graph = replace(
        small_graph(),
        class_names=("<b>bold</b>", "R&D", 'quo"ted'),
        ids=np.array([f"n<{i}>" for i in range(120)]),
        name="</script><script>alert(1)</script>",
    )
    return fit(graph, tmp_path_factory.mktemp("runs") / "run", DCGST(replicas=2, **QUICK))


@pytest.fixture(scope="module")
def page(run) -> str:
    return render(run)


class Reader(html.parser.HTMLParser):
    """Collects tags and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_no_network(page):
    reader = Reader()
    reader.feed(page)
    assert reader.addresses == []
    assert not re.search(r"https?://", page)


def test_names_are_escaped(page):
    reader = Reader()
    reader.feed(page)
    assert reader.tags.count("script") == 1
    assert "<b>bold" not in page
    assert "alert(1)</script>" not in page


def test_the_page_has_all_sections(page, run):
    for words in ("How biased are the labels?", "Stages", "Map of the nodes", "Classes",
                  "Nodes to look at", "Calibration of the probabilities", "Configuration",
                  run.calibration.description[1:], run.result.stop_reason):  # fmt: skip
        assert words in page
    assert "Predictions for 108 of 120 nodes\n  from 12 given labels" in page


def test_the_map_holds_every_node_with_its_class_and_source(page, run):
    points = json.loads(re.search(r"const P = (\{.*\}), N = ", page)[1])
    assert points["id"] == run.graph.ids.tolist()
    assert points["class"] == run.result.labels.tolist()
    sources = [points["sources"][code] for code in points["source"]]
    assert sources == [row["source"] for row in run.predictions]
    assert all(0 <= value <= 1000 for value in (*points["x"], *points["y"]))


def test_uncertain_and_likeliest_nodes_are_listed(page, run, monkeypatch):
    found = json.loads(re.search(r", N = (\{.*\});", page)[1])
    pool = [row for row in run.predictions if row["source"] != "given"]
    listed = [found["id"][place] for place, _ in found["lists"]["uncertain"]]
    margins = {row["id"]: row["margin"] for row in pool}
    assert sorted(listed) == sorted(margins)
    assert [margins[name] for name in listed] == sorted(margins.values())
    for code, name in enumerate(run.graph.class_names):
        expected = sorted((row[f"p({name})"] for row in pool), reverse=True)[:100]
        values = [value for _, value in found["lists"][str(code)]]
        assert values == pytest.approx(expected, abs=1e-3)
        assert len({place for place, _ in found["lists"][str(code)]}) == 100


def test_classes_are_counted_by_source(run):
    rows = page_module._classes(run)
    assert [row["given"] for row in rows] == [4, 4, 4]
    assert sum(row["nodes"] for row in rows) == 120
    assert all(row["given"] + row["pseudo"] + row["predicted"] == row["nodes"] for row in rows)


def test_a_method_without_stages_has_a_report_without_them(tmp_path):
    path = write_report(fit(small_graph(), tmp_path / "run", EM()))
    assert path == tmp_path / "run" / "report.html"
    assert "<h2>Stages</h2>" not in path.read_text()


def test_known_truth_shows_accuracy_and_calibration(tmp_path):
    graph = with_known_truth(small_graph())
    text = render(fit(graph, tmp_path / "run", GCN(epochs=5, hidden=8)))
    assert "On 108 nodes of known class that were not used for training" in text
    assert "expected calibration error (ECE)" in text
    assert "These are the validation nodes" not in text
    assert "Compared with true classes" in text
    assert "108 nodes of known class that the fit did not use: accuracy" in text


def test_the_report_leads_with_the_estimate_or_says_how_to_get_one(tmp_path, page):
    assert "This was not measured" in page
    assert "label randomly chosen nodes (dcgst audit)" in page
    graph = with_known_truth(small_graph())
    path = tmp_path / "audit.csv"
    nodes = np.flatnonzero(~graph.masks["train"])[::4]
    path.write_text("id,label\n" + "".join(f"{graph.ids[n]},{graph.labels[n]}\n" for n in nodes))
    run = fit(small_graph(), tmp_path / "run", EM(), audit=[path])
    text = render(run)
    assert f"{run.estimate}." in text
    assert f"estimated from {len(nodes)} randomly chosen nodes" in text
    assert "share of unlabeled nodes (95% interval)" in text
    assert ", without the randomly chosen ones, compared with" in text


def test_columns_that_are_not_used_are_named_near_the_top(tmp_path):
    (tmp_path / "n.csv").write_text(
        "id,label,unit,size\n"
        + "".join(f"n{i},{'ab'[i % 2] if i < 6 else ''},m,{i}\n" for i in range(8))
    )
    (tmp_path / "e.csv").write_text("a,b\n" + "".join(f"n{i},n{i + 1}\n" for i in range(7)))
    data = read(tmp_path / "n.csv", tmp_path / "e.csv")
    text = render(fit(data, tmp_path / "run", EM()))
    at = text.index("Columns not used: feature unit: not used: all values are equal.")
    assert at < text.index("How biased are the labels?")


def test_an_accuracy_on_validation_nodes_is_marked(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MIN_EVALUATION_NODES", 6)
    run = fit(small_graph(), tmp_path / "run", GCN(epochs=5, hidden=8), validate=0.5)
    text = render(run)
    assert "On 6 nodes of known class" in text
    assert "These are the validation nodes" in text
    monkeypatch.setattr(page_module, "MIN_EVALUATION_NODES", 7)
    assert "6 nodes of known class were not used for training: too few" in render(run)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_works_in_a_browser(run, tmp_path):
    path = write_report(run, tmp_path / "report.html")
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         "--v=0", "--virtual-time-budget=3000", "--dump-dom", f"{path.as_uri()}#node=n%3C7%3E"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    tip = re.search(r'<div id="tip"[^>]*>(.*?)</div>', done.stdout)
    assert tip is not None
    assert tip[1].startswith("n&lt;7&gt;: "), tip[1]
    assert "display: block" in tip[0]
    rows = re.search(r'<tbody id="nodes">(.*?)</tbody>', done.stdout, re.DOTALL)
    assert rows[1].count("<tr>") == 25
    assert "25 of 108 nodes" in done.stdout


def test_of_a_large_graph_labeled_nodes_are_shown_first():
    graph = synthetic(SHOWN + 500, 3, features=4)
    nodes = shown_nodes(graph, np.arange(graph.num_nodes) < 40)
    assert len(nodes) == len(set(nodes)) == SHOWN
    assert np.isin(np.arange(40), nodes).all()
    many = shown_nodes(graph, np.arange(graph.num_nodes) < 3000)
    assert (many < 3000).sum() == SHOWN // 2, "other nodes have room, too"


def test_positions_fill_the_unit_square():
    graph = synthetic(40, 2, features=4)
    found = positions(graph, np.arange(40))
    assert (found.min(), found.max()) == (0, 1)
    assert positions(graph, np.arange(3)).shape == (3, 2)


def test_a_chart_has_a_dot_for_each_point():
    assert line_chart([], "x", "y") == ""
    drawn = line_chart([Line("a", [0, 1, 2], [0.5, 0.2, 0.1])], "x", "y")
    assert drawn.count("<circle") == 3
    assert drawn.count("<polyline") == 1


def test_ticks_are_round_numbers():
    assert _ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert _ticks(0, 13) == [0, 5, 10]


def test_each_class_has_its_own_color():
    for classes in (3, 8, 40):
        assert len({color_of(code, classes) for code in range(classes)}) == classes


@pytest.mark.parametrize("columns", [1, 3])
def test_positions_of_equal_nodes_are_finite(columns):
    path = np.stack([np.arange(39), np.arange(1, 40)])
    graph = Graph.from_edges(path, np.zeros((40, columns), np.float32), np.arange(40) % 2)
    assert np.isfinite(positions(graph, np.arange(40))).all()
