"""``dcgst bench``, ``reproduce``, ``tune``, ``datasets`` and ``methods``."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from dcgst.bench.cells import Cell, Records
from dcgst.bench.claims import claim_sections
from dcgst.bench.experiments import EXPERIMENTS, Experiment, cells_of, select_experiments
from dcgst.bench.figures import FIGURES, draw, draw_study, import_matplotlib
from dcgst.bench.grid import (
    CellResult,
    default_num_workers,
    estimate_seconds,
    missing_cells,
    run_grid,
)
from dcgst.bench.iceberg import PUBLISHED, iceberg_cells, iceberg_table
from dcgst.bench.pages import make_tables, render_page
from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.bench.results import Table
from dcgst.bench.suite import (
    FLOORS,
    GRAPHS,
    available_graphs,
    gap_table,
    group_table,
    regimes_of,
    suite_cells,
    summary_table,
)
from dcgst.bench.tuning import Search, labels_by_rate, tune
from dcgst.cli.options import make_method, split_list, split_pairs
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    RayOption,
    cell,
    check_file,
    check_folder,
    console,
    errors,
    print_json,
    progress,
    say,
    training_progress,
)
from dcgst.datasets import DATASETS, check_name, load
from dcgst.datasets.source import data_folders
from dcgst.errors import InputError, unknown_name
from dcgst.files import write_text
from dcgst.graph import Graph
from dcgst.methods import METHODS
from dcgst.methods.base import choices_of, parse_setting
from dcgst.train.device import resolve_device

MANY_COLUMNS = 10
"""Tables with more columns have narrower gaps, so that they fit into 80 characters."""


@dataclass
class Plan:
    """The cells of some experiments, and which of them have to be run."""

    cells: list[Cell]
    records: Records
    device: str
    requested_workers: int | None
    ray: str | None = None

    def __post_init__(self) -> None:
        target = resolve_device(self.device)
        self.gpu = target.type == "cuda"
        self.workers = self.requested_workers or default_num_workers(target)
        self.missing = missing_cells(self.cells, self.records)
        self.missing_keys = {cell.key for cell in self.missing}

    def seconds(self, cell: Cell) -> float:
        """Estimated time of a cell; timed cells run one at a time, others in parallel."""
        return estimate_seconds(cell, self.records, self.gpu) / (1 if cell.timed else self.workers)


def announce(plan: Plan, json: bool) -> None:
    """Print how many cells are done and how long the others will take; as JSON, the records."""
    done = [
        plan.records.by_key[cell.key] for cell in plan.cells if cell.key not in plan.missing_keys
    ]
    if json:
        for record in done:
            print_json(record)
        return
    if done:
        devices = ", ".join(sorted({str(record.get("device")) for record in done}))
        where = f"{plan.records.path} ({devices})"
        say(f"{len(done)} of {len(plan.cells)} cells from {where}.", errors)
        say("If graphs or methods have changed, delete the file to measure again.", errors)
    if plan.missing:
        seconds = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"{len(plan.missing)} cells to run, {plan.workers} in parallel, about "
            f"{describe_time(seconds)}.",
            errors,
        )


def run_missing(plan: Plan, title: str, json: bool, quiet: bool) -> list[CellResult]:
    """Run the missing cells with a progress bar; returns those that failed."""
    estimates = {cell.key: plan.seconds(cell) for cell in plan.missing}
    count, completed = 0, 0.0
    with progress(title, sum(estimates.values()), quiet or json) as bar:

        def report(result: CellResult) -> None:
            nonlocal count, completed
            count, completed = count + 1, completed + estimates[result.cell.key]
            if result.record is not None and json:
                print_json(result.record)
            bar.describe(f"{count} of {len(estimates)} cells, last {result.cell}")
            bar.advance_to(completed)

        try:
            results = run_grid(
                plan.missing,
                plan.records,
                device=plan.device,
                workers=plan.requested_workers,
                ray=plan.ray,
                report=report,
            )
        except KeyboardInterrupt:
            stored = len(plan.missing) - len(missing_cells(plan.missing, plan.records))
            say(
                f"Interrupted. {stored} of {len(plan.missing)} cells are in {plan.records.path}; "
                "run the same command to continue.",
                errors,
            )
            raise typer.Exit(130) from None
    for result in results:
        if result.first_error and result.record is not None:
            say(f"{result.cell} failed once ({result.first_error}) and was run again.", errors)
    return [result for result in results if result.record is None]


def report_failures(failed: Sequence[CellResult], plan: Plan) -> None:
    """Print the cells that failed, if any, and exit with code 1."""
    if failed:
        lines = "\n".join(f"  {f.cell}: {f.error}" for f in failed)
        say(f"{len(failed)} of {len(plan.missing)} cells failed; run again to retry:", errors)
        say(lines, errors)
        raise typer.Exit(1)


def describe_time(seconds: float) -> str:
    """Describe a time in seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_table(table: Table) -> None:
    """Print a table with its notes; text between double asterisks is bold."""
    wide = len(table.headers) > MANY_COLUMNS
    shown = RichTable(
        title=table.title,
        box=None,
        title_justify="left",
        collapse_padding=wide,
        pad_edge=not wide,
    )
    for header in table.headers:
        shown.add_column(header, overflow="fold")
    for row in table.rows:
        shown.add_row(*(re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/bold]", cell) for cell in row))
    console.print(shown)
    for note in table.notes:
        say(note)
    console.print()


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


PER_CLASS = 5
"""Labels per class if neither a rate nor a number is set."""


DatasetOption = Annotated[
    str | None,
    typer.Option(help="Datasets or paths of graphs, comma-separated.  [default: digits]"),
]
MethodNamesOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="Methods or package.module:Class, comma-separated.  [default: gcn,dcgst; in the "
        "suite ensemble,dcgst; in the protocol of IceBerg gcn,ensemble]",
    ),
]
SuiteOption = Annotated[
    bool,
    typer.Option(
        "--suite",
        help="The few-label suite: 19 graphs or those of --dataset, 10 labels per class drawn "
        "in three ways, without and with 20 validation labels, five plain methods and the "
        "majority class.",
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        metavar="iceberg",
        help="A published protocol: that of IceBerg (WWW 2025) with 1 to 5 labels and 30 "
        "validation labels per class on cora, citeseer and pubmed, with its results.",
    ),
]
PerClassOption = Annotated[int | None, typer.Option(help="Labels per class, instead of a rate.")]
SamplerOption = Annotated[
    str | None,
    typer.Option(
        help="uniform, degree, ppr-s, released, official, or package.module:function.  "
        "[default: ppr-s]"
    ),
]
RunsOption = Annotated[
    int | None, typer.Option(help="Number of runs.  [default: 10; in the suite 5]")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--settings", help="TOML file with a table of settings per method."),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting, for all methods that have it; may be repeated.",
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda or cuda:N.  [default: auto]")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, help="Suite, protocol: cells to run in parallel.  [default: one per core]"),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        help="Suite, protocol: file of records; cells in it are not run again.  [default: "
        "suite.jsonl, iceberg.jsonl]"
    ),
]


def bench_command(
    dataset: DatasetOption = None,
    method_names: MethodNamesOption = None,
    suite: SuiteOption = False,
    protocol: ProtocolOption = None,
    rate: Annotated[float | None, typer.Option(help="Labels as a share of all nodes.")] = None,
    per_class: PerClassOption = None,
    sampler: SamplerOption = None,
    runs: RunsOption = None,
    first_run: Annotated[int, typer.Option(help="Number of the first run.")] = 0,
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    config: ConfigOption = None,
    settings: SettingsOption = None,
    device: DeviceOption = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    results: ResultsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the accuracy of methods on datasets under one protocol."""
    kind = kind_of(suite, protocol)
    names = list(split_list(method_names or METHODS_BY_DEFAULT[kind]))
    runs = RUNS_BY_DEFAULT[kind] if runs is None else runs
    pairs = _check_pairs(split_pairs(settings or []), names)
    own = {name: _settings(name, config, pairs, device) for name in names}
    if kind:
        if rate is not None or per_class is not None or sampler or preset != "default":
            raise InputError(
                f"--{'suite' if suite else 'protocol'} has its own labels; leave out --rate, "
                "--per-class, --sampler, --preset"
            )
        for name in names:
            make_method(name, "default", own[name])  # raises before any computation
            own[name].pop("device", None)
        options = GridOptions(
            results or Path(f"{kind}.jsonl"), device or "auto", workers, ray, json, quiet
        )
        cells = make_cells(kind, dataset, names, runs, first_run, own)
        run_suite(cells, names, options) if suite else run_iceberg(cells, options)
        return
    if results is not None or workers is not None or ray is not None:
        raise InputError("--results, --workers and --ray belong to --suite and --protocol")
    sampler = sampler or "ppr-s"
    if sampler != "official" and rate is None and per_class is None:
        per_class = PER_CLASS
    labels = Labels(sampler, rate, per_class, runs, first_run)
    for name, chosen in _presets(names, preset, 1).items():  # raises before any computation
        make_method(name, chosen, own[name])
    records = [
        record
        for data in split_list(dataset or "digits")
        for record in _measure(data, labels, names, preset, own, json, quiet)
    ]
    if not json:
        _show_records(records)


def _measure(
    dataset: str,
    labels: Labels,
    names: list[str],
    preset: str,
    own: dict[str, dict[str, Any]],
    json: bool,
    quiet: bool,
) -> list[Record]:
    """Measure methods on one dataset, one after the other; as JSON, print each record."""
    graph = load(dataset)
    presets = _presets(names, preset, _labels_per_class(graph, labels))
    methods = {name: make_method(name, presets[name], own[name]) for name in names}
    records = []
    for name, method in methods.items():
        title = f"{name} on {graph.name}"
        trainings = labels.runs * method.replicas * method.count_trainings(validation=True)
        with training_progress(title, trainings, quiet or json) as callback:
            record = run_cell(graph, method, labels, [callback])
            record = dataclasses.replace(record, preset=presets[name])
        records.append(record)
        if json:
            print_json(record)
    return records


def _check_pairs(pairs: dict[str, str], names: list[str]) -> dict[str, str]:
    """Raise unless each setting belongs to one of the methods."""
    known = {field.name for name in names for field in dataclasses.fields(METHODS[name])}
    for key in pairs:
        if key not in known:
            raise unknown_name(f"setting of {', '.join(names)}", key, sorted(known))
    return pairs


def _settings(
    name: str, config: Path | None, pairs: dict[str, str], device: str | None
) -> dict[str, Any]:
    """Settings from the file, overridden by ``--set`` as far as the method has them."""
    settings = {} if config is None else _read_config(config, name)
    if device is not None:
        settings["device"] = device
    fields = {field.name: field.metadata for field in dataclasses.fields(METHODS[name])}
    for key, text in pairs.items():
        # A setting with a single choice, like the backbone of an MLP, cannot be set.
        if key in fields and len(fields[key]["choices"] or "any") > 1:
            settings[key] = parse_setting(METHODS[name], key, text)
    return settings


def _read_config(path: Path, name: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from error
    for key, value in content.items():
        if key not in METHODS:
            raise InputError(f"{path}: {key!r} is not a method; settings are in tables like [gcn]")
        if not isinstance(value, dict):
            raise InputError(f"{path}: {key} must be a table of settings: [{key}]")
    return dict(content.get(name, {}))


def _presets(names: list[str], preset: str, per_class: float) -> dict[str, str]:
    """The preset of each method; its default if only other methods have that preset."""
    found = {name: METHODS[name].nearest_preset(preset, per_class) for name in names}
    known = [name for name in names if found[name] in METHODS[name].presets]
    return {name: found[name] if name in known or not known else "default" for name in names}


def _labels_per_class(graph: Graph, labels: Labels) -> float:
    """Requested labels per class, on average."""
    if labels.per_class is not None:
        return labels.per_class
    if labels.rate is not None:
        return labels.rate * graph.num_nodes / graph.num_classes
    return float(graph.masks["train"].sum()) / graph.num_classes if "train" in graph.masks else 1.0


def _title(record: Record) -> str:
    """The method, with its backbone and preset if they are not the default."""
    others = []
    default = getattr(METHODS[record.method], "backbone", None)
    if record.backbone not in (None, default):
        others.append(str(record.backbone))
    if record.preset != "default":
        others.append(record.preset)
    return f"{record.method} ({', '.join(others)})" if others else record.method


def _show_records(records: list[Record]) -> None:
    headers = ("dataset", "method", "labels", "accuracy %", "CMD before", "after", "s")
    table = RichTable(*headers, box=None)
    for column in table.columns[3:]:
        column.justify = "right"
    for r in records:
        dataset = r.dataset if r.official else f"{r.dataset} (substitute features)"
        table.add_row(
            cell(dataset),
            cell(_title(r)),
            f"{r.per_class}/class" if r.per_class else "uneven",
            f"{r.mean:.1f} ± {r.std:.1f}",
            f"{r.cmd_before:.3f}",
            f"{r.cmd_after:.3f}",
            f"{r.seconds:.1f}",
        )
    console.print(table)
    first = records[0]
    runs = "1 run" if first.runs == 1 else f"{first.runs} runs"
    say(
        f"\nMean and standard deviation over {runs} with {first.sampler} labels. CMD: shift "
        "between labeled nodes and the pool, before and after pseudo-labels, in each method's own "
        "representation.",
        wrap=True,
    )


NAMES = ", ".join(EXPERIMENTS)


WhatArgument = Annotated[
    list[str] | None, typer.Argument(help=f"Any of {NAMES}; or all.", show_default=False)
]
OnlyOption = Annotated[
    str | None,
    typer.Option(help="Comma-separated subset of the experiments.", show_default=False),
]
ReproduceWorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Cells to run in parallel.  [default: one per core]")
]
ReproduceResultsOption = Annotated[
    Path, typer.Option(help="File of records; cells in it are not run again.")
]
PagePathOption = Annotated[
    Path | None, typer.Option("--page", help="Also write all tables as a Markdown page.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="List the cells and their estimated time.")
]


def reproduce_command(
    what: WhatArgument = None,
    only: OnlyOption = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each cell; the paper has 10.")] = 10,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    workers: ReproduceWorkersOption = None,
    ray: RayOption = None,
    results: ReproduceResultsOption = Path("reproduction/records.jsonl"),
    figures: Annotated[Path, typer.Option(help="Folder for the figures (SVG and PNG).")] = Path(
        "reproduction/figures"
    ),
    page_path: PagePathOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the experiments of the paper and compare with the published results."""
    experiments = _select(what, only)
    records = Records(results)
    check_file(results)
    check_folder(figures)
    if page_path is not None:
        check_file(page_path)
    if any(e.name in FIGURES for e in experiments):
        import_matplotlib()
    plan = Plan(cells_of(experiments, runs), records, device, workers, ray)
    if dry_run:
        _list(plan, json)
        return
    announce(plan, json)
    failed = run_missing(plan, "reproduce", json, quiet) if plan.missing else []
    if not json:
        for table in make_tables(experiments, records, runs):
            show_table(table)
        if [experiment.name for experiment in experiments] == ["claims"]:
            say(claim_sections(records, runs))
    for experiment in experiments:
        if experiment.name in FIGURES:
            files = draw(experiment.name, records, figures, runs)
            if not json:
                where = ", ".join(map(str, files)) or "not drawn, because cells are missing"
                say(f"{experiment.name}: {where}")
    if page_path is not None:
        write_text(page_path, render_page(records, runs))
    report_failures(failed, plan)


def _select(what: list[str] | None, only: str | None) -> list[Experiment]:
    """The requested experiments; ``all`` excludes ogbn-arxiv if it is not available."""
    selected = select_experiments(what or ["all"])
    if only is not None:
        some = select_experiments(list(split_list(only)))
        selected = [e for e in selected if e in some]
    if not selected:
        raise InputError(f"no experiment selected; choose from: all, {NAMES}")
    arxiv = EXPERIMENTS["arxiv"]
    requested = "arxiv" in (what or []) or "arxiv" in (only or "")
    if arxiv in selected and not requested and not DATASETS["ogbn-arxiv"].available():
        say("ogbn-arxiv is not available and skipped; see dcgst reproduce arxiv.", errors)
        selected.remove(arxiv)
    return selected


def _list(plan: Plan, json: bool) -> None:
    """List all cells with their estimated time."""
    for own in plan.cells:
        todo = own.key in plan.missing_keys
        seconds = estimate_seconds(own, plan.records, plan.gpu) if todo else 0.0
        if json:
            print_json({"cell": str(own), "done": not todo, "seconds": round(seconds, 1)})
        else:
            say(f"{own}: {f'about {describe_time(seconds)}' if todo else 'done'}")
    if not json:
        total = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"\n{len(plan.missing)} of {len(plan.cells)} cells to run, about "
            f"{describe_time(total)} with {plan.workers} in parallel."
        )


RateOption = Annotated[
    str | None,
    typer.Option(help="Labels as a share of all nodes; comma-separated to tune on several."),
]
TunePerClassOption = Annotated[
    int | None, typer.Option(help="Labels per class, instead of a rate.")
]
StudiesOption = Annotated[
    Path, typer.Option(help="Folder of studies; an existing study is continued.")
]
PlotOption = Annotated[
    bool, typer.Option("--plot", help="Draw the trials, and which settings mattered.")
]


def tune_command(
    method: Annotated[str, typer.Option(help="The method, such as st or dcgst.")] = "dcgst",
    dataset: Annotated[str, typer.Option(help="Dataset or path of a graph.")] = "digits",
    rate: RateOption = None,
    per_class: TunePerClassOption = None,
    sampler: Annotated[str, typer.Option(help="uniform, degree, ppr-s or released.")] = "ppr-s",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each trial.")] = 5,
    first_run: Annotated[int, typer.Option(help="Number of the first run, at least 10.")] = 10,
    preset: Annotated[str, typer.Option(help="Settings that are not searched.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Trials to run in parallel.")] = 1,
    ray: RayOption = None,
    studies: StudiesOption = Path("results/studies"),
    plot: PlotOption = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for better settings of a method.

    The first trial is the preset, a few are random, and the others are suggested by Optuna's TPE.
    They are compared by accuracy on the validation nodes of all runs.
    """
    rates = tuple(_number(text) for text in split_list(rate))
    if not rates and per_class is None:
        per_class = 5
    labels = labels_by_rate(Labels(sampler, None, per_class, runs, first_run), rates)
    search = Search(dataset, method, labels, preset, device)
    search.check()
    graph = load(dataset)
    path = studies / graph.name / search.file_name
    check_file(path)
    with progress(f"{method} on {graph.name}", trials, quiet or json) as bar:

        def report(count: int, score: float) -> None:
            bar.describe(f"{count} trials, last {score:.1f}%")
            bar.advance_to(count)

        outcome = tune(search, path, trials, workers, report, ray)
    figures = draw_study(outcome, path.with_suffix("")) if plot else []
    if json:
        print_json(outcome)
        return
    _show_study(search, outcome)
    say(f"\nAll trials: {path.with_suffix('.json')}")
    for figure in figures:
        say(f"Figure: {figure}")


def _show_study(search: Search, outcome: dict[str, Any]) -> None:
    """Print the best trial, how to repeat it, and what mattered."""
    labels, best = search.labels[0], outcome["best"]
    say(
        f"{len(outcome['trials'])} trials of {search.method} on {search.dataset}, runs "
        f"{labels.first_run} to {labels.first_run + labels.runs - 1}.\nBest: {best['score']:.1f}% "
        f"on the validation nodes; {search.preset}: {outcome['preset_score']:.1f}%."
    )
    settings = " ".join(f"--set {key}={value}" for key, value in best["settings"].items())
    rate = labels.rate
    amount = f"--per-class {labels.per_class}" if rate is None else f"--rate {rate}"
    say(
        f"dcgst bench --dataset {search.dataset} --method {search.method} --preset {search.preset} "
        f"{amount} --sampler {labels.sampler} {settings}"
    )
    if outcome["importances"]:
        shares = [f"{name} {share:.0%}" for name, share in outcome["importances"].items()]
        say(f"\nShare of the variance that a setting explains: {', '.join(shares)}", wrap=True)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--rate must be numbers like 0.01,0.02; got {text!r}") from None


COUNTS = ("nodes", "edges", "features", "classes")


def datasets_command(json: JsonOption = False) -> None:
    """List the datasets.

    Shows their sizes and whether their files are on this machine.
    """
    table = RichTable("name", *COUNTS, "available", "origin", box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:5]:
        column.justify = "right"
    for name in DATASETS:
        dataset = DATASETS[name]
        available = dataset.available()
        counts = {count: getattr(dataset, count) for count in COUNTS}
        if json:
            about = {"available": available, "origin": dataset.origin}
            print_json({"name": dataset.name, **counts, **about})
        sizes = ["–" if count is None else f"{count:,}" for count in counts.values()]
        table.add_row(dataset.name, *sizes, "yes" if available else "no", dataset.origin)
    if not json:
        console.print(table)
        folders = ", then ".join(str(folder) for folder in data_folders())
        say(f"\nFiles are searched in {folders}. Set DCGST_DATA to use your own folder.")


def methods_command(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    json: JsonOption = False,
) -> None:
    """List the methods, or the settings of one."""
    if name is None:
        _list_methods(json)
    else:
        _list_settings(name, json)


def _list_methods(json: bool) -> None:
    table = RichTable("name", "what it does", "presets", box=None)
    for name in METHODS:
        method = METHODS[name]
        line = (inspect.getdoc(method) or "").splitlines()[0]
        if json:
            print_json({"name": name, "about": line, "presets": list(method.presets)})
        presets = dict.fromkeys(re.sub(r"/\d+$", "/LABELS", preset) for preset in method.presets)
        table.add_row(name, line, ", ".join(presets))
    if not json:
        console.print(table)
        say("\nSettings of a method: dcgst methods NAME")


def _list_settings(name: str, json: bool) -> None:
    fields = dataclasses.fields(METHODS[name])
    if json:
        for field in fields:
            about = {k: v for k, v in field.metadata.items() if k != "registry"}
            about["choices"] = choices_of(field)
            print_json({"setting": field.name, "default": field.default, **about})
        return
    ordered = sorted(fields, key=lambda field: field.metadata["group"] != "")
    for group, members in groupby(ordered, key=lambda field: str(field.metadata["group"])):
        if group:
            say(f"\n{group[0].upper()}{group[1:]}:")
        console.print(_settings_table(list(members)))
    for preset, settings in METHODS[name].presets.items():
        if settings:
            pairs = (
                f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items()
            )
            say(f"\n{preset}: " + ", ".join(pairs))


def _settings_table(fields: list[dataclasses.Field[Any]]) -> RichTable:
    table = RichTable("setting", "default", "description", box=None)
    for field in fields:
        symbol, doc, choices = field.metadata["symbol"], field.metadata["doc"], choices_of(field)
        about = f"{doc} ({symbol})" if symbol else doc
        if choices:
            about += f" [{' | '.join(choices)}]"
        table.add_row(field.name, str(field.default), cell(about))
    return table
