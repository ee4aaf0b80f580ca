"""Settings of the baselines found by ``dcgst tune``, the best of equally many trials for each."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

TRIALS = 28

Settings = dict[str, Any]


@cache
def tuned_settings() -> dict[str, dict[str, Settings]]:
    """The best settings by dataset and method."""
    text = files("dcgst.bench").joinpath("tuned.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Settings]] = json.loads(text)
    return found


def best_settings(studies: Path, runs: str = "runs-10-19") -> dict[str, dict[str, Settings]]:
    """Read the best settings by dataset and method from summaries of ``dcgst tune``."""
    found: dict[str, dict[str, Settings]] = {}
    for path in sorted(studies.glob(f"*/*-{runs}.json")):
        summary = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(summary["dataset"], {})[summary["method"]] = summary["best"]["settings"]
    return found
