"""``dcgst fit``: predict the classes of all nodes of your own graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.fit_output import AuditOption, LabelsOption, PriorOption, fit_and_show
from dcgst.cli.graph_options import with_graph_options
from dcgst.cli.output import JsonOption, QuietOption, RayOption, SpreadsheetOption, check_folder
from dcgst.cli.settings import make_method, split_pairs
from dcgst.io import Input
from dcgst.methods import DEFAULT_METHOD, METHODS, Method
from dcgst.methods.core.params import parse_setting
from dcgst.runs import REPLICAS, default_replicas


@with_graph_options
def command(
    read_graph: Callable[[], Input],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.")] = Path("run"),
    name: Annotated[
        str,
        typer.Option(
            "--method",
            help="See dcgst methods; or package.module:Class. Cheap ones take seconds: em, gp, lp, "
            "mlp, sign.",
        ),
    ] = DEFAULT_METHOD,
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Fits to average.  [default: {REPLICAS}; 1 from a million nodes on]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    prior: PriorOption = None,
    labels: LabelsOption = None,
    audit: AuditOption = None,
    validate: Annotated[
        float, typer.Option(help="Share of the labels to use for validation, not training.")
    ] = 0.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted fit.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing run.")
    ] = False,
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
    fit_and_show(
        data,
        out,
        model,
        labels=labels or [],
        audit=audit or [],
        validate=validate,
        resume=resume,
        overwrite=overwrite,
        spreadsheet=spreadsheet,
        ray=ray,
        report=report,
        json=json,
        quiet=quiet,
    )


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
