"""Results published in the paper."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PublishedResult:
    """Published accuracy over ten runs, in percent.

    Attributes:
        mean: Mean; None if the method ran out of memory.
        std: Standard deviation; None if the method ran out of memory.
    """

    mean: float | None
    std: float | None


def published_result(
    dataset: str, sampler: str, rate: float | None, method: str
) -> PublishedResult | None:
    """Return a result of the paper's main tables, or None if the paper has no such result."""
    part = {"released": "biased", "uniform": "random"}.get(sampler, "")
    table = _tables().get(part, {}).get(dataset, {})
    if rate not in table.get("rates", []) or method not in table:
        return None
    return _parse(table[method][table["rates"].index(rate)])


def published_ablation(dataset: str, ablation: str) -> PublishedResult | None:
    """Return the result of ``full``, ``no_ep_cmd``, ``no_ner`` or ``no_ep``, or None."""
    value = _tables()["ablation"].get(dataset, {}).get(ablation)
    return None if value is None else _parse(value)


def _parse(value: list[float] | None) -> PublishedResult:
    return PublishedResult(None, None) if value is None else PublishedResult(*value)


@cache
def _tables() -> dict[str, Any]:
    text = files("dcgst.bench").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables
