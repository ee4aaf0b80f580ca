"""Damage and interruptions in numbers: bit flips in stored files, and kills at random moments.

    python benchmarks/reliability.py --flips 500 --kills 20

Bit flips: one bit of one file of a run folder or of a checkpoint is changed, then the run is opened
or the fit resumed. It must raise an error that names the file, or give the same predictions.
Kills: the command ``dcgst fit`` is killed (SIGKILL) after a random time, then resumed. The files
must be the same as without the kill, to the byte, except for times and the report.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dcgst import DCGST, InputError, fit, open_run, synthetic
from dcgst.files import rows_to_csv
from dcgst.train.training import StageEnd

SETTINGS: dict[str, Any] = {
    "epochs": 20,
    "stage_epochs": 5,
    "student_epochs": 5,
    "max_stages": 3,
    "hidden": 16,
}
SAME = ("predictions.csv", "history.csv", "candidates.csv.gz", "graph.npz", "model.safetensors")


def flip_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)


def flips(count: int, folder: Path, rng: random.Random) -> Counter[str]:
    """Outcomes of flipped bits, half in a complete run and half in an interrupted fit."""
    graph, method = synthetic(200, 3, features=8, labels_per_class=4), DCGST(**SETTINGS)
    expected = rows_to_csv(fit(graph, folder / "whole", method).predictions)

    def interrupt(event: object) -> None:
        if isinstance(event, StageEnd) and event.number == 2:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        fit(graph, folder / "part", method, callbacks=[interrupt])
    outcomes = Counter[str]()
    for number in range(count):
        name = "whole" if number % 2 == 0 else "part"
        copy = folder / "copy"
        shutil.copytree(folder / name, copy)
        files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.stat().st_size]
        path = rng.choice(files)
        flip_bit(path, rng)
        try:
            run = open_run(copy) if name == "whole" else fit(graph, copy, method, resume=True)
            same = rows_to_csv(run.predictions) == expected
            outcomes["without effect" if same else f"OTHER RESULT ({path.name})"] += 1
        except InputError as error:
            named = path.name in str(error) or "was started with another" in str(error)
            outcomes["noticed" if named else f"noticed, not named ({path.name})"] += 1
        shutil.rmtree(copy)
    return outcomes


def kills(count: int, folder: Path, rng: random.Random) -> Counter[str]:
    """Outcomes of fits that were killed at a random moment and resumed."""
    data = Path(__file__).parents[1] / "examples" / "data"
    command = [sys.executable, "-m", "dcgst", "fit", str(data / "papers.csv"),
               str(data / "papers_edges.csv"), "--label", "topic", "--no-report", "--quiet",
               "--replicas", "1", "--set", "max_stages=6"]  # fmt: skip
    for _ in range(2):  # the second one finds the libraries in the file cache
        start = time.perf_counter()
        whole = [*command, "-o", str(folder / "whole"), "--overwrite"]
        subprocess.run(whole, check=True, capture_output=True)
        seconds = time.perf_counter() - start
    outcomes = Counter[str]()
    for number in range(count):
        out = folder / f"killed{number}"
        process = subprocess.Popen(
            [*command, "-o", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # A quarter of the kills hit the end, when the files are written.
        share = rng.uniform(0.9, 1.0) if number % 4 == 0 else rng.uniform(0.4, 0.95)
        time.sleep(share * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        when = "before the folder was made" if not out.exists() else "during the fit"
        if (out / "run.json").exists():
            when = "after the end"
        subprocess.run([*command, "-o", str(out), "--resume"], check=True, capture_output=True)
        same = all(
            (out / name).read_bytes() == (folder / "whole" / name).read_bytes() for name in SAME
        )
        left = [path for path in out.rglob("*") if path.name.startswith(".")]
        outcomes[f"{when}: {'same files' if same and not left else 'OTHER FILES'}"] += 1
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for name, function, count in (
        ("bit flips", flips, options.flips),
        ("kills", kills, options.kills),
    ):
        with tempfile.TemporaryDirectory() as folder:
            outcomes = function(count, Path(folder), rng)
        print(f"{count} {name}")
        for outcome, times in sorted(outcomes.items()):
            print(f"  {times:>4} {outcome}")


if __name__ == "__main__":
    main()
