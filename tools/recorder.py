"""Which tests execute which lines, measured with coverage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import coverage
import pytest


class Recorder:
    """A pytest plugin that tells coverage which test is running.

    A fixture that several tests share is recorded under its own name.
    """

    def __init__(self, tracer: coverage.Coverage) -> None:
        self.tracer = tracer
        self.context = [""]
        self.seconds: dict[str, float] = {}
        self.fixtures: dict[str, list[str]] = {}

    @contextmanager
    def recording(self, context: str) -> Iterator[None]:
        self.context.append(context)
        self.tracer.switch_context(context)
        try:
            yield
        finally:
            self.context.pop()
            self.tracer.switch_context(self.context[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = time.perf_counter()
        with self.recording(item.nodeid):
            result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        found = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
        self.fixtures[item.nodeid] = [_fixture_name(f) for all_ in found.values() for f in all_]
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        with self.recording(_fixture_name(fixturedef)):
            return (yield)

    @property
    def tests(self) -> dict[str, list[str]]:
        """For each context, the tests that execute its lines."""
        found: dict[str, list[str]] = {test: [test] for test in self.seconds}
        for test, names in self.fixtures.items():
            for name in names:
                found.setdefault(name, []).append(test)
        return found


def _fixture_name(fixture: pytest.FixtureDef[object]) -> str:
    return f"fixture {fixture.baseid}::{fixture.argname}"


def tests_by_line(
    tracer: coverage.Coverage, recorder: Recorder, source: Path
) -> dict[str, dict[str, list[str]]]:
    """For each file, relative to the source, and each line: the tests that execute it."""
    data, tests_of = tracer.get_data(), recorder.tests
    return {
        str(Path(file).relative_to(source)): {
            str(line): sorted({test for c in contexts for test in tests_of.get(c, [])})
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
