"""Print the modules of dcgst in which a command executes a function, in order.

python tools/walk.py fit papers.csv papers_edges.csv --label topic -o run --overwrite

python tools/walk.py --update writes those of three methods into docs/architecture.md.

All modules are imported before, because an import also executes functions.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import dcgst
from dcgst.cli import main
from dcgst.files import write_text

ROOT = Path(__file__).parents[1]


def walk(arguments: Sequence[str]) -> list[str]:
    """The modules in which ``dcgst ARGUMENTS`` executes a function, by the first call."""
    found: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("dcgst."):
            found.setdefault(name)

    for module in pkgutil.walk_packages(dcgst.__path__, "dcgst."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def run(arguments: Sequence[str]) -> None:
    """Run a command in this process, without its output."""
    argv, sys.argv = sys.argv, ["dcgst", *arguments]
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main()
    except SystemExit as stop:
        if stop.code:
            raise
    finally:
        sys.argv = argv


def walks() -> str:
    """The lists in docs/architecture.md, one per method."""
    data = ROOT / "examples" / "data"
    tables = [str(data / "papers.csv"), str(data / "papers_edges.csv"), "--label", "topic"]
    lines = []
    for method in ("gcn", "dcgst", "ensemble"):
        with TemporaryDirectory() as folder:
            options = ["--method", method, "--no-report", "-o", f"{folder}/run", "--overwrite"]
            lines.append(f"- `{method}`: {describe(walk(['fit', *tables, *options]))}")
    return "\n".join(lines)


def describe(modules: Sequence[str]) -> str:
    """How many modules, and their names."""
    names = ", ".join(name.removeprefix("dcgst.") for name in modules)
    return f"{len(modules)} modules: {names}"


def update() -> None:
    """Write the lists into docs/architecture.md."""
    page = ROOT / "docs" / "architecture.md"
    begin, end = "<!-- walks -->\n", "<!-- end of walks -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    write_text(page, f"{before}{begin}{walks()}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        print(describe(walk(sys.argv[1:])))
