"""Mutation testing: change the source in small ways and count how many changes the tests detect.

    python tools/mutants.py                        200 random mutants, seed 0
    python tools/mutants.py --count 40 --only shift
    python tools/mutants.py --show                 list the survivors of the last run
    python tools/mutants.py --again                run the survivors of the last run again

A mutant is one changed operator, number, condition or statement. It is *killed* if a test fails.
For each mutant, only those tests run that execute the changed line, or, for a line that runs when
its module is imported, the tests that execute any function of the module, and all tests of its
package. The tests of the same package run first, then the fastest ones, up to two minutes in all.
Which tests execute a line is measured once with coverage and stored in ``.mutants/``; ``--measure``
repeats it.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import coverage
import pytest
from mutations import SOURCE, Mutant, mutants_of, mutate
from recorder import Recorder, tests_by_line

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "features",
    "graph",
    "shift",
    "methods",
    "splits",
    "evaluate",
    "runs",
    "insight",
    "tables",
)
CACHE = ROOT / ".mutants"
WORKERS = 2
BUDGET = 120.0  # seconds of tests for one mutant


@dataclass
class Outcome:
    """What happened to a mutant: killed by its tests, or survived."""

    mutant: Mutant
    killed: bool
    seconds: float


class Coverage:
    """The tests, how long each takes, and which of them execute a line."""

    def __init__(self, seconds: dict[str, float], lines: dict[str, dict[str, list[str]]]) -> None:
        self.seconds = seconds
        self.lines = lines

    @classmethod
    def load(cls, path: Path) -> Coverage:
        return cls(**json.loads(path.read_text()))

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests to run for a mutant, in order, at most ``BUDGET`` seconds of them."""
        by_line = self.lines.get(mutant.path, {})
        package = f"tests/{mutant.path.split('/')[1]}/"
        tests = by_line.get(str(mutant.line), [])
        if not tests:
            found = {test for found in by_line.values() for test in found}
            tests = sorted(found | {test for test in self.seconds if test.startswith(package)})
        ordered = sorted(tests, key=lambda t: (not t.startswith(package), self.seconds[t]))
        total = 0.0
        kept: list[str] = []
        for test in ordered:
            total += self.seconds[test]
            if total > BUDGET and kept:
                break
            kept.append(test)
        return kept


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


class Selected:
    """A pytest plugin that keeps the given tests, in the given order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])


def run_tests(files: list[str], source: Path, plugins: list[object]) -> int:
    """Run test files against a source folder, in this process."""
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    os.chdir(ROOT)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*options, *files], plugins=plugins))


def measure() -> None:
    """Measure which tests execute which lines, in two processes, and store it."""
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.parent.name != "docs" and path.name not in ("test_package.py", "test_style.py")
    ]
    CACHE.mkdir(exist_ok=True)
    print("Measuring which tests execute which lines, a few minutes …", flush=True)
    parts = [CACHE / f"part{number}.json" for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as executor:
        jobs = [
            executor.submit(in_child, partial(_measure_files, files[number::WORKERS], part), 3600)
            for number, part in enumerate(parts)
        ]
        failed = [part for job, part in zip(jobs, parts, strict=True) if job.result() != 0]
    if failed:
        logs = " and ".join(str(_log_of(part)) for part in failed)
        raise SystemExit(f"The tests fail without any mutation; see {logs}.")
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        found = json.loads(part.read_text())
        seconds |= found["seconds"]
        for path, by_line in found["lines"].items():
            for line, tests in by_line.items():
                lines.setdefault(path, {}).setdefault(line, []).extend(tests)
        part.unlink()
    (CACHE / "coverage.json").write_text(json.dumps({"seconds": seconds, "lines": lines}))


def _measure_files(files: list[str], output: Path) -> int:
    log = os.open(_log_of(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    tracer = coverage.Coverage(data_file=None, source=[str(SOURCE / "dcgst")])
    recorder = Recorder(tracer)
    tracer.start()
    code = run_tests(files, SOURCE, [recorder])
    tracer.stop()
    lines = tests_by_line(tracer, recorder, SOURCE)
    output.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))
    return code


def _log_of(part: Path) -> Path:
    return part.with_suffix(".log")


def run_mutant(mutant: Mutant, measured: Coverage) -> Outcome:
    """Run the tests of a mutant until one fails."""
    start = time.perf_counter()
    tests = measured.tests_of(mutant)
    package = f"tests/{mutant.path.split('/')[1]}/"
    near = [test for test in tests if test.startswith(package)]
    far = [test for test in tests if not test.startswith(package)]
    killed = False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        changed = mutate(SOURCE / mutant.path, mutant.index)
        (source / mutant.path).write_text(changed, encoding="utf-8")
        for part in (near, far):
            if part and not killed:
                files = sorted({test.split("::")[0] for test in part})
                limit = 15 + 4 * sum(measured.seconds[test] for test in part)
                work = partial(run_tests, ["-x", *files], source, [Selected(part)])
                killed = in_child(work, limit) != 0
    return Outcome(mutant, killed, time.perf_counter() - start)


def run_all(mutants: list[Mutant], measured: Coverage) -> list[Outcome]:
    """Run all mutants with several workers, and print each outcome."""
    outcomes = []
    start = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as executor:
        futures = [executor.submit(run_mutant, mutant, measured) for mutant in mutants]
        for number, future in enumerate(as_completed(futures), 1):
            outcome = future.result()
            outcomes.append(outcome)
            left = (time.perf_counter() - start) / number * (len(mutants) - number) / 60
            mutant = outcome.mutant
            state = "killed  " if outcome.killed else "SURVIVED"
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
        killed[package] += outcome.killed
    print(f"\n{'package':<10} {'mutants':>8} {'killed':>8} {'share':>7}")
    for package in sorted(total):
        share = killed[package] / total[package]
        print(f"{package:<10} {total[package]:>8} {killed[package]:>8} {share:>7.0%}")
    share = sum(killed.values()) / max(1, sum(total.values()))
    print(f"{'all':<10} {sum(total.values()):>8} {sum(killed.values()):>8} {share:>7.0%}")
    survivors = [outcome.mutant for outcome in outcomes if not outcome.killed]
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
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    options = parser.parse_args()
    results = CACHE / "outcomes.json"
    last = []
    if options.show or options.again:
        stored_outcomes = json.loads(results.read_text())
        last = [Outcome(Mutant(**o.pop("mutant")), **o) for o in stored_outcomes]
    if options.show:
        report(last)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy  # noqa: F401  imported here so that forked processes need not
    import scipy.sparse  # noqa: F401
    import sklearn  # noqa: F401
    import torch

    torch.set_num_threads(1)
    stored = CACHE / "coverage.json"
    if options.measure or not stored.exists():
        measure()
    measured = Coverage.load(stored)
    files = [f for p in PACKAGES for f in sorted((SOURCE / "dcgst" / p).rglob("*.py"))]
    population = [m for f in files if options.only in str(f) for m in mutants_of(f)]
    sample = random.Random(options.seed).sample(population, min(options.count, len(population)))
    if options.again:
        sample = [outcome.mutant for outcome in last if not outcome.killed]
    outcomes = [outcome for outcome in last if outcome.killed] + run_all(sample, measured)
    CACHE.mkdir(exist_ok=True)
    results.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    report(outcomes)


if __name__ == "__main__":
    main()
