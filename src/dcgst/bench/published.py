"""The paper's tables as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A mean over ten runs and its standard deviation, in percent; None where memory ran out."""

    mean: float | None
    std: float | None


def published(dataset: str, sampler: str, rate: float | None, method: str) -> Figure | None:
    """What the paper reports for a cell of its main tables; None if it has no such cell."""
    part = {"released": "biased", "uniform": "random"}.get(sampler, "")
    table = _tables().get(part, {}).get(dataset, {})
    if rate not in table.get("rates", []) or method not in table:
        return None
    return _figure(table[method][table["rates"].index(rate)])


def published_ablation(dataset: str, ablation: str) -> Figure | None:
    """What the paper reports for ``full``, ``no_ep_cmd``, ``no_ner`` or ``no_ep``."""
    value = _tables()["ablation"].get(dataset, {}).get(ablation)
    return None if value is None else _figure(value)


def _figure(value: list[float] | None) -> Figure:
    return Figure(None, None) if value is None else Figure(*value)


@cache
def _tables() -> dict[str, Any]:
    text = files("dcgst.bench").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables
