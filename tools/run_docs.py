"""Run the commands and Python code in the documentation, and compare or update their outputs.

    python tools/run_docs.py docs/howto.md            compare
    python tools/run_docs.py --update docs/howto.md   write the actual outputs into the page

On a page, code runs from top to bottom in one temporary folder that holds a copy of ``examples/``:

- In a block ``console``, each line ``$ command`` runs, and the lines below it are its output.
- A block ``python`` runs if a block ``text`` follows it, which holds what it prints. All Python
  blocks of a page share their variables. A block ``python`` without an output must at least run.
- A comment ``<!-- run: command -->`` runs without being shown; it must succeed.
- A comment ``<!-- file: NAME -->`` stores the next block in a file.

Blocks of other languages, and of ``bash``, are not run.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 100
BLOCK = re.compile(
    r"^```(?P<language>\w+)\n(?P<body>.*?)^```$|^<!-- (?P<kind>run|file): (?P<hidden>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block or a hidden command of a page."""

    language: str
    body: str
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    """All blocks of a Markdown page; a comment has the language ``run`` or ``file``."""
    return [
        Block(match["kind"], match["hidden"], *match.span("hidden"))
        if match["language"] is None
        else Block(match["language"], match["body"], *match.span("body"))
        for match in BLOCK.finditer(text)
    ]


def run_page(text: str) -> str:
    """Run the blocks of a page and return the page with the actual outputs."""
    blocks = blocks_of(text)
    outputs: dict[int, str] = {}
    variables: dict[str, object] = {"__name__": "__main__"}
    with working_folder():
        for index, block in enumerate(blocks):
            following = blocks[index + 1] if index + 1 < len(blocks) else None
            if block.language == "run":
                subprocess.run(["bash", "-c", block.body], check=True, capture_output=True)
            elif block.language == "file" and following is not None:
                Path(block.body).write_text(following.body, encoding="utf-8")
            elif block.language == "console":
                outputs[index] = _run_console(block.body)
            elif block.language == "python":
                printed = _run_python(block.body, variables)
                if following is not None and following.language == "text":
                    outputs[index + 1] = printed
    for index in sorted(outputs, reverse=True):
        block = blocks[index]
        text = text[: block.start] + outputs[index] + text[block.end :]
    return text


@contextlib.contextmanager
def working_folder() -> Iterator[None]:
    """Work in a temporary folder with a copy of ``examples/``, with a fixed screen width."""
    before, environment = os.getcwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder, "examples"))
        os.chdir(folder)
        sys.path.append(folder)
        os.environ.update(COLUMNS=str(WIDTH), OMP_NUM_THREADS="1", NO_COLOR="1")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        try:
            yield
        finally:
            os.chdir(before)
            sys.path.remove(folder)
            os.environ.clear()
            os.environ.update(environment)


def _run_console(body: str) -> str:
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    parts = [f"$ {command}\n{_run_command(command)}" for command in commands]
    return "\n".join(parts)


def _run_command(command: str) -> str:
    """Output of a command; a plain ``dcgst`` command runs in this process, which is faster."""
    arguments = shlex.split(command, comments=True)
    if arguments[0] == "dcgst" and not set(command) & set("|><&;$"):
        return run_dcgst(arguments[1:])
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return _tidy(done.stdout)


def run_dcgst(arguments: list[str]) -> str:
    """Output of ``dcgst``, errors included."""
    from dcgst.cli import main

    buffer = io.StringIO()
    before, sys.argv = sys.argv, ["dcgst", *arguments]
    try:
        with contextlib.redirect_stdout(buffer), contextlib.redirect_stderr(buffer):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv = before
    return _tidy(buffer.getvalue())


def _tidy(printed: str) -> str:
    """The text without spaces at the ends of lines."""
    return "".join(line.rstrip() + "\n" for line in printed.splitlines())


def _run_python(body: str, variables: dict[str, object]) -> str:
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        exec(compile(body, "page", "exec"), variables)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the outputs into the pages")
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args()
    different = False
    for page in options.pages:
        before = page.read_text(encoding="utf-8")
        after = run_page(before)
        if options.update:
            page.write_text(after, encoding="utf-8")
        elif before != after:
            different = True
            lines = before.splitlines(), after.splitlines()
            print("\n".join(difflib.unified_diff(*lines, str(page), "actual", lineterm="")))
    sys.exit(different)


if __name__ == "__main__":
    main()
