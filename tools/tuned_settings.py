"""Write the settings of tuned baselines into the package: the best trials of ``dcgst tune``.

python tools/tuned_settings.py
"""

from __future__ import annotations

import json
from pathlib import Path

from dcgst.bench.experiments import RATES, best_settings
from dcgst.files import write_text

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Read the studies; DC-GST has presets instead."""
    found = best_settings(ROOT / "results" / "studies")
    baselines = {
        dataset: {name: own for name, own in found[dataset].items() if name != "dcgst"}
        for dataset in RATES
        if dataset in found
    }
    path = ROOT / "src" / "dcgst" / "bench" / "tuned.json"
    write_text(path, json.dumps(baselines, indent=1) + "\n")


if __name__ == "__main__":
    main()
