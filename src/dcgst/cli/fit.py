"""``dcgst fit`` and ``dcgst refit``: predict the classes of all nodes of your own graph."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dcgst.cli.options import RunArgument, make_method, split_pairs, with_graph_options
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    RayOption,
    SpreadsheetOption,
    cell,
    check_folder,
    console,
    errors,
    print_json,
    progress,
    say,
    training_progress,
)
from dcgst.errors import InputError
from dcgst.insight import diagnose_run, write_report
from dcgst.insight.diagnosis import Diagnosis, shown_accuracy
from dcgst.methods import DEFAULT_METHOD, METHODS, Method
from dcgst.methods.base import parse_setting
from dcgst.methods.relations import verdict
from dcgst.runs import REPLICAS, Run, default_replicas, fit, open_run
from dcgst.runs import predictions as columns
from dcgst.runs.assessment import prediction_warnings
from dcgst.runs.folder import stored_steps
from dcgst.runs.predictions import GIVEN, count_classes, count_sources
from dcgst.tables import Input, add_labels

MOST_CLASSES = 30
"""Maximum number of classes to print."""

MOST_UNUSED = 10
"""Maximum number of unused columns to print."""

LabelsOption = Annotated[
    list[Path] | None,
    typer.Option("--labels", help="Table of ids and classes to add; may be repeated."),
]
AuditOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--audit",
        help="Table of ids and classes of randomly chosen nodes (dcgst audit); may be repeated.",
    ),
]

PriorOption = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS=SHARE,…",
        help="Known class shares of the nodes to predict: fraud=0.06,ok=0.94.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How to fit, beside input, folder and method; see ``dcgst fit --help``."""

    labels: Sequence[Path] = ()
    audit: Sequence[Path] = ()
    validate: float = 0.0
    resume: bool = False
    overwrite: bool = False
    spreadsheet: bool = False
    ray: str | None = None
    report: bool = True
    json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether nothing but the result is printed."""
        return self.json or self.quiet


def fit_and_show(source: Input | Run, out: Path, model: Method, options: FitOptions) -> None:
    """Fit with a progress bar, write the report, and print what was found."""
    known = source.as_input() if isinstance(source, Run) else source
    data = add_labels(known, options.labels, options.audit)
    for note in data.notes[len(known.notes) :]:
        if note.startswith("Warning") or not options.silent:
            say(f"  {note}", errors)
    run = _fit(data, out, model, options)
    with progress("report", 1.0, options.silent):
        diagnosis = diagnose_run(run)
        page = write_report(run, diagnosis=diagnosis) if options.report else None
    if options.json:
        print_json(_facts(run, diagnosis))
        return
    _show_run(run, diagnosis)
    _show_unused(run)
    say(f"\nPredictions: {run.predictions_file}")
    if page is not None:
        say(f"Report: {page}")
    if run.audited:
        say(f"Next: dcgst suggest {out} -n 10, dcgst explain {out} ID")
    else:
        say(f"Next: dcgst audit {out} -n 30, dcgst suggest {out} -n 10, dcgst explain {out} ID")


def _fit(data: Input, out: Path, model: Method, options: FitOptions) -> Run:
    """Fit with a progress bar."""
    validation = options.validate > 0 or "val" in data.graph.masks
    trainings = model.count_trainings(validation) * model.replicas
    kept = stored_steps(out) if options.resume else None
    if kept and not options.silent:
        say(f"  {out} holds {kept} of an interrupted fit", errors)
    elif options.resume and not out.exists() and not options.silent:
        say(f"  there is no interrupted fit in {out}: a new one starts", errors)
    try:
        with training_progress(model.name, trainings, options.silent) as callback:
            return fit(
                data,
                out,
                model,
                validate=options.validate,
                resume=options.resume,
                overwrite=options.overwrite,
                spreadsheet=options.spreadsheet,
                callbacks=[callback],
                ray=options.ray,
            )
    except KeyboardInterrupt:
        say(f"Interrupted. Repeat the command with --resume to continue in {out}.", errors)
        raise typer.Exit(130) from None


def _show_unused(run: Run) -> None:
    """Name the columns that are not features."""
    unused = [note for note in run.info["notes"] if "not used: " in note]
    if unused:
        more = f", {len(unused)} in all" if len(unused) > MOST_UNUSED else ""
        say(f"\nColumns that are not used{more}:")
    for note in unused[:MOST_UNUSED]:
        say(f"  {note.removeprefix('feature ')}", wrap=True)


def _facts(run: Run, diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "folder": str(run.folder),
        "method": run.info["method"],
        "nodes": run.graph.num_nodes,
        "classes": list(run.graph.class_names),
        **count_sources(run.result),
        "accuracy": shown_accuracy(run, diagnosis).to_json(),
        "estimate": run.estimate.to_json() if run.estimate else None,
        "calibration": run.info["calibration"],
        "member_weights": run.info["member_weights"],
        "expectation": run.info["expectation"],
        "relations": run.info["relations"],
        "columns_used": run.info.get("columns_used", []),
        "warnings": [*diagnosis.warnings, *prediction_warnings(run)],
        "seconds": run.info["seconds"],
    }


def _show_run(run: Run, diagnosis: Diagnosis) -> None:
    """Print the accuracy, and the number of nodes and the mean probability of each class."""
    say(f"{shown_accuracy(run, diagnosis).text}\n", wrap=True)
    estimated = ["share (95% interval)"] if run.estimate else []
    table = Table("class", "nodes", "given", "mean probability", *estimated, box=None)
    pairs = list(zip(run.graph.class_names, count_classes(run.result), strict=True))
    for name, own in pairs[:MOST_CLASSES]:
        mean = "–" if own.mean_probability is None else f"{own.mean_probability:.0%}"
        share = [run.estimate.shares[name].text] if run.estimate else []
        table.add_row(cell(name), str(own.nodes), str(own.sources[GIVEN]), mean, *share)
    console.print(table)
    if run.graph.num_classes > MOST_CLASSES:
        say(f"… and {run.graph.num_classes - MOST_CLASSES} more classes")
    if run.relations:
        say(f"{verdict(run.relations)}.", wrap=True)
    for relation in run.relations:
        say(f"  {relation.describe()}", wrap=True)
    if described := columns.verdict(run.columns_used):
        say(f"{described}.", wrap=True)
    say(f"Calibration: {run.info['calibration']['description']}.", wrap=True)
    others = "Without the randomly chosen ones: " if run.audited else ""
    say(f"{others}{diagnosis.headline}", wrap=True)
    if diagnosis.biased_columns:
        say(f"{diagnosis.biased_columns}.", wrap=True)
    for line in (*diagnosis.warnings, *prediction_warnings(run)):
        say(f"Warning: {line}.", wrap=True)


NameOption = Annotated[
    str,
    typer.Option(
        "--method",
        help="See dcgst methods; or package.module:Class. Cheap ones take seconds: em, gp, lp, "
        "mlp, sign.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
]
ReplicasOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"Fits to average.  [default: {REPLICAS}; 1 from a million nodes on]"),
]
ValidateOption = Annotated[
    float, typer.Option(help="Share of the labels to use for validation, not training.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")]


@with_graph_options
def fit_command(
    read_graph: Callable[[], Input],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.")] = Path("run"),
    name: NameOption = DEFAULT_METHOD,
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    settings: SettingsOption = None,
    replicas: ReplicasOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    prior: PriorOption = None,
    labels: LabelsOption = None,
    audit: AuditOption = None,
    validate: ValidateOption = 0.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted fit.")] = False,
    overwrite: OverwriteOption = False,
    report: Annotated[bool, typer.Option(help="Write the report.")] = True,
    spreadsheet: SpreadsheetOption = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    ray: RayOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from the labels in a table and predict all other nodes."""
    pairs = [*(settings or []), *([] if prior is None else [f"prior={prior}"])]
    model = _method(name, preset, pairs, replicas, seed, device)
    check_folder(out)
    data = read_graph()
    if replicas is None and "replicas" not in split_pairs(pairs):
        model.set_params(replicas=min(model.replicas, default_replicas(data.graph)))
    options = FitOptions(
        labels=labels or (),
        audit=audit or (),
        validate=validate,
        resume=resume,
        overwrite=overwrite,
        spreadsheet=spreadsheet,
        ray=ray,
        report=report,
        json=json,
        quiet=quiet,
    )
    fit_and_show(data, out, model, options)


def _method(
    name: str, preset: str, pairs: list[str], replicas: int | None, seed: int, device: str
) -> Method:
    kind = METHODS[name]
    values = {"seed": seed, "device": device, "replicas": 1 if kind.deterministic else REPLICAS}
    if replicas is not None:
        values["replicas"] = replicas
    for key, text in split_pairs(pairs).items():
        values[key] = parse_setting(kind, key, text)
    return make_method(name, preset, values)


def refit_command(
    folder: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.")],
    labels: LabelsOption = None,
    audit: AuditOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
    ] = None,
    prior: PriorOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted fit.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing run.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write the report.")] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a run again, with more labels.

    Graph, labels, method and settings are those of the run.
    """
    check_folder(out)
    if out.resolve() == folder.resolve():
        raise InputError("the new run needs another folder than the old one; choose one with -o")
    if not (labels or audit or settings or prior):
        raise InputError(
            "nothing has changed; add labels with --labels or --audit, or settings with --set"
        )
    run = open_run(folder)
    model = run.new_method()
    model.set_params(device=device)
    pairs = [*(settings or []), *([] if prior is None else [f"prior={prior}"])]
    for key, text in split_pairs(pairs).items():
        model.set_params(**{key: parse_setting(type(model), key, text)})
    options = FitOptions(
        labels=labels or (),
        audit=audit or (),
        resume=resume,
        overwrite=overwrite,
        report=report,
        json=json,
        quiet=quiet,
    )
    fit_and_show(run, out, model, options)
    if not (json or quiet):
        say(f"Compare: {shlex.join(['dcgst', 'compare', str(folder), str(out)])}", errors)
