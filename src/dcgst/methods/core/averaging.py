"""The mean of several replicas, computed in blocks of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.memory import forget
from dcgst.methods.core.result import Result
from dcgst.methods.core.trace import NOT_LABELED
from dcgst.methods.pooling import SAMPLE, confidence_scale, mean_confidence
from dcgst.numerics.arrays import empty_like, row_ranges
from dcgst.numerics.shares import every_kth


def average(replicas: Sequence[Result]) -> Result:
    """Combine replicas of a run: mean probabilities, median labeled stages, joined tables."""
    first, *others = replicas
    if not others:
        return first
    given = np.max([r.given for r in replicas], axis=0)
    mean = dataclasses.replace(
        first,
        proba=_mean_proba(replicas),
        given=given,
        labeled_stage=majority_stage(np.stack([r.labeled_stage for r in replicas])),
        history=[{**record, "replica": i} for i, r in enumerate(replicas) for record in r.history],
        stop_reason="; ".join(sorted({r.stop_reason for r in replicas})),
        candidates=np.concatenate([_number(r.candidates, i) for i, r in enumerate(replicas)]),
        edge_probabilities=np.concatenate(
            [_number(r.edge_probabilities, i) for i, r in enumerate(replicas)]
        ),
        member_weights=_mean_by_name([r.member_weights for r in replicas]),
        expectation=_mean_by_name([r.expectation for r in replicas]),
        models=tuple(model for r in replicas for model in r.models),
        predictors=tuple(model for r in replicas for model in r.predictors),
        stage_predictions=(),
    )
    equal = sum(((r.labels == mean.labels) | (given >= 0)).astype(np.float32) for r in replicas)
    agreement: NDArray[np.float32] = np.divide(equal, len(replicas), dtype=np.float32)
    return dataclasses.replace(mean, agreement=agreement)


def _mean_proba(replicas: Sequence[Result]) -> NDArray[np.float32]:
    proba = empty_like(replicas[0].proba)
    for nodes in row_ranges(len(proba)):
        proba[nodes] = np.mean([r.proba[nodes] for r in replicas], axis=0)
        forget(proba, *(r.proba for r in replicas))
    return proba


def restore_confidence(
    mean: NDArray[np.float32],
    replicas: Sequence[NDArray[np.float32]],
    pool: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Scale mean probabilities ``(n, C)`` to the mean confidence of the replicas.

    The mean of calibrated predictions is less confident than each of them, although it is right
    more often.

    Args:
        mean: ``(n, C)`` mean probabilities.
        replicas: ``(n, C)`` probabilities, of which they are the mean.
        pool: ``(n,)`` bool, the nodes whose mean confidence is scaled.
    """
    rows = confidence_rows(pool)
    return scale_confidence(mean, [np.array(own[rows]) for own in replicas], pool)


def confidence_rows(pool: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Nodes of a pool ``(n,)`` bool whose mean confidence stands for that of all."""
    rows: NDArray[np.int64] = every_kth(torch.from_numpy(pool)[None], SAMPLE).numpy()
    return rows


def scale_confidence(
    mean: NDArray[np.float32],
    replicas: Sequence[NDArray[np.float32]],
    pool: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """See :func:`restore_confidence`; ``replicas`` have the nodes of :func:`confidence_rows`."""
    if not pool.any():
        return mean
    rows = confidence_rows(pool)
    within = torch.from_numpy(pool[rows])[None]
    log_proba, *each = (
        torch.from_numpy(proba).clamp_min(1e-9).log()[None]
        for proba in (np.array(mean[rows]), *replicas)
    )
    target = torch.stack([mean_confidence(own, within) for own in each]).mean(0)
    scale = confidence_scale(log_proba, target, within)
    scaled = empty_like(mean)
    for nodes in row_ranges(len(mean)):
        logits = torch.from_numpy(np.array(mean[nodes])).clamp_min(1e-9).log() * scale
        scaled[nodes] = logits.softmax(-1).numpy()
        forget(mean, scaled)
    return scaled


def majority_stage(stages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Combine ``(replicas, n)`` labeled stages.

    If most replicas labeled a node, return the lower median of their stages, else ``NOT_LABELED``.
    """
    labeled = stages != NOT_LABELED
    count = labeled.sum(axis=0)
    by_stage = np.sort(np.where(labeled, stages, np.iinfo(np.int64).max), axis=0)
    middle = np.take_along_axis(by_stage, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    return np.where(count > len(stages) / 2, middle, NOT_LABELED)


def _mean_by_name(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([own[name] for own in values])) for name in values[0]}


def _number(table: NDArray[np.void], replica: int) -> NDArray[np.void]:
    table = table.copy()
    table["replica"] = replica
    return table
