"""The outputs in the documentation are what the commands print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cli_reference
import pytest
import run_docs

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if any(b.language in ("console", "python") for b in run_docs.blocks_of(page.read_text()))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_outputs_are_current(page):
    """If this fails, run ``make outputs`` and look at the differences."""
    command = [sys.executable, str(ROOT / "tools" / "run_docs.py"), str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_command_line_reference_is_current():
    assert cli_reference.reference() == cli_reference.PAGE.read_text(encoding="utf-8")


def test_wrong_outputs_are_replaced():
    page = "```console\n$ echo one\ntwo\n```\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert run_docs.run_page(page) == page.replace("two", "one").replace("3\n", "2\n")


def test_python_blocks_share_variables_and_hidden_commands_run():
    page = (
        "<!-- run: echo hidden > file.txt -->\n\n```python\nname = 'file.txt'\n```\n\n"
        "```python\nfrom pathlib import Path\n\nprint(Path(name).read_text().strip())\n```\n\n"
        "```text\nhidden\n```\n"
    )
    assert run_docs.run_page(page) == page
