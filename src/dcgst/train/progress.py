"""Progress of long computations, reported to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")

Report = Callable[[str, float], object]
"""A function that is called with the name of a task and the share of it that is done."""

_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def reporting_to(report: Report) -> Iterator[None]:
    """Call a function whenever a task makes progress in the block."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


class Task:
    """A computation that consists of steps of similar duration.

    Args:
        name: what is done, as the user should see it.
        steps: number of steps.

    Example:
        >>> with reporting_to(lambda name, share: print(name, share)):
        ...     task = Task("prediction", 2)
        ...     task.advance()
        prediction 0.0
        prediction 0.5
    """

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.done = name, steps, 0
        self._report()

    def advance(self, steps: int = 1) -> None:
        """Report the end of a step, or of several."""
        self.done += steps
        self._report()

    def _report(self) -> None:
        report = _report.get()
        if report is not None:
            report(self.name, self.done / max(1, self.steps))


def counted(name: str, items: Sequence[Item]) -> Iterator[Item]:
    """The items, each a step of a task."""
    task = Task(name, len(items))
    for item in items:
        yield item
        task.advance()
