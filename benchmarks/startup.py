"""Start-up time of the package and of ``dcgst --help``, relative to ``import torch``.

Each command runs in a new process; the commands take turns, and the fastest round counts.

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from _common import show

COMMANDS = {
    "torch": "import torch",
    "dcgst": "import dcgst",
    "dcgst_used": "import dcgst; dcgst.DCGST, dcgst.fit, dcgst.read, dcgst.diagnose",
    "help": "import sys; sys.argv = ['dcgst', '--help']; from dcgst.cli import main; main()",
}


def seconds(code: str) -> float:
    """Time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rounds = [
        {name: seconds(code) for name, code in COMMANDS.items()} for _ in range(options.rounds)
    ]
    best = {name: min(times[name] for times in rounds) for name in COMMANDS}
    for name, value in best.items():
        record = {"command": name, "seconds": value, "relative_to_torch": value / best["torch"]}
        show(record, options.json)


if __name__ == "__main__":
    main()
