"""``dcgst bench``: accuracy of methods on datasets, several runs each."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.cli.bench_cells import (
    METHODS_BY_DEFAULT,
    RUNS_BY_DEFAULT,
    GridOptions,
    kind_of,
    make_cells,
    run_iceberg,
    run_suite,
)
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    RayOption,
    cell,
    console,
    print_json,
    say,
    training_progress,
)
from dcgst.cli.settings import make_method, split_list, split_pairs
from dcgst.datasets import load
from dcgst.errors import InputError, unknown_name
from dcgst.graph import Graph
from dcgst.methods import METHODS
from dcgst.methods.core.params import parse_setting

PER_CLASS = 5
"""Labels per class if neither a rate nor a number is set."""


def command(
    dataset: Annotated[
        str | None,
        typer.Option(help="Datasets or paths of graphs, comma-separated.  [default: digits]"),
    ] = None,
    method_names: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="Methods or package.module:Class, comma-separated.  [default: gcn,dcgst; in the "
            "suite ensemble,dcgst; in the protocol of IceBerg gcn,ensemble]",
        ),
    ] = None,
    suite: Annotated[
        bool,
        typer.Option(
            "--suite",
            help="The few-label suite: 19 graphs or those of --dataset, 10 labels per class drawn "
            "in three ways, without and with 20 validation labels, five plain methods and the "
            "majority class.",
        ),
    ] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="iceberg",
            help="A published protocol: that of IceBerg (WWW 2025) with 1 to 5 labels and 30 "
            "validation labels per class on cora, citeseer and pubmed, with its results.",
        ),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Labels as a share of all nodes.")] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Labels per class, instead of a rate.")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="uniform, degree, ppr-s, released, official, or package.module:function.  "
            "[default: ppr-s]"
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of runs.  [default: 10; in the suite 5]")
    ] = None,
    first_run: Annotated[int, typer.Option(help="Number of the first run.")] = 0,
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    config: Annotated[
        Path | None,
        typer.Option("--settings", help="TOML file with a table of settings per method."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting, for all methods that have it; may be repeated.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N.  [default: auto]")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Suite, protocol: cells to run in parallel.  [default: one per core]"
        ),
    ] = None,
    ray: RayOption = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Suite, protocol: file of records; cells in it are not run again.  [default: "
            "suite.jsonl, iceberg.jsonl]"
        ),
    ] = None,
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
        _show(records)


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
            record = run_cell(graph, method, labels, presets[name], [callback])
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


def _show(records: list[Record]) -> None:
    table = Table("dataset", "method", "labels", "accuracy %", "CMD before", "after", "s", box=None)
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
