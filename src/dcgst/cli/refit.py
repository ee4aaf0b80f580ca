"""``dcgst refit``: fit a run again, with more labels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.fit_output import AuditOption, LabelsOption, PriorOption, fit_and_show
from dcgst.cli.output import JsonOption, QuietOption, check_folder, errors, say
from dcgst.cli.run_options import RunArgument
from dcgst.cli.settings import split_pairs
from dcgst.errors import InputError
from dcgst.methods.core.params import parse_setting
from dcgst.runs import open_run


def command(
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
    fit_and_show(
        run,
        out,
        model,
        labels=labels or [],
        audit=audit or [],
        resume=resume,
        overwrite=overwrite,
        report=report,
        json=json,
        quiet=quiet,
    )
    if not (json or quiet):
        say(f"Compare: {shlex.join(['dcgst', 'compare', str(folder), str(out)])}", errors)
