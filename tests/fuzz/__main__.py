"""Run thousands of generated inputs: ``python -m tests.fuzz --count 10000``.

The outcomes are appended to ``.fuzz/outcomes.jsonl``; a second call continues where the first one
stopped. Cases that went wrong are stored in ``.fuzz/failures``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

FOLDER = Path(".fuzz")


def run_one(kind: str, number: int) -> dict[str, object]:
    """Run one batch; returns what is stored about it."""
    import torch

    torch.set_num_threads(1)
    from tests.fuzz.batches import run_batch

    outcomes = run_batch(kind, number, keep=partial(keep, f"{kind}-{number}"))
    return {"kind": kind, "number": number, "states": Counter(o.state for o in outcomes)}


def keep(name: str, case: object, outcome: object) -> None:
    """Store a case that went wrong."""
    folder = FOLDER / "failures" / f"{name}-{time.time_ns()}"
    folder.mkdir(parents=True)
    case.write(folder)  # type: ignore[attr-defined]
    command = " ".join(case.command)  # type: ignore[attr-defined]
    (folder / "outcome.txt").write_text(f"dcgst {command}\n{outcome}\n")


def main() -> None:
    from tests.fuzz.batches import SIZE
    from tests.fuzz.cases import STRATEGIES

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=15_000, help="number of inputs")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    stored = FOLDER / "outcomes.jsonl"
    lines = stored.read_text().splitlines() if stored.exists() else []
    done = {(r["kind"], r["number"]): r for r in map(json.loads, lines)}
    batches = -(-options.count // (SIZE * len(STRATEGIES)))
    every = [(kind, number) for number in range(batches) for kind in STRATEGIES]
    todo = [batch for batch in every if batch not in done]
    start = time.monotonic()
    with ProcessPoolExecutor(options.workers) as executor, open(stored, "a") as file:
        jobs = [executor.submit(run_one, *batch) for batch in todo]
        for count, job in enumerate(as_completed(jobs), 1):
            try:
                record = job.result()
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            done[record["kind"], record["number"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            left = (time.monotonic() - start) / count * (len(todo) - count) / 60
            print(f"{count}/{len(todo)} batches, {left:.0f} min left", end="\r", flush=True)
    records = [done[batch] for batch in every]
    show(records)
    if any(set(record["states"]) - {"accepted", "refused"} for record in records):
        raise SystemExit(1)


def show(records: list[dict[str, object]]) -> None:
    """Print how the cases of each kind ended."""
    from tests.fuzz.execution import STATES

    totals: dict[str, Counter[str]] = {}
    for record in records:
        states = totals.setdefault(str(record["kind"]), Counter())
        states.update(record["states"])  # type: ignore[call-overload]
    print(f"{'input':<12} {'cases':>7} " + " ".join(f"{state:>12}" for state in STATES))
    everything = Counter[str]()
    for kind, states in totals.items():
        everything.update(states)
        print(f"{kind:<12} {sum(states.values()):>7,} " + _row(states))
    print(f"{'all':<12} {sum(everything.values()):>7,} " + _row(everything))


def _row(states: Counter[str]) -> str:
    from tests.fuzz.execution import STATES

    return " ".join(f"{states[state]:>12,}" for state in STATES)


if __name__ == "__main__":
    main()
