"""The modules that a fit executes are those in docs/architecture.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_architecture_lists_the_modules_of_a_fit():
    code = "import walk; print(walk.walks())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=True,
    )
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert done.stdout in page, "run: python tools/walk.py --update"
