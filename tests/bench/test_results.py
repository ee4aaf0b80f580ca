"""Published results, tables, figures and the results page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from dcgst.bench.cells import Cell, Records
from dcgst.bench.experiments import cells_of, protocol_cell, select_experiments, tuned_settings
from dcgst.bench.figures import (
    FIGURES,
    MAX_NEIGHBORS,
    _subgraph_nodes,
    compare_graphs,
    draw,
    pad_runs,
)
from dcgst.bench.pages import make_tables, mean_table, render_page
from dcgst.bench.results import (
    BETTER,
    ablation_table,
    comparison_table,
    dataset_table,
    published_ablation,
    published_result,
)
from dcgst.datasets import synthetic
from dcgst.evaluate.quality import holm
from dcgst.graph import Graph
from dcgst.methods import DCGST
from tests.bench.conftest import make_record

ROOT = Path(__file__).parents[2]


def test_published_results_match_the_paper():
    assert published_result("cora", "released", 0.02, "dcgst").mean == 77.4
    assert published_result("citeseer", "uniform", 0.005, "gcn").mean == 47.2
    assert published_result("pubmed", "released", 0.001, "eerm").mean is None
    assert published_result("cora", "released", 0.04, "gcn") is None
    assert published_result("cora", "ppr-s", 0.02, "gcn") is None
    assert published_result("digits", "released", 0.02, "gcn") is None
    assert published_ablation("cora", "no_ep").mean == 73.3


# --- tables ------------------------------------------------------------------------------------


def test_holm_correction_matches_hand_calculation():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_best_method_is_bold_and_significant_differences_are_marked(citeseer_records):
    table = comparison_table("CiteSeer", ["citeseer"], "released", citeseer_records)
    by_title = {row[0]: row[1:] for row in table.rows}
    assert by_title["DC-GST"][0].startswith("**57.9 ± 0.6** (58.1)")
    assert by_title["GCN"][3].startswith("**90.9")
    assert not by_title["GCN"][3].endswith(BETTER)
    assert by_title["GCN"][0] == f"50.9 ± 0.6 (38.6){BETTER}"
    assert by_title["DC-GST"][-1] == "1.2"  # three times first, once second
    assert by_title["ensemble (not of the paper)"][0] == "–", "it has no published result"
    text = table.markdown()
    assert "DC-GST is below at least one baseline in 1 of 4 cells" in text
    assert "below its published result in 4 of 4" in text


def test_substitute_features_are_not_compared_with_published_results(records):
    cell = Cell("ogbn-arxiv", "gcn", 0.01)
    records.add(make_record(cell, [40.0] * 10, official=False))
    table = comparison_table("arxiv", ["ogbn-arxiv"], "released", records)
    gcn = next(row for row in table.rows if row[0] == "GCN")
    assert gcn[1] == "**40.0 ± 0.0**"
    assert all("(" not in row[1] for row in table.rows), "also in rows without a record"
    assert any("substitute features" in note for note in table.notes)


def test_tables_can_be_made_without_records(records):
    made = make_tables(select_experiments(["all"]), records)
    assert "Mean over the label rates" in [table.title for table in made]
    assert len(made) == len({table.title for table in made}) == 15
    assert all(json.dumps(table.rows) for table in made)
    assert "2,708" in dataset_table("Datasets").markdown()


def test_ablation_table_names_ablations_better_than_the_full_method(records):
    full, *ablations = cells_of(select_experiments(["table3"]))[:4]
    records.add(make_record(full, [70.0] * 10))
    records.add(make_record(ablations[0], [69.0] * 10))
    records.add(make_record(ablations[1], list(np.linspace(70.5, 71.5, 10))))
    notes = ablation_table("Ablation", records).notes
    assert notes[1:] == [
        "On cora, the full method is not the best: no NER is 1.0 points better (p = 0.00)."
    ]


# --- the results page --------------------------------------------------------------------------


def test_page_is_generated_from_records(citeseer_records):
    text = render_page(citeseer_records)
    assert "**57.9 ± 0.6** (58.1)" in text
    # Figure 5 needs the history of two cells, which these records do not have.
    assert f"{len(citeseer_records.by_key) - 2} cells" in text
    assert "CPU (test)" in text
    assert "![sensitivity to the three weights](../results/figures/fig4.svg)" in text


def test_committed_page_matches_committed_records():
    records = Records(ROOT / "results" / "reproduce.jsonl")
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == render_page(records)
    assert mean_table("", records).body() in (ROOT / "README.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert {f"{name}.svg", f"{name}.png"} <= set(os.listdir(ROOT / "results" / "figures"))


# --- figures -----------------------------------------------------------------------------------


def test_original_graph_and_variant_are_drawn():
    graph = synthetic(200, 3, features=8, labels_per_class=4, seed=1)
    quick = {"epochs": 10, "stage_epochs": 3, "max_stages": 2, "hidden": 8}
    quick |= {"backbone": "gcn", "edge_predictor": True, "edge_nodes": 20, "edge_pairs": 20}
    model = DCGST(**quick).fit(graph)
    original, variant = compare_graphs(graph, model).axes
    assert variant.collections
    changed = model.edge_probabilities_[
        (model.edge_probabilities_["probability"] > 0.5) != model.edge_probabilities_["present"]
    ]
    assert changed.size
    assert len(original.lines) != len(variant.lines)


def test_every_node_of_a_drawn_subgraph_has_an_edge_in_one_of_the_graphs():
    """A center with 40 new neighbors: not all are shown, nor the neighbors of the others."""
    pairs = [(n, 91 - n) for n in range(1, 41)]
    graph = Graph.from_edges(np.array(pairs).T, np.eye(100, 4, dtype=np.float32))
    changed = np.array([(0, n) for n in range(1, 41)], dtype=[("source", int), ("target", int)])
    nodes = _subgraph_nodes(graph, changed)
    drawn = {(a, b) for a, b in [*pairs, *changed.tolist()] if {a, b} <= set(nodes.tolist())}
    assert set(nodes.tolist()) == {node for pair in drawn for node in pair}
    assert len(nodes) == 1 + MAX_NEIGHBORS


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "fig2"])
def test_figure_is_drawn_only_if_all_records_exist(name, records, tmp_path):
    assert draw(name, records, tmp_path) == []
    history = [
        {"stage": 0, "labeled": 8, "cmd": 0.3, "fixed_cmd": 0.3},
        {"stage": 1, "labeled": 12, "cmd": 0.2, "fixed_cmd": 0.2, "accuracy": 0.6},
    ]
    for cell in cells_of(select_experiments([name]), 3):
        stages = [history, history[:1] + [history[1]] * 2, history] if cell.stages else None
        records.add(make_record(cell, [60.0, 61.0, 65.0], stages=stages))
    svg, png = draw(name, records, tmp_path / "figures", runs=3)
    assert svg.read_text(encoding="utf-8").startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    files = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert files == [f"{name}.png", f"{name}.svg"]


def test_shorter_runs_repeat_their_last_value():
    assert pad_runs([[1.0], [2.0, 3.0]]).tolist() == [[1.0, 1.0], [2.0, 3.0]]


def test_tables_of_tuned_baselines_use_the_settings_found_by_search(records):
    cell = protocol_cell("cora", "gcn", 0.02, preset="tuned")
    assert cell.settings == tuned_settings()["cora"]["gcn"] != {}
    records.add(make_record(cell, [61.0] * 10))
    records.add(make_record(protocol_cell("cora", "gcn", 0.02), [55.0] * 10))
    table = comparison_table("Tuned", ["cora"], "released", records, tuned=True)
    assert table.rows[0][0] == "GCN, tuned"
    assert table.rows[0][3].startswith("**61.0 ± 0.0**")
    assert "28 trials" in table.notes[0]
