"""``dcgst label``: a local web page to label nodes in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.output import check_table, say, say_next
from dcgst.cli.run_options import RunArgument
from dcgst.errors import InputError
from dcgst.files import next_folder
from dcgst.runs import open_run


def command(
    folder: RunArgument,
    labels: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table of labels.  [default: RUN-labels.csv]"),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random nodes.")] = 0,
) -> None:
    """Label nodes in a page in your browser.

    Every label is stored at once. The page opens again where it stopped.
    """
    from filelock import FileLock, Timeout

    try:
        from dcgst.label.server import serve
    except ImportError as error:
        raise InputError("the labeling page requires: pip install 'dcgst[label]'") from error
    from dcgst.label.journal import Journal
    from dcgst.label.session import Session

    run = open_run(folder)
    path = labels or folder.resolve().with_name(f"{folder.resolve().name}-labels.csv")
    check_table(path)
    events, locked = (path.with_name(f"{path.name}.{end}") for end in ("jsonl", "lock"))
    if path.exists() and not events.exists():
        raise InputError(f"{path} exists and is not of dcgst label; choose another file with -o")
    lock = FileLock(locked, timeout=0)
    try:
        with lock:
            session = Session(run, Journal(events), path, seed)
            known = len(session.journal.state.classes)
            if known:
                say(f"{known} labels in {events}; continuing.")
            try:
                serve(session, port=port, browser=browser, ready=_announce)
            finally:
                session.refit.stop()
                written = session.write_export()
            if written:
                count = len(session.journal.state.classes)
                say(f"\n{count} labels: {written}")
                if session.run is not run:
                    latest = session.run.folder
                    say(f"Latest fit: {latest}")
                    say_next("compare", folder, latest)
                free = folder.with_name(next_folder(folder.resolve()).name)
                say_next("refit", folder, "--labels", written, "-o", free)
            else:
                say("\nNo labels.")
    except Timeout as error:
        raise InputError(
            f"another dcgst label is writing {events}; use its page, or another file with -o"
        ) from error


def _announce(address: str) -> None:
    say(f"Open {address}")
    say("Press Ctrl-C to end.")
