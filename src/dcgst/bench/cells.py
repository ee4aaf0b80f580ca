"""Cells of an experiment, and the file of records that belong to them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dcgst.bench.protocol import Labels, Record
from dcgst.datasets import official_available
from dcgst.errors import InputError
from dcgst.files import append_line
from dcgst.methods import METHODS, Method, method

EXECUTION_SETTINGS = ("device", "chunk_size")
"""Settings that affect where and how a method runs, but not what it computes."""


@dataclass(frozen=True)
class Cell:
    """One method on one dataset at one label rate, over several runs.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the method.
        rate: Number of labels as a fraction of all nodes; None if ``per_class`` is set.
        sampler: Name of the label sampler.
        preset: Name of the preset that the settings start from.
        settings: Settings that override the preset.
        runs: Number of runs.
        stages: Whether the record must contain the history of each run.
        timed: Whether the run time is the result. Timed cells run one at a time.
        per_class: Number of labels per class, as an alternative to ``rate``.
        validation: Number of validation nodes; None for the share that the paper uses.
        first_run: Number of the first run.
        validation_per_class: Number of validation nodes of each class, as an alternative to
            ``validation``.
        train_on_validation: Whether the validation nodes are used as training nodes.
    """

    dataset: str
    method: str
    rate: float | None
    sampler: str = "released"
    preset: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 10
    stages: bool = False
    timed: bool = False
    per_class: int | None = None
    validation: int | None = None
    first_run: int = 0
    validation_per_class: int | None = None
    train_on_validation: bool = False

    def make_method(self, device: str = "auto") -> Method:
        """Create the method with the settings of this cell."""
        return method(self.method, self.preset, **self.settings, device=device)

    @property
    def labels(self) -> Labels:
        """Label sampling of this cell."""
        return Labels(
            self.sampler,
            self.rate,
            self.per_class,
            self.runs,
            self.first_run,
            self.validation,
            self.validation_per_class,
            self.train_on_validation,
        )

    @property
    def key(self) -> str:
        """Key of this cell; equal to the key of every record of this cell."""
        record = {**vars(self), "settings": self.make_method().config()}
        return key_of(record)

    def satisfied_by(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record with the same key contains everything this cell requires.

        If the official features are available, a record with substitute features does not
        satisfy the cell. Neither does one without balanced accuracy, which earlier versions did not
        measure, if the cell sets the number of validation nodes, as the suite does.
        """
        history = not self.stages or record.get("stages") is not None
        own_validation = self.validation is not None or self.validation_per_class is not None
        quality = not own_validation or record.get("balanced_accuracy") is not None
        official = record.get("official", True) or not official_available(self.dataset)
        return bool(history and quality and official)

    def named(self, record: Record) -> Record:
        """A record of this cell with the names of the cell: its dataset may be a path."""
        return replace(record, dataset=self.dataset, preset=self.preset)

    def with_runs(self, runs: int) -> Cell:
        """Return a copy with another number of runs."""
        return replace(self, runs=runs)

    def __str__(self) -> str:
        settings = "".join(f" {name}={value}" for name, value in self.settings.items())
        preset = "" if self.preset == "default" else f" {self.preset}"
        amount = f"{self.per_class} per class" if self.rate is None else f"{100 * self.rate:g}%"
        labels = f"{self.sampler} {amount}"
        if self.validation is not None:
            labels += f", {self.validation} validation labels"
        if self.validation_per_class is not None:
            labels += f", {self.validation_per_class} validation labels per class"
        if self.train_on_validation:
            labels += ", also trained on"
        return f"{self.method}{preset}{settings} on {self.dataset}, {labels}"


def key_of(record: Mapping[str, Any]) -> str:
    """Compute the key of a record from its method, settings, dataset, labels and runs.

    Records with different settings have different keys. A setting that is missing from the record
    counts as its current default, so records stay valid when a method gets a new setting.
    """
    defaults = METHODS[record["method"]].from_preset().config()
    stored = record["settings"]
    settings = {
        name: stored.get(name, defaults[name])
        for name in sorted(defaults)
        if name not in EXECUTION_SETTINGS
    }
    names = ["dataset", "method", "rate", "sampler", "runs", "first_run"]
    values = [record[name] for name in names]
    if record.get("validation") is not None:
        values.append(record["validation"])
    if record.get("validation_per_class") is not None:
        # Then every class has the requested number of labels, and a record contains that number.
        values += ["per class", record["per_class"], record["validation_per_class"]]
    if record.get("train_on_validation"):
        values.append("train on validation")
    return repr((values, settings))


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Remove duplicate cells and keep the order of first appearance.

    If any duplicate requires the history, so does the remaining cell.
    """
    found: dict[str, Cell] = {}
    for cell in cells:
        first = found.setdefault(cell.key, cell)
        found[cell.key] = replace(first, stages=first.stages or cell.stages)
    return list(found.values())


StoredRecord = dict[str, Any]
"""The fields of a record as read from a file."""

REQUIRED_FIELDS = (
    "dataset",
    "method",
    "rate",
    "sampler",
    "runs",
    "first_run",
    "settings",
    "accuracy",
)


class Records:
    """The records of a file, by key.

    If several records have the same key, the last one is used, with two exceptions: a record with
    substitute features never replaces one with official features, and a record without history
    never replaces one with history.

    Args:
        path: File of records. It does not need to exist.

    Attributes:
        path: The file.
        by_key: The record of each key.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key: dict[str, StoredRecord] = {}
        for record in _read(path):
            # Skip records of unknown methods and of settings that are no longer supported.
            with contextlib.suppress(InputError):
                self._update(record)

    def find(self, cell: Cell) -> StoredRecord | None:
        """Return the record of a cell, with a history if it needs one, or None if there is none."""
        record = self.by_key.get(cell.key)
        without = cell.stages and record is not None and record.get("stages") is None
        return None if without else record

    def find_all(self, cells: Sequence[Cell]) -> list[StoredRecord] | None:
        """Return the records of all cells, or None if any is missing."""
        found = [self.find(cell) for cell in cells]
        complete = [record for record in found if record is not None]
        return complete if len(complete) == len(found) else None

    def add(self, record: Record) -> None:
        """Append a record to the file, and flush it to disk."""
        fields = dataclasses.asdict(record)
        append_line(self.path, json.dumps(fields, allow_nan=False, default=float))
        self._update(fields)

    def _update(self, record: StoredRecord) -> None:
        key = key_of(record)
        current = self.by_key.get(key)
        if current is None or _priority(record) >= _priority(current):
            self.by_key[key] = record


def _priority(record: StoredRecord) -> tuple[bool, bool]:
    return bool(record.get("official", True)), record.get("stages") is not None


def _read(path: Path) -> Iterator[StoredRecord]:
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a file of records: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if line.startswith("{"):
                continue  # a record whose write was interrupted
            raise InputError(
                f"{path}, line {number}: not JSON ({error.msg}); fix or delete this line"
            ) from error
        absent = [
            name for name in REQUIRED_FIELDS if not isinstance(record, dict) or name not in record
        ]
        if absent:
            raise InputError(
                f"{path}, line {number}: not a record, field {absent[0]!r} is missing; "
                "fix or delete this line"
            )
        yield record
