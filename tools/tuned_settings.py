"""Write the settings of tuned baselines into the package: the best trials of ``dcgst tune``.

python tools/tuned_settings.py
"""

from __future__ import annotations

import json
from pathlib import Path

from dcgst.bench.experiments import best_settings
from dcgst.files import write_text

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Read the studies."""
    path = ROOT / "src" / "dcgst" / "bench" / "tuned.json"
    found = best_settings(ROOT / "results" / "studies")
    write_text(path, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
