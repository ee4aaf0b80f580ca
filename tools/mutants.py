"""Mutation testing: change the source in small ways and count how many changes the tests detect.

    python tools/mutants.py                        200 random mutants, seed 0
    python tools/mutants.py --count 40 --only shift
    python tools/mutants.py --show                 list the survivors of the last run

A mutant is one changed operator, number, condition or statement. It is *killed* if a test fails.
For each mutant, only those test files run that execute the changed line, fastest first. Which ones
these are is measured once with coverage and stored in ``.mutants/``; ``--measure`` repeats it.

Not mutated, because the result would be equivalent: docstrings, annotations, text, decorators,
numbers assigned to names that start with ``_`` (block sizes), ``if TYPE_CHECKING``, error messages.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from mutations import SOURCE, Mutant, mutants_of, mutate

ROOT = Path(__file__).parents[1]
PACKAGES = ("shift", "methods", "splits", "evaluate", "runs", "io")
CACHE = ROOT / ".mutants"
WORKERS = 2


@dataclass
class Outcome:
    """What happened to a mutant: killed by a test file, or survived."""

    mutant: Mutant
    killed_by: str | None
    seconds: float


def in_child(work: Callable[[], int], seconds: float) -> int:
    """Exit code of a function in a forked process; negative if a signal ended it."""
    process = os.fork()
    if process == 0:
        os.setsid()
        signal.alarm(max(1, int(seconds)))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def run_tests(files: list[str], source: Path) -> int:
    """Run test files against a source folder, in this process."""
    import pytest

    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    os.chdir(ROOT)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*options, *files]))


def measure() -> dict[str, dict[str, object]]:
    """For each test file, its run time and the lines of the source that it executes."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = str(path.relative_to(ROOT))
        if path.parent.name == "docs" or path.name == "test_package.py":
            continue
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "coverage")
            start = time.perf_counter()
            code = in_child(partial(_measure_file, name, data), 900)
            seconds = time.perf_counter() - start
            if code != 0:
                print(f"{name}: exit code {code}, not used", flush=True)
                continue
            found[name] = {"seconds": seconds, "lines": _read_coverage(data)}
            print(f"{name}: {seconds:.1f} s", flush=True)
    CACHE.mkdir(exist_ok=True)
    (CACHE / "coverage.json").write_text(json.dumps(found))
    return found


def _measure_file(name: str, data: Path) -> int:
    import coverage

    tracer = coverage.Coverage(data_file=str(data), source=[str(SOURCE / "dcgst")])
    tracer.start()
    code = run_tests([name], SOURCE)
    tracer.stop()
    tracer.save()
    return code


def _read_coverage(data: Path) -> dict[str, list[int]]:
    import coverage

    stored = coverage.CoverageData(str(data))
    stored.read()
    return {
        str(Path(file).relative_to(SOURCE)): sorted(stored.lines(file) or [])
        for file in stored.measured_files()
    }


def run_mutant(mutant: Mutant, coverage_map: dict[str, dict[str, object]]) -> Outcome:
    """Run the test files that execute the line of a mutant, fastest first, until one fails."""
    start = time.perf_counter()
    files = [
        (float(about["seconds"]), name)  # type: ignore[arg-type]
        for name, about in coverage_map.items()
        if mutant.line in about["lines"].get(mutant.path, [])  # type: ignore[attr-defined]
    ]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        changed = mutate(SOURCE / mutant.path, mutant.index)
        (source / mutant.path).write_text(changed, encoding="utf-8")
        for seconds, name in sorted(files):
            code = in_child(partial(run_tests, [name], source), 3 * seconds + 30)
            if code != 0:
                return Outcome(mutant, name, time.perf_counter() - start)
    return Outcome(mutant, None, time.perf_counter() - start)


def run_all(mutants: list[Mutant], coverage_map: dict[str, dict[str, object]]) -> list[Outcome]:
    """Run all mutants with several workers, and print each outcome."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    outcomes = []
    start = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(run_mutant, mutant, coverage_map) for mutant in mutants]
        for number, future in enumerate(as_completed(futures), 1):
            outcome = future.result()
            outcomes.append(outcome)
            left = (time.perf_counter() - start) / number * (len(mutants) - number) / 60
            mutant = outcome.mutant
            state = "killed  " if outcome.killed_by else "SURVIVED"
            print(
                f"{number:>4}/{len(mutants)} {state} {mutant.path}:{mutant.line} "
                f"{mutant.description} ({left:.0f} min left)",
                flush=True,
            )
    return outcomes


def report(outcomes: list[Outcome]) -> None:
    """Print the share of killed mutants by package, and the survivors."""
    total, killed = Counter[str](), Counter[str]()
    for outcome in outcomes:
        package = outcome.mutant.path.split("/")[1]
        total[package] += 1
        killed[package] += outcome.killed_by is not None
    print(f"\n{'package':<10} {'mutants':>8} {'killed':>8} {'share':>7}")
    for package in sorted(total):
        share = killed[package] / total[package]
        print(f"{package:<10} {total[package]:>8} {killed[package]:>8} {share:>7.0%}")
    share = sum(killed.values()) / max(1, sum(total.values()))
    print(f"{'all':<10} {sum(total.values()):>8} {sum(killed.values()):>8} {share:>7.0%}")
    survivors = [outcome.mutant for outcome in outcomes if outcome.killed_by is None]
    if survivors:
        print("\nSurvivors:")
    for mutant in sorted(survivors, key=lambda m: (m.path, m.line)):
        source = (SOURCE / mutant.path).read_text(encoding="utf-8").splitlines()
        print(
            f"{mutant.path}:{mutant.line} {mutant.description}: {source[mutant.line - 1].strip()}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--measure", action="store_true", help="measure the coverage again")
    parser.add_argument("--show", action="store_true", help="show the last run")
    options = parser.parse_args()
    results = CACHE / "outcomes.json"
    if options.show:
        stored = json.loads(results.read_text())
        report([Outcome(Mutant(**o["mutant"]), o["killed_by"], o["seconds"]) for o in stored])
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy  # noqa: F401  imported here so that forked processes need not
    import pytest  # noqa: F401
    import scipy.sparse  # noqa: F401
    import sklearn  # noqa: F401
    import torch

    torch.set_num_threads(1)
    stored_map = CACHE / "coverage.json"
    coverage_map = (
        measure()
        if options.measure or not stored_map.exists()
        else json.loads(stored_map.read_text())
    )
    files = [f for p in PACKAGES for f in sorted((SOURCE / "dcgst" / p).rglob("*.py"))]
    population = [m for f in files if options.only in str(f) for m in mutants_of(f)]
    sample = random.Random(options.seed).sample(population, min(options.count, len(population)))
    outcomes = run_all(sample, coverage_map)
    CACHE.mkdir(exist_ok=True)
    results.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    report(outcomes)


if __name__ == "__main__":
    main()
