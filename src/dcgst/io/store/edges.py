"""Import an edge table: the adjacency matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcgst.errors import InputError
from dcgst.io.store.adjacency import AdjacencyBuilder
from dcgst.io.store.job import BATCH, Job
from dcgst.io.store.sql import clean, number_of

LARGEST = 3e38
"""Largest edge weight."""


def import_edges(job: Job, count: int) -> dict[str, Any]:
    """Look up the ends of all edges, and write the adjacency matrix."""
    ends = job.plan.edge_columns
    total = job.database.row("select count(*) from edges")[0]
    weighted = ends.weight is not None
    builder = AdjacencyBuilder(
        job.out, job.work, count, total, weighted=weighted, memory=job.memory // 8
    )
    weight = f", {number_of(ends.weight)} as weight" if ends.weight is not None else ""
    query = (
        f"select s.dcgst_node as s, t.dcgst_node as t{weight} from edges "
        f"left join ids s on {clean(ends.source)} = s.dcgst_id "
        f"left join ids t on {clean(ends.target)} = t.dcgst_id"
    )
    done = dropped = 0
    for batch in job.database.batches(query, 10 * BATCH):
        unknown = np.asarray(batch["s"].is_null()) | np.asarray(batch["t"].is_null())
        dropped += int(unknown.sum())
        if dropped and not job.plan.drop_unknown:
            raise unknown_end(job)
        known = batch.filter(~unknown)
        weights = None
        if weighted:
            exact = known["weight"].to_numpy(zero_copy_only=False)
            if not ((exact >= 0) & (exact <= LARGEST)).all():
                raise wrong_weight(job)
            weights = exact.astype(np.float32)
        builder.add(known["s"].to_numpy(), known["t"].to_numpy(), weights)
        done += batch.num_rows
        job.progress("edges", 0.7 * done / max(1, total))
    counts = builder.finish(lambda share: job.progress("edges", 0.7 + 0.3 * share))
    if not counts.entries:
        raise InputError(
            f"{job.plan.edges} has no edge between two different nodes of the node table; at "
            "least one is required"
        )
    notes = [f"edges with unknown node ids dropped: {dropped}"] if dropped else []
    return {
        "num_entries": counts.entries,
        "index": counts.index,
        "weighted": weighted,
        "notes": [*notes, *counts.notes()],
    }


def unknown_end(job: Job) -> InputError:
    ends = job.plan.edge_columns
    numbered = (
        f"(select row_number() over () as place, {clean(ends.source)} as a, "
        f"{clean(ends.target)} as b from edges)"
    )
    place, left, right, known = job.database.row(
        f"select place, a, b, s.dcgst_id is not null from {numbered} "
        "left join ids s on a = s.dcgst_id left join ids t on b = t.dcgst_id "
        "where s.dcgst_id is null or t.dcgst_id is null order by place limit 1"
    )
    unknown = right if known else left
    what = "(the cell is empty)" if unknown is None else repr(unknown)
    return InputError(
        f"{job.plan.edges}, row {place}: no node has the id {what}; fix it, or drop such "
        "edges with --drop-unknown"
    )


def wrong_weight(job: Job) -> InputError:
    column = str(job.plan.edge_columns.weight)
    number = number_of(column)
    place, text = job.database.row(
        f"select place, text from (select row_number() over () as place, {clean(column)} as "
        f"text, {number} as number from edges) "
        f"where number is null or number < 0 or number > {LARGEST} limit 1"
    )
    return InputError(
        f"{job.plan.edges}, row {place}: the edge weight in column {column!r} must be a "
        f"number from 0 to {LARGEST:g}, got {text or ''!r}; fix it, or remove the edge"
    )
