"""The report: one file, safe with any names, and alive in a browser."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess

import numpy as np
import pytest

from dcgst import DCGST, EM, Graph, explain, fit, synthetic, write_report
from dcgst.report import render
from dcgst.report.charts import Line, _ticks, line_chart
from dcgst.report.layout import SHOWN, shown_nodes
from tests.test_runs import QUICK, hidden_labels

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    base = synthetic(150, 3, features=8, seed=1)
    graph = hidden_labels(
        Graph(
            base.adjacency,
            base.features,
            base.labels,
            ("<b>bold</b>", "R&D", 'quo"ted'),
            np.array([f"n<{i}>" for i in range(150)]),
            name="</script><script>alert(1)</script>",
        )
    )
    return fit(graph, tmp_path_factory.mktemp("runs") / "run", DCGST(replicas=2, **QUICK))


class Reader(html.parser.HTMLParser):
    """Notes every tag and where it loads something from."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


def test_one_file_without_network_safe_with_any_names(run):
    text = render(run)
    reader = Reader()
    reader.feed(text)
    assert reader.loads == []
    assert not re.search(r"https?://", text)
    assert reader.tags.count("script") == 1
    assert "<b>bold" not in text
    assert "alert(1)</script>" not in text
    for words in ("How biased are the labels?", "Stage by stage", "Classes", "Most uncertain nodes",
                  "Are the probabilities honest?", "Configuration"):  # fmt: skip
        assert words in text


def test_methods_without_stages_have_a_report_too(tmp_path):
    graph = hidden_labels(synthetic(80, 3, features=8, seed=1))
    path = write_report(fit(graph, tmp_path / "run", EM()))
    assert path == tmp_path / "run" / "report.html"
    assert "Stage by stage" not in path.read_text()


def test_known_truth_shows_whether_probabilities_are_honest(tmp_path):
    whole = synthetic(150, 3, features=8, seed=1)
    train = hidden_labels(whole).labels >= 0
    graph = Graph.from_pyg(whole.to_pyg())
    graph = Graph(
        graph.adjacency,
        graph.features,
        graph.labels,
        graph.class_names,
        graph.ids,
        {"train": train},
    )
    text = render(fit(graph, tmp_path / "run", DCGST(**QUICK)))
    assert "(ECE)" in text
    assert "On 138 nodes of known class" in text


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_it_loads_in_a_browser_and_pointing_shows_a_node(run, tmp_path):
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


def test_large_graphs_are_shown_in_part_labels_first():
    graph = synthetic(SHOWN + 500, 3, features=4)
    labeled = np.arange(graph.num_nodes) < 40
    nodes = shown_nodes(graph, labeled)
    assert len(nodes) == len(set(nodes)) == SHOWN
    assert np.isin(np.arange(40), nodes).all()


def test_charts():
    assert line_chart([], "x", "y") == ""
    drawn = line_chart([Line("a", [0, 1, 2], [0.5, 0.2, 0.1])], "x", "y")
    assert drawn.count("<circle") == 3
    assert _ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert _ticks(0, 13) == [0, 5, 10]


def test_explanations_tell_the_story(run):
    graph = run.graph
    chosen = run.audit[run.audit["chosen"]]
    node = int(chosen["node"][0])
    found = explain(run, graph.ids[node])
    assert found.id == graph.ids[node]
    assert found.source in ("pseudo", "predicted")
    assert any(opinion.chosen for opinion in found.opinions)
    assert any("first became a pseudo-label" in line for line in found.summary)
    assert {n.id for n in found.neighbours} <= set(graph.ids)
    assert len(found.neighbours) == min(8, graph.degrees[node])
    assert sum(n.weight for n in found.labeled) <= 1 + 1e-6
    assert all(n.source == "given" for n in found.labeled)
    rows = run.audit[run.audit["node"] == node]
    assert [o.rank for o in found.opinions] == (rows["rank"] + 1).tolist()
    given = int(np.flatnonzero(graph.labels >= 0)[0])
    assert explain(run, graph.ids[given]).summary[0].endswith("was given.")
    with pytest.raises(ValueError, match="no node has the id 'nobody'"):
        explain(run, "nobody")
