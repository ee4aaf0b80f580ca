"""The suite and published protocols for ``dcgst bench``: their cells, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcgst.bench.cells import Cell
from dcgst.bench.iceberg import PUBLISHED, iceberg_cells, iceberg_table
from dcgst.bench.records import Records
from dcgst.bench.suite import FLOORS, GRAPHS, available_graphs, regimes_of, suite_cells
from dcgst.bench.suite_tables import gap_table, group_table, summary_table
from dcgst.bench.tables import Table
from dcgst.cli.grid import Plan, announce, report_failures, run_missing, show_table
from dcgst.cli.output import check_file, errors, say
from dcgst.cli.settings import split_list
from dcgst.datasets import check_name
from dcgst.errors import InputError, unknown_name

METHODS_BY_DEFAULT = {"": "gcn,dcgst", "suite": "ensemble,dcgst", "iceberg": "gcn,ensemble"}
RUNS_BY_DEFAULT = {"": 10, "suite": 5, "iceberg": 10}


def kind_of(suite: bool, protocol: str | None) -> str:
    """The collection of cells that was asked for; empty for a single measurement."""
    if protocol not in (None, "iceberg"):
        raise unknown_name("protocol", protocol, ["iceberg"])
    if suite and protocol:
        raise InputError("set --suite or --protocol, not both")
    return "suite" if suite else protocol or ""


def make_cells(
    kind: str,
    dataset: str | None,
    names: list[str],
    runs: int,
    first_run: int,
    settings: dict[str, dict[str, Any]],
) -> list[Cell]:
    """The cells of the suite or of a protocol, on the given datasets or all that are available."""
    graphs = list(split_list(dataset)) if dataset else []
    for graph in graphs:
        check_name(graph)
    if kind == "suite":
        graphs = graphs or _available(GRAPHS)
        return suite_cells(graphs, names, runs=runs, first_run=first_run, settings=settings)
    graphs = graphs or _available(tuple(PUBLISHED))
    return iceberg_cells(names, graphs, runs=runs, first_run=first_run, settings=settings)


def _available(names: Sequence[str]) -> list[str]:
    """The graphs on this machine; prints which ones are missing."""
    graphs = available_graphs(names)
    missing = [name for name in names if name not in graphs]
    if missing:
        say(
            f"Warning: {len(missing)} of {len(names)} graphs are left out, because they are not "
            f"in $DCGST_DATA: {', '.join(missing)}.",
            errors,
            wrap=True,
        )
    return graphs


@dataclass(frozen=True)
class GridOptions:
    """Where many cells are computed and stored, and what is printed."""

    results: Path
    device: str
    workers: int | None
    ray: str | None
    json: bool
    quiet: bool


def run_suite(cells: list[Cell], methods: list[str], options: GridOptions) -> None:
    """Run the missing cells of the suite in parallel, and print its tables."""

    def tables(records: Records) -> list[Table]:
        regimes = regimes_of(cells, records)
        if not regimes:
            return []
        own = [name for name in methods if name not in FLOORS]
        found = [group_table(regimes, own), *(gap_table(regimes, name) for name in own)]
        return [summary_table(regimes, methods), *(table for table in found if table.rows)]

    _run_grid(cells, "suite", options, tables)


def run_iceberg(cells: list[Cell], options: GridOptions) -> None:
    """Run the missing cells of the protocol of IceBerg in parallel, and print its table."""
    _run_grid(cells, "iceberg", options, lambda records: [iceberg_table(cells, records)])


def _run_grid(
    cells: list[Cell],
    title: str,
    options: GridOptions,
    tables: Callable[[Records], list[Table]],
) -> None:
    records = Records(options.results)
    check_file(options.results)
    plan = Plan(cells, records, options.device, options.workers, options.ray)
    announce(plan, options.json)
    failed = run_missing(plan, title, options.json, options.quiet) if plan.missing else []
    if not options.json:
        for table in tables(records):
            show_table(table)
    report_failures(failed, plan)
