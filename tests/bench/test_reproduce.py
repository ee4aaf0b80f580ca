"""The paper by one command: cells, records, the grid and the tables."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dcgst.bench import provenance, tables
from dcgst.bench.cells import Cell, key_of, unique
from dcgst.bench.experiments import EXPERIMENTS, RATES, RIVALS, cells_of, chosen
from dcgst.bench.figures import FIGURES, _padded, compare_graphs, draw
from dcgst.bench.grid import estimate, missing, run_grid
from dcgst.bench.pages import main_table, page
from dcgst.bench.pages import tables as tables_of
from dcgst.bench.protocol import Record
from dcgst.bench.published import published, published_ablation
from dcgst.bench.records import Records
from dcgst.bench.tables import BETTER, comparison
from dcgst.datasets import load, synthetic
from dcgst.errors import InputError
from dcgst.evaluate.metrics import holm
from dcgst.methods import DCGST


def record_of(cell: Cell, accuracy: list[float], **other) -> Record:
    """A record as a cell would give it, with accuracies made up."""
    fields = {
        "dataset": cell.dataset,
        "method": cell.method,
        "backbone": "gcn",
        "sampler": cell.sampler,
        "rate": cell.rate,
        "per_class": 8,
        "runs": cell.runs,
        "first_run": 0,
        "preset": cell.preset,
        "accuracy": accuracy,
        "mean": float(np.mean(accuracy)),
        "std": float(np.std(accuracy)),
        "cmd_before": 0.2,
        "cmd_after": 0.1,
        "seconds": 3.0,
        "official": True,
        "settings": cell.make().get_params(),
        "device": "CPU (made up)",
        "peak_mib": 100.0,
        "commit": None,
        "versions": {},
    }
    return Record(**{**fields, **other})


# --- the paper as data -------------------------------------------------------------------------


def test_published_figures():
    assert published("cora", "released", 0.02, "dcgst").mean == 77.4
    assert published("citeseer", "uniform", 0.005, "gcn").mean == 47.2
    assert published("pubmed", "released", 0.001, "eerm").mean is None
    assert published("cora", "released", 0.04, "gcn") is None
    assert published("cora", "ppr-s", 0.02, "gcn") is None
    assert published("digits", "released", 0.02, "gcn") is None
    assert published_ablation("cora", "no_ep").mean == 73.3


# --- experiments -------------------------------------------------------------------------------


def test_every_cell_can_be_made_and_is_asked_for_once():
    cells = cells_of(chosen(["all"]))
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.make().name == cell.method
    main = EXPERIMENTS["table1"].cells()
    assert len(main) == (len(RIVALS) + 2) * (len(RATES["cora"]) + len(RATES["pubmed"]))


def test_time_and_memory_are_measured_on_one_run_whatever_is_asked():
    assert {cell.runs for cell in cells_of(chosen(["fig7"]), 10)} == {1}
    assert load("synthetic/300").num_nodes == 300


def test_unknown_experiments_are_named():
    with pytest.raises(InputError, match="unknown experiment 'table9'"):
        chosen(["table9"])


def test_a_changed_setting_is_another_cell_and_a_device_is_not():
    cell = Cell("cora", "st", 0.02)
    fields = dataclasses.asdict(record_of(cell, [50.0]))
    assert key_of(fields) == cell.key
    elsewhere = {**fields, "settings": {**fields["settings"], "device": "cuda", "chunk": 3}}
    assert key_of(elsewhere) == cell.key
    other = {**fields, "settings": {**fields["settings"], "stages": 2}}
    assert key_of(other) != cell.key
    assert cell.with_runs(2).key != cell.key
    assert (
        len(unique([cell, cell.with_runs(10), Cell("cora", "st", 0.02, settings={"lr": 0.01})]))
        == 1
    )


# --- records -----------------------------------------------------------------------------------


def test_records_come_back_and_the_last_one_counts(tmp_path):
    path = tmp_path / "deep" / "records.jsonl"
    records = Records(path)
    cell = Cell("cora", "gcn", 0.02)
    records.add(record_of(cell, [50.0, 60.0]))
    records.add(record_of(cell, [70.0, 80.0]))
    again = Records(path)
    assert list(again.by_key) == [cell.key]
    assert again.by_key[cell.key]["accuracy"] == [70.0, 80.0]
    assert len(path.read_text().splitlines()) == 2


def test_a_line_cut_off_is_passed_over_and_nothing_after_it_is_lost(tmp_path):
    path = tmp_path / "records.jsonl"
    first, second = Cell("cora", "gcn", 0.02), Cell("cora", "gcn", 0.03)
    Records(path).add(record_of(first, [50.0]))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    Records(path).add(record_of(second, [60.0]))
    assert set(Records(path).by_key) == {first.key, second.key}


def test_other_damage_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("\nnot json\n")
    with pytest.raises(InputError, match=r"records.jsonl, line 2: not JSON"):
        Records(path)
    for other in ("[1, 2]", '{"dataset": "cora"}'):
        path.write_text(other)
        with pytest.raises(InputError, match=r"records.jsonl, line 1: not a record"):
            Records(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a file of records"):
        Records(path)
    with pytest.raises(InputError, match="not a file of records"):
        Records(tmp_path)


def test_substitutes_never_take_the_place_of_official_data(tmp_path, monkeypatch):
    records = Records(tmp_path / "records.jsonl")
    cell = Cell("ogbn-arxiv", "gcn", 0.01)
    records.add(record_of(cell, [40.0] * 10, official=False))
    monkeypatch.setattr("dcgst.bench.cells.official_here", lambda _: False)
    assert missing([cell], records) == []
    monkeypatch.setattr("dcgst.bench.cells.official_here", lambda _: True)
    assert missing([cell], records) == [cell]
    records.add(record_of(cell, [60.0] * 10))
    records.add(record_of(cell, [41.0] * 10, official=False))
    assert Records(records.path).by_key[cell.key]["mean"] == 60.0


def test_one_record_serves_with_and_without_history(tmp_path):
    cell = Cell("cora", "gcn", 0.02)
    wanted = dataclasses.replace(cell, stages=True)
    assert unique([cell, wanted]) == [wanted]
    records = Records(tmp_path / "records.jsonl")
    records.add(record_of(cell, [50.0] * 10))
    assert missing([wanted], records) == [wanted]
    records.add(record_of(wanted, [51.0] * 10, stages=[[]] * 10))
    assert missing([cell, wanted], records) == []


def test_a_setting_that_came_later_counts_as_its_default(tmp_path):
    cell = Cell("cora", "gcn", 0.02)
    fields = dataclasses.asdict(record_of(cell, [50.0]))
    del fields["settings"]["keep"]
    assert key_of({**fields, "runs": cell.runs}) == cell.key


# --- the grid ----------------------------------------------------------------------------------


@pytest.fixture
def quick_cells():
    few = {"epochs": 3, "hidden": 8}
    return [
        Cell("synthetic", "gcn", 0.02, "uniform", settings=few, runs=2),
        Cell("synthetic", "st", 0.02, "uniform", settings=few, runs=2, stages=True),
    ]


def test_the_grid_runs_what_is_missing_and_goes_on_past_failures(tmp_path, quick_cells):
    records = Records(tmp_path / "records.jsonl")
    broken = Cell("synthetic", "gcn", 0.02, "no such sampler", settings={"epochs": 1})
    heard = []
    done = run_grid([*quick_cells, broken], records, device="cpu", workers=2, report=heard.append)
    assert len(heard) == len(done) == 3
    (failed,) = (finished for finished in done if finished.record is None)
    assert failed.cell == broken
    assert "InputError" in failed.error
    assert not missing(quick_cells, records)
    assert missing([*quick_cells, broken], Records(records.path)) == [broken]
    plain, taught = (records.by_key[cell.key] for cell in quick_cells)
    assert plain["stages"] is None
    assert [len(run) for run in taught["stages"]] == [2, 2]
    assert plain["device"].startswith("CPU")
    assert plain["peak_mib"] > 50
    assert plain["versions"].keys() >= {"dcgst", "torch", "python"}
    assert not run_grid(quick_cells, records, device="cpu", report=heard.append)


def test_estimates_follow_what_was_measured(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    cell = Cell("cora", "gcn", 0.02, runs=4)
    guess = estimate(cell, records, gpu=False)
    assert guess == 4
    records.add(record_of(Cell("cora", "gcn", 0.05, runs=10), [50.0] * 10, seconds=100.0))
    assert estimate(cell, records, gpu=False) == pytest.approx(40)
    assert estimate(cell, records, gpu=True) == 1


# --- tables ------------------------------------------------------------------------------------


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


@pytest.fixture
def answered(tmp_path):
    """Every method on CiteSeer, DC-GST the best but at 3 %, where GCN is."""
    records = Records(tmp_path / "records.jsonl")
    for rate in RATES["citeseer"]:
        for place, name in enumerate((*RIVALS, "dcgst")):
            level = 50.0 + place
            if name == "gcn" and rate == 0.03:
                level = 90.0
            accuracy = [level + run / 5 for run in range(10)]
            records.add(record_of(Cell("citeseer", name, rate), accuracy))
    return records


def test_the_best_is_bold_and_those_beaten_are_marked(answered):
    table = comparison("CiteSeer", ["citeseer"], "released", answered)
    by_title = {row[0]: row[1:] for row in table.rows}
    assert by_title["DC-GST"][0].startswith("**57.9 ± 0.6** (58.1)")
    assert by_title["GCN"][3].startswith("**90.9")
    assert not by_title["GCN"][3].endswith(BETTER)
    assert by_title["GCN"][0] == f"50.9 ± 0.6 (38.6){BETTER}"
    assert by_title["DC-GST"][-1] == "1.2"  # first three times, then second
    assert by_title["DC-GST, the paper's settings"][0] == "– (58.1)"
    text = table.markdown()
    assert "DC-GST is not first at citeseer 3 %." in text
    assert "below its published figure at citeseer 0.5 % (by 0.2)" in text


def test_substitute_features_never_stand_beside_published_figures(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    cell = Cell("ogbn-arxiv", "gcn", 0.01)
    records.add(record_of(cell, [40.0] * 10, official=False))
    table = comparison("arxiv", ["ogbn-arxiv"], "released", records)
    gcn = next(row for row in table.rows if row[0] == "GCN")
    assert gcn[1] == "**40.0 ± 0.0**"
    assert all("(" not in row[1] for row in table.rows), "not even where ours is missing"
    assert any("substitute features" in note for note in table.notes)


def test_tables_of_all_experiments_can_be_made_of_nothing(tmp_path):
    made = tables_of(chosen(["all"]), Records(tmp_path / "none.jsonl"))
    assert len(made) == 7
    assert all(json.dumps(table.rows) for table in made)
    assert "2,708" in tables.datasets("Data sets").markdown()


def test_an_ablation_that_does_better_is_named(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    full, *parts = cells_of(chosen(["table3"]))[:4]
    records.add(record_of(full, [70.0] * 10))
    records.add(record_of(parts[0], [69.0] * 10))
    records.add(record_of(parts[1], list(np.linspace(70.5, 71.5, 10))))
    notes = tables.ablation("Ablation", records).notes
    assert notes[1:] == ["On cora the full method is not first: no NER is 1.0 better (p = 0.00)."]


def test_the_page_is_made_of_the_records(answered):
    text = page(answered)
    assert "**57.9 ± 0.6** (58.1)" in text
    assert f"{len(answered.by_key)} cells" in text
    assert "CPU (made up)" in text
    assert "![sensitivity of the three weights](../results/figures/fig4.svg)" in text


def test_the_committed_page_and_the_committed_records_agree():
    root = Path(__file__).parents[2]
    records = Records(root / "results" / "reproduce.jsonl")
    assert (root / "docs" / "results.md").read_text(encoding="utf-8") == page(records)
    assert main_table(records) in (root / "README.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert {f"{name}.svg", f"{name}.png"} <= set(os.listdir(root / "results" / "figures"))


def test_every_cell_of_the_paper_has_a_committed_record():
    records = Records(Path(__file__).parents[2] / "results" / "reproduce.jsonl")
    assert missing(cells_of(chosen(["all"])), records) == []


def test_a_commit_can_be_stated_where_git_knows_none(monkeypatch):
    monkeypatch.setenv("DCGST_COMMIT", "abc")
    assert provenance.commit.__wrapped__() == "abc"


# --- figures -----------------------------------------------------------------------------------


FROM_RECORDS = [name for name in FIGURES if name != "fig2"]


def test_a_region_and_its_variant_are_drawn(tmp_path):
    graph = synthetic(200, 3, features=8, labels_per_class=4, seed=1)
    quick = {"epochs": 10, "stage_epochs": 3, "max_stages": 2, "hidden": 8, "prior": "none"}
    model = DCGST(edge_predictor=True, nodes=20, similar=4, pairs=20, **quick).fit(graph)
    before, after = compare_graphs(graph, model).axes
    assert after.collections
    lines = [len(panel.lines) for panel in (before, after)]
    changed = model.edges_[(model.edges_["probability"] > 0.5) != model.edges_["present"]]
    assert changed.size
    assert lines[0] != lines[1]


@pytest.mark.parametrize("name", FROM_RECORDS)
def test_figures_are_drawn_from_records_and_not_without(name, tmp_path):
    records = Records(tmp_path / "records.jsonl")
    assert draw(name, records, tmp_path) == []
    history = [{"stage": 0, "cmd": 0.3}, {"stage": 1, "cmd": 0.2, "accuracy": 0.6}]
    for cell in cells_of(chosen([name]), 3):
        stages = [history, history[:1] + [history[1]] * 2, history] if cell.stages else None
        records.add(record_of(cell, [60.0, 61.0, 65.0], stages=stages))
    vector, pixels = draw(name, records, tmp_path / "figures", runs=3)
    assert vector.read_text(encoding="utf-8").startswith("<?xml")
    assert pixels.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        f"{name}.png",
        f"{name}.svg",
    ]


def test_runs_of_different_length_are_held_at_their_end():
    assert _padded([[1.0], [2.0, 3.0]]).tolist() == [[1.0, 1.0], [2.0, 3.0]]
