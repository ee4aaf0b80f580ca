"""Why a node has the class it has: when it was trusted, by what, and who speaks for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcgst.runs import GIVEN_LABEL, PSEUDO_LABEL, Run
from dcgst.shift.ppr import ppr_push

TELEPORT = 0.1


@dataclass(frozen=True)
class Opinion:
    """What one stage of one replica made of the node.

    Attributes:
        replica: which.
        stage: which.
        predicted: the class it was believed to have.
        confidence: how likely.
        rank: its place among the candidates of that class, from 1.
        q: how much it was wanted to close the shift, from 0 to 1; None if nobody asked.
        ner: what its label would tell its neighbours, in nats; None if nobody asked.
        chosen: whether it became a pseudo-label.
        shift_before: CMD of the given labels alone, in the stage's representation.
        shift: the same with the pseudo-labels chosen in it.
    """

    replica: int
    stage: int
    predicted: str
    confidence: float
    rank: int
    q: float | None
    ner: float | None
    chosen: bool
    shift_before: float | None
    shift: float | None


@dataclass(frozen=True)
class Neighbour:
    """A node beside it, or a labeled one not far."""

    id: str
    predicted: str
    probability: float
    source: str
    weight: float
    """Of the edge; for a labeled node, its share among the labels that a random walk meets."""


@dataclass(frozen=True)
class Explanation:
    """All that speaks for and against a node's class."""

    id: str
    predicted: str
    probability: float
    source: str
    agreement: float
    second: str
    second_probability: float
    opinions: list[Opinion]
    neighbours: list[Neighbour]
    labeled: list[Neighbour]
    summary: list[str]


def explain(run: Run, node_id: object, most: int = 8) -> Explanation:
    """When and why a node was or was not given a pseudo-label, and who speaks for its class.

    Args:
        run: the run.
        node_id: the node's own id.
        most: how many neighbours and labeled nodes to tell of.
    """
    node = run.node(node_id)
    names, code = run.graph.class_names, int(run.labels[node])
    order = np.argsort(-run.proba[node])
    second = int(order[1] if order[0] == code else order[0])
    opinions = _opinions(run, node)
    own = _neighbours(run, node, most)
    near = _labeled(run, node, most)
    found = Explanation(
        id=str(run.graph.ids[node]),
        predicted=names[code],
        probability=float(run.proba[node, code]),
        source=_source(run, node),
        agreement=float(run.agreement[node]),
        second=names[second],
        second_probability=float(run.proba[node, second]),
        opinions=opinions,
        neighbours=own,
        labeled=near,
        summary=[],
    )
    found.summary.extend(_summary(found, run, node))
    return found


def _opinions(run: Run, node: int) -> list[Opinion]:
    records = {(int(r["replica"]), int(r["stage"])): r for r in run.history}

    def noted(row: np.void, key: str) -> float | None:
        return records.get((int(row["replica"]), int(row["stage"])), {}).get(key)

    return [
        Opinion(
            replica=int(row["replica"]),
            stage=int(row["stage"]),
            predicted=run.graph.class_names[row["label"]],
            confidence=float(row["confidence"]),
            rank=int(row["rank"]) + 1,
            q=_known(row["q"]),
            ner=_known(row["ner"]),
            chosen=bool(row["chosen"]),
            shift_before=noted(row, "cmd_before"),
            shift=noted(row, "cmd"),
        )
        for row in run.audit[run.audit["node"] == node]
    ]


def _known(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)


def _neighbours(run: Run, node: int, most: int) -> list[Neighbour]:
    """The nodes beside it, the strongest edges and surest classes first."""
    adjacency = run.graph.adjacency
    inside = slice(adjacency.indptr[node], adjacency.indptr[node + 1])
    nodes, weights = adjacency.indices[inside], adjacency.data[inside]
    order = np.lexsort((-_sureness(run, nodes), -weights))[:most]
    return [_neighbour(run, int(nodes[i]), float(weights[i])) for i in order]


def _labeled(run: Run, node: int, most: int) -> list[Neighbour]:
    """The given labels that a random walk from here meets most."""
    walk = ppr_push(run.graph.adjacency, node, TELEPORT)
    given = run.split.train[0] | run.split.val[0]
    met = np.where(given, walk, 0)
    met[node] = 0
    total = met.sum()
    nodes = np.argsort(-met, kind="stable")[:most]
    return [_neighbour(run, int(i), float(met[i] / total)) for i in nodes if met[i] > 0]


def _neighbour(run: Run, node: int, weight: float) -> Neighbour:
    code = int(run.labels[node])
    return Neighbour(
        str(run.graph.ids[node]),
        run.graph.class_names[code],
        float(run.proba[node, code]),
        _source(run, node),
        weight,
    )


def _sureness(run: Run, nodes: NDArray[np.int32]) -> NDArray[np.float32]:
    sure: NDArray[np.float32] = run.proba[nodes].max(axis=1)
    return sure


def _source(run: Run, node: int) -> str:
    if run.split.train[0][node] or run.split.val[0][node]:
        return GIVEN_LABEL
    return PSEUDO_LABEL if run.stage[node] > 0 else "predicted"


def _summary(found: Explanation, run: Run, node: int) -> list[str]:
    """The story in sentences."""
    if found.source == GIVEN_LABEL:
        lines = [f"Its class, {found.predicted}, was given."]
        if found.second_probability > found.probability:
            lines.append(
                f"The model alone would say {found.second} ({found.second_probability:.0%}) rather "
                f"than {found.predicted} ({found.probability:.0%}): the label may be worth a look."
            )
        return lines
    lines = [
        f"It is {found.predicted} with probability {found.probability:.0%}; next is {found.second} "
        f"with {found.second_probability:.0%}."
    ]
    replicas = int(run.info["settings"].get("replicas", 1))
    if replicas > 1:
        lines.append(f"{found.agreement:.0%} of {replicas} replicas say so.")
    chosen = [opinion for opinion in found.opinions if opinion.chosen]
    if not run.audit.size:
        lines.append(f"{run.info['method']} gives no pseudo-labels.")
    elif not found.opinions:
        lines.append("It was never among the most confident of its class, so never a candidate.")
    elif not chosen:
        stages = sorted({opinion.stage for opinion in found.opinions})
        by_shift = any(opinion.q is not None for opinion in found.opinions)
        reason = "others were wanted more" if by_shift else "others were more confident"
        lines.append(f"It was a candidate from stage {stages[0]} on, but {reason}.")
    else:
        first = min(chosen, key=lambda opinion: opinion.stage)
        taught = len({opinion.replica for opinion in chosen})
        lines.append(
            f"It first became a pseudo-label ({first.predicted}) in stage {first.stage}, with "
            f"confidence {first.confidence:.0%} and rank {first.rank} in its class; {taught} of "
            f"{replicas} replicas trained on it."
            + ("" if found.source == PSEUDO_LABEL else " Most did not keep it to the end.")
        )
    same = sum(n.predicted == found.predicted for n in found.neighbours)
    if found.neighbours:
        lines.append(f"Neighbours of the same class: {same} of the {len(found.neighbours)} shown.")
    else:
        lines.append("It has no neighbours: its features alone speak for it.")
    if found.labeled:
        weight = sum(n.weight for n in found.labeled if n.predicted == found.predicted)
        lines.append(f"Of the labels nearby, {weight:.0%} (by random walk) are {found.predicted}.")
    elif found.neighbours:
        lines.append("No label can be reached from it along edges.")
    return lines
