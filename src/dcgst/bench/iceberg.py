"""The protocol of IceBerg: few labels per class, and balanced validation labels.

Li et al., "IceBerg: Debiased Self-Training for Class-Imbalanced Node Classification", WWW 2025
(https://arxiv.org/abs/2502.06280), the experiments with few labels: k labels and 30 validation
labels of each class, drawn at random; the other nodes are test nodes. Validation labels choose
epochs and weights; no method trains on them. The splits are drawn by our own generator, so they
are not those of the paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dcgst.bench.cells import Cell, Records
from dcgst.bench.results import Table
from dcgst.errors import InputError
from dcgst.methods import METHODS

PUBLISHED = {
    "cora": {1: 68.2, 2: 75.1, 3: 75.8, 5: 78.3},
    "citeseer": {1: 57.8, 2: 64.8, 3: 66.6, 5: 67.8},
    "pubmed": {2: 66.9, 5: 72.6},
}
"""Published accuracy of IceBerg by dataset and labels per class, in percent."""

VALIDATION_PER_CLASS = 30
SETTINGS = {"train_on_validation": False, "random_validation": False}
"""Settings of the protocol, for methods that have them. Balanced validation labels are not a random
sample, and methods must not train on them."""


def iceberg_cells(
    methods: Sequence[str],
    datasets: Sequence[str] = tuple(PUBLISHED),
    *,
    runs: int = 10,
    first_run: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """The cells of the protocol: each method on each dataset and number of labels per class.

    Args:
        methods: methods to measure.
        datasets: some of the datasets of the protocol.
        runs: runs of each cell.
        first_run: number of the first run.
        settings: settings that override the defaults, by method.

    Raises:
        InputError: if a dataset is not part of the protocol, or a setting contradicts it.
    """
    for name in datasets:
        if name not in PUBLISHED:
            raise InputError(
                f"the protocol iceberg has the datasets {', '.join(PUBLISHED)}; got {name!r}"
            )
    own = {name: _settings_of(name, (settings or {}).get(name, {})) for name in methods}
    return [
        Cell(
            dataset,
            method,
            None,
            "uniform",
            settings=own[method],
            runs=runs,
            per_class=per_class,
            first_run=first_run,
            validation_per_class=VALIDATION_PER_CLASS,
        )
        for dataset in dict.fromkeys(datasets)
        for per_class in PUBLISHED[dataset]
        for method in dict.fromkeys(methods)
    ]


def _settings_of(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method, with those of the protocol that the method has."""
    known = {field.name for field in dataclasses.fields(METHODS[method])}
    required = {name: value for name, value in SETTINGS.items() if name in known}
    for name, value in required.items():
        if settings.get(name, value) != value:
            raise InputError(
                f"the protocol iceberg needs {name}={value}, got {settings[name]}; leave it out"
            )
    return {**settings, **required}


def iceberg_table(cells: Sequence[Cell], records: Records) -> Table:
    """Published and measured accuracy, by dataset and labels per class.

    Methods without records are left out.
    """
    found = [(cell, record) for cell in cells if (record := records.find(cell)) is not None]
    texts = {
        (cell.dataset, cell.per_class, cell.method): f"{record['mean']:.1f} ± {record['std']:.1f}"
        for cell, record in found
    }
    methods = list(dict.fromkeys(cell.method for cell, _ in found))
    rows = [
        [
            dataset,
            str(per_class),
            f"{PUBLISHED[dataset][per_class]:.1f}",
            *(texts.get((dataset, per_class, method), "–") for method in methods),
        ]
        for dataset, per_class in dict.fromkeys(
            (cell.dataset, cell.per_class) for cell in cells if cell.per_class is not None
        )
    ]
    runs = sorted({record["runs"] for _, record in found})
    measured = f"Mean and standard deviation over {runs[-1]} runs. " if runs else ""
    note = (
        f"Accuracy in %. {measured}Labels of each class and {VALIDATION_PER_CLASS} validation "
        "labels of each class are drawn at random; the other nodes are test nodes. Methods use the "
        "validation labels to choose epochs and weights, and do not train on them. The published "
        "values are from the paper's own splits; ours are drawn by our own generator, with the "
        "same numbers of labels, so both differ by the choice of splits too."
    )
    headers = ["dataset", "labels per class", "IceBerg, published", *methods]
    return Table("Protocol of IceBerg", headers, rows, [note])


PAGE_METHODS = ("gcn", "appnp", "em", "dcgst", "ensemble")


def iceberg_section(records: Records, runs: int = 10) -> str:
    """The table for the documentation as Markdown, with the methods that were measured."""
    table = iceberg_table(iceberg_cells(PAGE_METHODS, runs=runs), records)
    return table.markdown().split("\n\n", 1)[1]
