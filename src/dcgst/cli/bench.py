"""``dcgst bench``: methods on data sets, several runs each."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dcgst.bench.protocol import Labels, Record, run_cell
from dcgst.cli.output import JsonOption, QuietOption, console, print_json, progress
from dcgst.datasets import load
from dcgst.errors import InputError, unknown
from dcgst.graph import Graph
from dcgst.methods import METHODS, Method, method
from dcgst.methods.params import check, parse


def bench(
    dataset: Annotated[str, typer.Option(help="Data sets, comma-separated.")] = "digits",
    method_names: Annotated[
        str, typer.Option("--method", help="Methods, comma-separated.")
    ] = "gcn,dcgst",
    rate: Annotated[float | None, typer.Option(help="Labels as a share of all nodes.")] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Labels per class, instead of a rate.")
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="uniform, degree, ppr-s, released or official.")
    ] = "ppr-s",
    runs: Annotated[int, typer.Option(help="How many runs.")] = 10,
    first_run: Annotated[int, typer.Option(help="Number of the first run.")] = 0,
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with a table of settings per method.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, for all methods that have it; may be repeated.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N.  [default: auto]")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the accuracy of methods on data sets, under one protocol."""
    names = [name.strip().lower() for name in method_names.split(",") if name.strip()]
    for name in names:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    if sampler != "official" and rate is None and per_class is None:
        per_class = 5
    labels = Labels(sampler, rate, per_class, runs, first_run)
    pairs = _pairs(settings or [], names)
    own = {name: _settings(name, config, pairs, device) for name in names}
    for name, chosen in _presets(names, preset, 1).items():  # mistakes are told before all work
        _make(name, chosen, own[name])
    records: list[Record] = []
    for data in dataset.split(","):
        graph = load(data.strip())
        presets = _presets(names, preset, _per_class(graph, labels))
        methods = {name: _make(name, presets[name], own[name]) for name in names}
        for name, instance in methods.items():
            title = f"{name} on {graph.name}"
            trainings = runs * instance.replicas * instance.trainings
            with progress(title, trainings, quiet or json) as callback:
                record = run_cell(graph, instance, labels, presets[name], [callback])
            records.append(record)
            if json:
                print_json(record)
    if not json:
        _show(records)


def _pairs(settings: list[str], names: list[str]) -> dict[str, str]:
    """``--set`` as keys and texts; each must be a setting of one of the methods."""
    pairs = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(f"--set takes KEY=VALUE, got {setting!r}")
        known = {field.name for name in names for field in dataclasses.fields(METHODS[name])}
        if key not in known:
            raise unknown(f"setting of {', '.join(names)}", key, sorted(known))
        pairs[key] = text
    return pairs


def _settings(
    name: str, config: Path | None, pairs: dict[str, str], device: str | None
) -> dict[str, Any]:
    """The file's table of that method, then ``--set`` as far as the method has such settings."""
    settings = {} if config is None else _table(config, name)
    if device is not None:
        settings["device"] = device
    fields = {field.name: field.metadata for field in dataclasses.fields(METHODS[name])}
    for key, text in pairs.items():
        # What has one choice only, like the backbone of an MLP, is not to be set.
        if key in fields and len(fields[key]["choices"] or "some") > 1:
            settings[key] = parse(METHODS[name], key, text)
    return settings


def _table(path: Path, name: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    for key, value in content.items():
        if key not in METHODS:
            raise InputError(f"{path}: {key!r} is no method; settings stand in tables like [gcn]")
        if not isinstance(value, dict):
            raise InputError(f"{path}: {key} must be a table of settings: [{key}]")
    return dict(content.get(name, {}))


def _presets(names: list[str], preset: str, per_class: float) -> dict[str, str]:
    """Each method's preset of that name; its default if it has none but another method has."""
    found = {name: METHODS[name].nearest_preset(preset, per_class) for name in names}
    known = [name for name in names if found[name] in METHODS[name].presets]
    return {name: found[name] if name in known or not known else "default" for name in names}


def _make(name: str, preset: str, settings: dict[str, Any]) -> Method:
    """A method whose settings have been checked."""
    instance = method(name, preset, **settings)
    try:
        check(instance)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return instance


def _per_class(graph: Graph, labels: Labels) -> float:
    """Labels per class on average, as they are asked for."""
    if labels.per_class is not None:
        return labels.per_class
    if labels.rate is not None:
        return labels.rate * graph.num_nodes / graph.num_classes
    return float(graph.masks["train"].sum()) / graph.num_classes if "train" in graph.masks else 1.0


def _title(record: Record) -> str:
    """The method, with its backbone and preset where they are not the usual ones."""
    usual = (None, getattr(METHODS[record.method], "backbone", None))
    others = [] if record.backbone in usual else [str(record.backbone)]
    others += [] if record.preset == "default" else [record.preset]
    return f"{record.method} ({', '.join(others)})" if others else record.method


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show(records: list[Record]) -> None:
    table = Table(
        "data set", "method", "labels", "accuracy %", "CMD before", "after", "s", box=None
    )
    for column in table.columns[3:]:
        column.justify = "right"
    for r in records:
        table.add_row(
            r.dataset if r.official else f"{r.dataset} (substitute features)",
            _title(r),
            f"{r.per_class}/class" if r.per_class else "uneven",
            f"{r.mean:.1f} ± {r.std:.1f}",
            f"{r.cmd_before:.3f}",
            f"{r.cmd_after:.3f}",
            f"{r.seconds:.1f}",
        )
    console.print(table)
    console.print(
        f"\nMean and standard deviation over {_count(records[0].runs, 'run')} with "
        f"{records[0].sampler} labels. CMD: how far "
        "labeled nodes are from the rest, before and after pseudo-labels, as each method sees "
        "them; near zero once all are labeled."
    )
