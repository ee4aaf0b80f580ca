"""Cells: what an experiment asks for, and whether a record answers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dcgst.bench.protocol import Labels
from dcgst.datasets import official_here
from dcgst.methods import METHODS, Method, method

PLACES = ("device", "chunk")
"""Settings that say where and how a method is computed, not what."""


@dataclass(frozen=True)
class Cell:
    """One method on one data set with so many labels, in several runs.

    Attributes:
        dataset: its name.
        method: its name.
        rate: labels as a share of all nodes.
        sampler: which labels.
        preset: named settings.
        settings: what differs from the preset.
        runs: how many.
        stages: whether the history of each run is wanted as well.
        timed: whether its time is what is wanted: nothing else is run beside it.
    """

    dataset: str
    method: str
    rate: float
    sampler: str = "released"
    preset: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 10
    stages: bool = False
    timed: bool = False

    def make(self, device: str = "auto") -> Method:
        """The method of this cell."""
        return method(self.method, self.preset, **self.settings, device=device)

    @property
    def labels(self) -> Labels:
        return Labels(self.sampler, self.rate, runs=self.runs)

    @property
    def key(self) -> str:
        """Equal for cells that ask for the same, and for records that answer them."""
        record = {**vars(self), "settings": self.make().get_params(), "first_run": 0}
        return key_of(record)

    def answered_by(self, record: Mapping[str, Any]) -> bool:
        """Whether a record of the same key says all that is wanted.

        One with substitute features does not where the official ones are here.
        """
        history = not self.stages or record.get("stages") is not None
        return history and (record.get("official", True) or not official_here(self.dataset))

    def with_runs(self, runs: int) -> Cell:
        return replace(self, runs=runs)

    def __str__(self) -> str:
        more = "".join(f" {name}={value}" for name, value in self.settings.items())
        preset = "" if self.preset == "default" else f" {self.preset}"
        labels = f"{self.sampler} {100 * self.rate:g} %"
        return f"{self.method}{preset}{more} on {self.dataset}, {labels}"


def key_of(record: Mapping[str, Any]) -> str:
    """The same for all records of the same method, settings, data set, labels and runs.

    A record made with other settings, or before a default changed, has another key. A setting that
    did not exist yet counts as its default.
    """
    known = METHODS[record["method"]].from_preset().get_params()
    settings = {k: record["settings"].get(k, known[k]) for k in sorted(known) if k not in PLACES}
    names = ("dataset", "method", "rate", "sampler", "runs", "first_run")
    return repr(([record[k] for k in names], settings))


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Each cell once, in the order of their first appearance, with all that is wanted of it."""
    found: dict[str, Cell] = {}
    for cell in cells:
        known = found.setdefault(cell.key, cell)
        found[cell.key] = replace(known, stages=known.stages or cell.stages)
    return list(found.values())
