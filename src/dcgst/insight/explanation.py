"""Explanation of a node's class: its stages as a candidate, its neighbors, nearby labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcgst.runs import GIVEN, PSEUDO, Run
from dcgst.runs.predictions import source_of
from dcgst.shift.ppr import ppr_push

TELEPORT = 0.1


@dataclass(frozen=True)
class Candidacy:
    """A stage of a replica in which the node was a candidate for a pseudo-label.

    Attributes:
        replica: number of the replica.
        stage: number of the stage.
        predicted: predicted class.
        confidence: its probability.
        rank: rank by confidence among the pool nodes of that class, from 1.
        selection_score: from 0 to 1; None if the method has none.
        ner: neighborhood entropy reduction in nats; None if the method has none.
        selected: whether the node got a pseudo-label.
        shift_before: CMD of the given labels alone, in the representation of the stage.
        shift_after: CMD with the pseudo-labels of the stage.
    """

    replica: int
    stage: int
    predicted: str
    confidence: float
    rank: int
    selection_score: float | None
    ner: float | None
    selected: bool
    shift_before: float | None
    shift_after: float | None


@dataclass(frozen=True)
class RelatedNode:
    """A neighbor, or a labeled node nearby.

    Attributes:
        id: its id.
        predicted: its class.
        probability: the probability of that class.
        source: ``given``, ``pseudo`` or ``predicted``.
        weight: edge weight of a neighbor; for a labeled node, its share of the PageRank from the
            explained node among all labeled nodes.
    """

    id: str
    predicted: str
    probability: float
    source: str
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Why a node has its class.

    Attributes:
        id: id of the node.
        predicted: its class.
        probability: the probability of that class.
        source: ``given``, ``pseudo`` or ``predicted``.
        agreement: share of replicas that predict the same class.
        second: the second most likely class.
        second_probability: its probability.
        candidacies: stages in which the node was a candidate for a pseudo-label.
        neighbors: its neighbors, strongest edges first.
        labeled: labeled nodes nearby, by PageRank.
        summary: the explanation in sentences.
    """

    id: str
    predicted: str
    probability: float
    source: str
    agreement: float
    second: str
    second_probability: float
    candidacies: list[Candidacy]
    neighbors: list[RelatedNode]
    labeled: list[RelatedNode]
    summary: list[str]


def explain(run: Run, node_id: object, most: int = 8) -> Explanation:
    """Explain the class of a node.

    Args:
        run: the run.
        node_id: id of the node.
        most: maximum number of neighbors and of labeled nodes to list.

    Example:
        >>> import tempfile
        >>> from dcgst import EM, fit, load
        >>> run = fit(load("synthetic"), tempfile.mkdtemp() + "/run", EM())
        >>> found = explain(run, "0")
        >>> found.id, found.probability > 0.25
        ('0', True)
    """
    node, result, names = run.node(node_id), run.result, run.graph.class_names
    code = int(result.labels[node])
    order = np.argsort(-result.proba[node])
    second = int(order[1] if order[0] == code else order[0])
    explanation = Explanation(
        id=str(run.graph.ids[node]),
        predicted=names[code],
        probability=float(result.proba[node, code]),
        source=source_of(result, node),
        agreement=float(result.agreement[node]),
        second=names[second],
        second_probability=float(result.proba[node, second]),
        candidacies=_candidacies(run, node),
        neighbors=_neighbors(run, node, most),
        labeled=_labeled(run, node, most),
        summary=[],
    )
    explanation.summary.extend(_summary(explanation, run))
    return explanation


def _candidacies(run: Run, node: int) -> list[Candidacy]:
    candidates = run.result.candidates
    records = {(int(r["replica"]), int(r["stage"])): r for r in run.result.history}
    found = []
    for row in candidates[candidates["node"] == node]:
        record = records.get((int(row["replica"]), int(row["stage"])), {})
        found.append(
            Candidacy(
                replica=int(row["replica"]),
                stage=int(row["stage"]),
                predicted=run.graph.class_names[row["label"]],
                confidence=float(row["confidence"]),
                rank=int(row["rank"]),
                selection_score=_number(row["selection_score"]),
                ner=_number(row["ner"]),
                selected=bool(row["selected"]),
                shift_before=record.get("cmd_before"),
                shift_after=record.get("cmd"),
            )
        )
    return found


def _number(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)


def _neighbors(run: Run, node: int, most: int) -> list[RelatedNode]:
    """The neighbors by edge weight, then by probability."""
    adjacency = run.graph.adjacency
    inside = slice(adjacency.indptr[node], adjacency.indptr[node + 1])
    nodes, weights = adjacency.indices[inside], adjacency.data[inside]
    order = np.lexsort((-run.result.proba[nodes].max(axis=1), -weights))[:most]
    return [_related(run, int(nodes[i]), float(weights[i])) for i in order]


def _labeled(run: Run, node: int, most: int) -> list[RelatedNode]:
    """The given labels with the largest PageRank from the node."""
    walk = ppr_push(run.graph.adjacency, node, TELEPORT)
    reached = np.where(run.split.given[0], walk, 0)
    reached[node] = 0
    total = reached.sum()
    nodes = np.argsort(-reached, kind="stable")[:most]
    return [_related(run, int(i), float(reached[i] / total)) for i in nodes if reached[i] > 0]


def _related(run: Run, node: int, weight: float) -> RelatedNode:
    code = int(run.result.labels[node])
    return RelatedNode(
        id=str(run.graph.ids[node]),
        predicted=run.graph.class_names[code],
        probability=float(run.result.proba[node, code]),
        source=source_of(run.result, node),
        weight=weight,
    )


def _summary(found: Explanation, run: Run) -> list[str]:
    """The explanation in sentences."""
    if found.source == GIVEN:
        lines = [f"Its class, {found.predicted}, is a given label."]
        if found.second_probability > found.probability:
            lines.append(
                f"The model would predict {found.second} ({found.second_probability:.0%}) instead "
                f"of {found.predicted} ({found.probability:.0%}); check the label."
            )
        return lines
    lines = [
        f"It is {found.predicted} with probability {found.probability:.0%}; the second class is "
        f"{found.second} with {found.second_probability:.0%}."
    ]
    replicas = int(run.info["settings"].get("replicas", 1))
    if replicas > 1:
        lines.append(f"{found.agreement:.0%} of {replicas} replicas predict this class.")
    if stages := _candidacy_summary(found, run, replicas):
        lines.append(stages)
    lines += _neighborhood_summary(found)
    left_out = [relation.name for relation in run.relations if not relation.weight]
    if left_out:
        lines.append(f"Edges of these kinds are not used: {', '.join(left_out)}.")
    return lines


def _candidacy_summary(found: Explanation, run: Run, replicas: int) -> str:
    """Whether and when the node got a pseudo-label; empty for methods without stages."""
    if not run.result.candidates.size:
        return ""
    if not found.candidacies:
        return "It was never among the most confident nodes of its class, so never a candidate."
    selected = [c for c in found.candidacies if c.selected]
    if not selected:
        first = min(c.stage for c in found.candidacies)
        scored = any(c.selection_score is not None for c in found.candidacies)
        reason = "a higher selection score" if scored else "a higher confidence"
        return f"It was a candidate from stage {first} on, but other nodes had {reason}."
    earliest = min(selected, key=lambda c: c.stage)
    trained = len({c.replica for c in selected})
    text = (
        f"It first got a pseudo-label ({earliest.predicted}) in stage {earliest.stage}, with "
        f"confidence {earliest.confidence:.0%} and rank {earliest.rank} in its class"
    )
    many = f"; {trained} of {replicas} replicas trained on it in some stage" if replicas > 1 else ""
    dropped = "" if found.source == PSEUDO else ", but it was not kept to the end"
    return f"{text}{many}{dropped}."


def _neighborhood_summary(found: Explanation) -> list[str]:
    if not found.neighbors:
        return ["It has no neighbors: its class depends on its features only."]
    same = sum(n.predicted == found.predicted for n in found.neighbors)
    lines = [f"Neighbors of the same class: {same} of the {len(found.neighbors)} shown."]
    if found.labeled:
        weight = sum(n.weight for n in found.labeled if n.predicted == found.predicted)
        lines.append(
            f"Of the labels nearby, {weight:.0%} (weighted by PageRank) are {found.predicted}."
        )
    else:
        lines.append("No given label is near it in the graph.")
    return lines
