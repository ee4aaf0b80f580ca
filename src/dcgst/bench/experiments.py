"""The experiments of the paper, each defined as a list of cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dcgst.bench.cells import Cell, unique
from dcgst.errors import unknown_name

TRIALS = 28

Settings = dict[str, Any]


@cache
def tuned_settings() -> dict[str, dict[str, Settings]]:
    """The best settings by dataset and method."""
    text = files("dcgst.bench").joinpath("tuned.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Settings]] = json.loads(text)
    return found


def best_settings(studies: Path, runs: str = "runs-10-19") -> dict[str, dict[str, Settings]]:
    """Read the best settings by dataset and method from summaries of ``dcgst tune``."""
    found: dict[str, dict[str, Settings]] = {}
    for path in sorted(studies.glob(f"*/*-{runs}.json")):
        summary = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(summary["dataset"], {})[summary["method"]] = summary["best"]["settings"]
    return found


BASELINES = ("gcn", "st", "m3s", "drgst", "srgnn", "eerm", "srgnn_st")
"""Methods that DC-GST is compared with, in the order of the paper's tables."""

RATES = {
    "cora": (0.005, 0.01, 0.02, 0.03, 0.05),
    "citeseer": (0.005, 0.01, 0.02, 0.03),
    "pubmed": (0.0003, 0.0005, 0.001),
    "ogbn-arxiv": (0.01, 0.05),
}
"""Label rates of each dataset with published results."""

OTHER_RATES = {"citeseer": (0.05,), "pubmed": (0.003,)}
"""Label rates in the text of the paper that its tables do not have."""

OTHER_GRAPHS = (
    "cora_ml",
    "amazon_photo",
    "digits",
    "uai",
    "counties_winner",
    "wikispeedia",
)
"""Graphs that the paper does not have."""

OTHER_BASELINES = ("st", "m3s", "drgst", "srgnn", "srgnn_st")
"""Baselines that are compared with DC-GST on other graphs."""

ABLATIONS: dict[str, dict[str, Any]] = {
    "full": {},
    "no_ep_cmd": {"cmd_weight": 0.0},
    "no_ner": {"ner_weight": 0.0},
    "no_ep": {"edge_predictor": False},
    "no_bce": {"edge_reconstruction": False},
    "confidence": {"criterion": "confidence"},
}
"""Settings of each ablation. The last two are not rows of the paper's table."""

SENSITIVITY = {
    ("cora", "cmd_weight"): (1.0, 3.0, 8.0, 13.0, 18.0, 28.0),
    ("cora", "predictor_weight"): (0.05, 0.1, 0.3, 0.5, 0.7),
    ("cora", "ner_weight"): (0.03, 0.05, 0.1, 0.18, 0.26),
    ("citeseer", "cmd_weight"): (2.0, 6.0, 12.0, 18.0, 26.0),
    ("citeseer", "predictor_weight"): (0.4, 0.5, 0.6, 0.8, 1.0),
    ("citeseer", "ner_weight"): (0.02, 0.08, 0.2, 0.4, 0.8),
}
"""Values of each weight in the sensitivity analysis."""

SENSITIVITY_RATES = (0.005, 0.02)
"""The caption of Figure 4 has the first, the text the second."""

PROTOCOL: dict[str, dict[str, Any]] = {"ensemble": {"train_on_validation": False}}
"""Settings by method that the protocol of the paper requires: no training on validation labels."""

BACKBONES = ("gat", "sage")
WITH_BACKBONES = (*((name, "default") for name in BASELINES), ("dcgst", "paper"))
"""Methods and presets that are compared with other backbones."""

SIZES = (1000, 4000, 16000, 64000)
"""Numbers of nodes of the graphs on which time and memory are measured."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper and the cells it needs.

    Attributes:
        name: Name on the command line.
        title: Short description of the content.
        cells: Function that returns the cells.
    """

    name: str
    title: str
    cells: Callable[[], list[Cell]]


def protocol_cell(
    dataset: str,
    method: str,
    rate: float,
    sampler: str = "released",
    preset: str = "default",
    *,
    runs: int = 10,
    **settings: Any,
) -> Cell:
    """A method under the protocol of the paper.

    Preset ``paper`` is that of the dataset. ``tuned`` is the default with settings found by search.
    """
    if preset == "paper":
        preset = f"paper/{dataset}"
    elif preset == "tuned":
        preset, settings = "default", {**tuned_settings()[dataset][method], **settings}
    own = {**(PROTOCOL.get(method, {}) if preset == "default" else {}), **settings}
    return Cell(dataset, method, rate, sampler, preset, own, runs)


def methods_on(dataset: str, sampler: str = "released", rates: Sequence[float] = ()) -> list[Cell]:
    """List the cells of all eight methods and of the ensemble at every rate."""
    return [
        cell
        for rate in rates or RATES[dataset]
        for cell in (
            *(protocol_cell(dataset, name, rate, sampler) for name in BASELINES),
            protocol_cell(dataset, "dcgst", rate, sampler, "paper"),
            protocol_cell(dataset, "ensemble", rate, sampler),
        )
    ]


def _cora_and_pubmed() -> list[Cell]:
    return [*methods_on("cora"), *methods_on("pubmed")]


def _citeseer() -> list[Cell]:
    return methods_on("citeseer")


SUMMARY = (
    ("gcn", "default"),
    ("m3s", "default"),
    ("srgnn_st", "default"),
    ("em", "default"),
    ("dcgst", "paper"),
    ("ensemble", "default"),
)
"""Methods and presets of the summary in the README."""


def summary_cells(dataset: str, method: str, preset: str) -> list[Cell]:
    """A method at all label rates of a dataset."""
    return [protocol_cell(dataset, method, rate, preset=preset) for rate in RATES[dataset]]


def _summary() -> list[Cell]:
    return [
        cell
        for dataset in ("cora", "citeseer", "pubmed")
        for method, preset in SUMMARY
        for cell in summary_cells(dataset, method, preset)
    ]


def _citeseer_random() -> list[Cell]:
    return methods_on("citeseer", "uniform")


def _other_rates() -> list[Cell]:
    return [
        cell
        for dataset, rates in OTHER_RATES.items()
        for cell in methods_on(dataset, "ppr-s", rates)
    ]


def graph_cell(graph: str, method: str) -> Cell:
    """A method on another graph, with ten biased labels per class and no validation labels."""
    return Cell(graph, method, None, "ppr-s", per_class=10, validation=0, runs=10)


def _other_graphs() -> list[Cell]:
    return [
        graph_cell(graph, name)
        for graph in OTHER_GRAPHS
        for name in ("gcn", *OTHER_BASELINES, "dcgst")
    ]


def _arxiv() -> list[Cell]:
    return methods_on("ogbn-arxiv")


def _tuned() -> list[Cell]:
    return [
        cell
        for dataset in tuned_settings()
        for rate in RATES[dataset]
        for cell in (
            *(protocol_cell(dataset, name, rate, preset="tuned") for name in BASELINES),
            protocol_cell(dataset, "dcgst", rate, preset="paper"),
            protocol_cell(dataset, "ensemble", rate),
        )
    ]


def _ablations() -> list[Cell]:
    return [
        Cell(dataset, "dcgst", 0.02, preset=f"paper/{dataset}", settings=settings)
        for dataset in ("cora", "citeseer")
        for settings in ABLATIONS.values()
    ]


def shift_cell(method: str) -> Cell:
    """A method on Cora with the history of its stages."""
    preset = "paper" if method == "dcgst" else "default"
    return replace(protocol_cell("cora", method, 0.02, preset=preset), stages=True)


def _shift() -> list[Cell]:
    return [shift_cell(name) for name in ("gcn", "st", "m3s", "drgst", "dcgst")]


def _sensitivity() -> list[Cell]:
    return [
        sensitivity_cell(dataset, rate, setting, value)
        for rate in SENSITIVITY_RATES
        for (dataset, setting), values in SENSITIVITY.items()
        for value in values
    ]


def sensitivity_cell(dataset: str, rate: float, setting: str, value: float) -> Cell:
    """The paper's method with another value of one weight."""
    preset = f"paper/{dataset}"
    return Cell(dataset, "dcgst", rate, preset=preset, settings={setting: value})


BY_STAGE = ("dcgst", "confidence", "m3s")


def stage_cell(name: str, sampler: str) -> Cell:
    """One of :data:`BY_STAGE` with the history of its stages."""
    if name == "m3s":
        return Cell("citeseer", name, 0.02, sampler, stages=True)
    settings = {"criterion": "confidence"} if name == "confidence" else {}
    return Cell("citeseer", "dcgst", 0.02, sampler, "paper/citeseer", settings, stages=True)


def _by_stage() -> list[Cell]:
    return [stage_cell(name, sampler) for sampler in ("uniform", "released") for name in BY_STAGE]


def _backbones() -> list[Cell]:
    return [
        protocol_cell(dataset, name, 0.02, preset=preset, backbone=backbone)
        for dataset in ("cora", "citeseer")
        for backbone in BACKBONES
        for name, preset in WITH_BACKBONES
    ]


def scaling_cells(num_nodes: int) -> list[Cell]:
    """List the timed cells of two methods on a synthetic graph with 20 labels per class."""
    dataset, rate = f"synthetic/{num_nodes}", 80 / num_nodes
    compared = (("gcn", "default"), ("dcgst", "paper/cora"))
    return [
        Cell(dataset, name, rate, "uniform", preset, runs=1, timed=True)
        for name, preset in compared
    ]


def _scaling() -> list[Cell]:
    return [cell for num_nodes in SIZES for cell in scaling_cells(num_nodes)]


def _claims() -> list[Cell]:
    """All that the claims are about; figure 7 last, because its cells are timed."""
    parts = (_cora_and_pubmed, _citeseer, _ablations, _citeseer_random, _shift, _sensitivity)
    return [cell for part in (*parts, _by_stage, _backbones, _scaling) for cell in part()]


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("table1", "biased labels on Cora and PubMed", _cora_and_pubmed),
        Experiment("table2", "biased labels on CiteSeer", _citeseer),
        Experiment("summary", "means over the label rates, with seeded EM (README)", _summary),
        Experiment("table3", "ablation on Cora and CiteSeer", _ablations),
        Experiment("table4", "dataset statistics", list),
        Experiment("table5", "random labels on CiteSeer", _citeseer_random),
        Experiment("fig1", "distribution shift on Cora by method", _shift),
        Experiment("fig2", "a subgraph of Cora and its most likely variant", list),
        Experiment("fig4", "sensitivity to the three weights", _sensitivity),
        Experiment("fig5", "distribution shift and accuracy by stage", _by_stage),
        Experiment("fig6", "GAT and GraphSAGE backbones", _backbones),
        Experiment("fig7", "time and memory by graph size", _scaling),
        Experiment("tuned", f"baselines with the best of {TRIALS} settings", _tuned),
        Experiment("claims", "every claim of the paper, with a verdict", _claims),
        Experiment("rates", "label rates without published results", _other_rates),
        Experiment("graphs", "biased labels on six other graphs", _other_graphs),
        Experiment("arxiv", "biased labels on ogbn-arxiv (part of table 1)", _arxiv),
    )
}


def select_experiments(names: list[str]) -> list[Experiment]:
    """Return the experiments with the given names; ``all`` selects every experiment."""
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise unknown_name("experiment", name, ["all", *EXPERIMENTS])
    return [e for e in EXPERIMENTS.values() if e.name in names or "all" in names]


def cells_of(experiments: list[Experiment], runs: int = 10) -> list[Cell]:
    """List the cells of the experiments without duplicates.

    Args:
        experiments: Experiments to run.
        runs: Number of runs per cell; timed cells have one.
    """
    cells = (cell for experiment in experiments for cell in experiment.cells())
    return unique(cell if cell.timed else cell.with_runs(runs) for cell in cells)
