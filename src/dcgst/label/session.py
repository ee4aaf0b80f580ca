"""A labeling session: which node comes next, what was labeled, how good the run is."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.files import next_folder, write_rows
from dcgst.insight import draw_audit, suggest
from dcgst.insight.comparison import compare
from dcgst.insight.suggestion import (
    CANDIDATES,
    SUGGESTED,
    id_and_label,
    similarity_space,
)
from dcgst.label.cards import (
    estimate_of,
    landmark_positions,
    make_card,
    map_points,
    quick_positions,
)
from dcgst.label.journal import LABEL, Journal, LabelState
from dcgst.label.refitting import Refit
from dcgst.runs import Run, open_run
from dcgst.tables.labels import CHOSEN, RANDOM
from dcgst.tables.table import clean_cell


def label_rows(run: Run, state: LabelState) -> list[dict[str, Any]]:
    """The labels as rows for ``dcgst refit --labels``."""
    id_column, label_column = id_and_label(run)
    return [
        {
            id_column: node_id,
            label_column: name,
            CHOSEN: RANDOM if node_id in state.random else SUGGESTED,
        }
        for node_id, name in state.classes.items()
    ]


def write_labels(path: Path, run: Run, journal: Journal) -> Path | None:
    """Write the labels as a table; without any, remove a table of labels that are undone."""
    rows = label_rows(run, journal.state)
    if rows:
        write_rows(path, rows)
        return path
    if journal.events:
        path.unlink(missing_ok=True)
    return None


SELECTED = "selected"
"""How a node was chosen that a person picked from the map or by search."""

RESERVED = 600
"""Seconds for which a node that a client shows is not given to another one."""

SUGGESTIONS, MOST_FOUND, MAX_NAME = 60, 20, 200
"""Numbers of suggestions and of search results, and of characters of a class name."""


@dataclass(frozen=True)
class Shown:
    """A node that a client has on its screen, how it was chosen, and since when."""

    node: int
    chosen: str
    since: float


class Session:
    """The state of the page; all methods may be called from several threads.

    Args:
        run: the run whose predictions are shown first.
        journal: file of labels.
        export: table of labels for ``dcgst refit``, written before each fit and at the end.
        seed: seed of the random nodes.
    """

    def __init__(self, run: Run, journal: Journal, export: Path, seed: int = 0) -> None:
        self.base, self.run, self.journal, self.export = run, run, journal, export
        self.lock = threading.RLock()
        self.node_of = run.graph.node_of
        for node_id in (i for event in journal.active for i in event.ids):
            if node_id not in self.node_of:
                raise InputError(
                    f"{journal.path} has a label of {node_id!r}, which is no node of {run.folder}; "
                    "choose another file with -o"
                )
        self.class_names = list(run.graph.class_names)
        for name in dict.fromkeys(journal.state.classes.values()):
            self._know_class(name)
        self.drawn: set[int] = set()  # random nodes that were shown
        self.random_order: list[int] = []
        if run.split.pool[0].any():
            count = int(run.split.pool[0].sum())
            self.random_order = draw_audit(run, count, seed=seed).tolist()
        self.suggestions: list[dict[str, Any]] = []
        self.refit = Refit()
        self.comparison: dict[str, Any] | None = None
        self.version = 0  # of map positions and predictions
        self.positions = np.zeros((run.graph.num_nodes, 2), dtype=np.float32)
        self.shown: dict[str, Shown] = {}  # the node that each client has
        self.turn: dict[str, int] = {}

    def prepare(self) -> None:
        """Compute suggestions and map positions; takes seconds, runs in a thread."""
        z = similarity_space(self.run.graph)
        self._set_positions(quick_positions(z))
        self._suggest()
        self._set_positions(landmark_positions(z))

    def _set_positions(self, positions: NDArray[np.float32]) -> None:
        with self.lock:
            self.positions = positions
            self.version += 1

    def _suggest(self) -> None:
        run = self.run
        labeled = run.split.given[0].copy()
        with self.lock:
            labeled[[self.node_of[node_id] for node_id in self.journal.state.classes]] = True
        count = min(SUGGESTIONS, int((~labeled).sum()), CANDIDATES)
        if not count:
            return
        found = suggest(run.graph, run.result.proba, labeled, count)
        listed = [
            {"node": s.node, "covers": round(s.covers, 4), "similar": s.nodes} for s in found.nodes
        ]
        with self.lock:
            self.suggestions = listed

    def next_card(self, client: str, mode: str, *, resume: bool = False) -> dict[str, Any] | None:
        """The next node for a client.

        Args:
            client: the browser tab.
            mode: ``audit`` for random nodes, ``suggest`` for informative ones, ``both`` for each in
                turn.
            resume: show the node that the client had, if it is not decided.
        """
        with self.lock:
            before = self.shown.get(client)
            if resume and before is not None and not self._decided(before.node):
                return self.card(client, before.node)
            turn = self.turn[client] = self.turn.get(client, -1) + 1
            kinds = {"audit": [RANDOM], "suggest": [SUGGESTED]}.get(mode)
            if kinds is None:
                kinds = [RANDOM, SUGGESTED] if turn % 2 == 0 else [SUGGESTED, RANDOM]
            for kind in kinds:
                node = self._next_node(client, kind)
                if node is not None:
                    if kind == RANDOM:
                        self.drawn.add(node)
                    return self.card(client, node, kind)
            self.shown.pop(client, None)
            return None

    def _next_node(self, client: str, kind: str) -> int | None:
        """The first node of a queue that is neither decided nor shown to another client."""
        oldest = time.monotonic() - RESERVED
        others = {
            shown.node
            for name, shown in self.shown.items()
            if name != client and shown.since > oldest
        }
        queue = self.random_order if kind == RANDOM else [s["node"] for s in self.suggestions]
        return next((n for n in queue if n not in others and not self._decided(n)), None)

    def _decided(self, node: int) -> bool:
        node_id, state = str(self.run.graph.ids[node]), self.journal.state
        return node_id in state.classes or node_id in state.skipped

    def card(self, client: str, node: int, chosen: str | None = None) -> dict[str, Any]:
        """What a client shows of a node; predictions are hidden for randomly chosen ones.

        A randomly chosen node stays one if the person looks at other nodes and comes back.

        Args:
            client: the browser tab.
            node: position of the node.
            chosen: how it was chosen; None if the client opens it, or has it already.
        """
        if not 0 <= node < self.run.graph.num_nodes:
            raise InputError(f"there is no node at position {node}")
        with self.lock:
            before = self.shown.get(client)
            waiting = {other for other in self.drawn if not self._decided(other)}
            if chosen is None and node in waiting:
                chosen = RANDOM
            elif chosen is None:
                same = before is not None and before.node == node
                chosen = before.chosen if before is not None and same else SELECTED
            self.shown[client] = Shown(node, chosen, time.monotonic())
            if chosen == RANDOM:
                waiting.add(node)
            card = make_card(self.run, node, self.journal.state, hidden=waiting)
            reason = next((s for s in self.suggestions if s["node"] == node), None)
            return {**card, "chosen": chosen, "reason": None if chosen == RANDOM else reason}

    def search(self, text: str) -> list[dict[str, Any]]:
        """Nodes whose id contains a text, the shortest ids first."""
        text = text.strip().lower()
        if not text:
            return []
        found = [node_id for node_id in self.node_of if text in node_id.lower()]
        found.sort(key=lambda node_id: (len(node_id), node_id))
        return [{"id": node_id, "node": self.node_of[node_id]} for node_id in found[:MOST_FOUND]]

    def decide(
        self, client: str, kind: str, nodes: Sequence[int], name: str = "", chosen: str = SELECTED
    ) -> None:
        """Store a decision about nodes; it is on the disk when this returns."""
        ids = self.run.graph.ids
        if not nodes or not all(0 <= node < len(ids) for node in nodes):
            raise InputError("a decision needs at least one node of the graph")
        name = name.strip()
        with self.lock:
            if kind == LABEL:
                self._check_name(name)
            if chosen == RANDOM and not self.base.split.pool[0][list(nodes)].all():
                chosen = SELECTED
            self.journal.decide(kind, client, [str(ids[node]) for node in nodes], name, chosen)
            if kind == LABEL:
                self._know_class(name)

    def undo(self, client: str, *, again: bool = False) -> dict[str, Any]:
        """Take back the last decision of a client, or restore it.

        Returns:
            the nodes it was about, and their card if a single one can be decided again.
        """
        with self.lock:
            event = self.journal.redo(client) if again else self.journal.undo(client)
            if event is None:
                return {"nodes": [], "card": None}
            nodes = [self.node_of[node_id] for node_id in event.ids]
            card = None
            if len(nodes) == 1 and not again:
                card = self.card(client, nodes[0], event.chosen or SELECTED)
            return {"nodes": nodes, "card": card}

    def _know_class(self, name: str) -> None:
        if name not in self.class_names:
            self.class_names.append(name)

    def overview(self) -> dict[str, Any]:
        """Counts, estimate, state of the fit."""
        with self.lock:
            state = self.journal.state
            random = state.random & state.classes.keys()
            estimate = estimate_of(self.run, self.base, state)
            return {
                "run": self.run.folder.name,
                "classes": self.class_names,
                "nodes": self.run.graph.num_nodes,
                "labels": len(state.classes),
                "random": len(random),
                "skipped": len(state.skipped),
                "random_skipped": len(state.random & state.skipped),
                "given": int(self.base.split.given[0].sum()),
                "estimate": None if estimate is None else asdict(estimate),
                "suggestions": len(self.suggestions),
                "version": self.version,
                "refit": asdict(self.refit.status),
                "comparison": self.comparison,
            }

    def points(self) -> bytes:
        """Data of the map."""
        with self.lock:
            return map_points(
                self.run, self.positions, self.journal.state, self.node_of, self.class_names
            )

    def label_rows(self) -> list[dict[str, Any]]:
        """The labels as rows for ``dcgst refit --labels``."""
        with self.lock:
            return label_rows(self.base, self.journal.state)

    def write_export(self) -> Path | None:
        """Write the labels as a table; None if there are none."""
        with self.lock:
            return write_labels(self.export, self.base, self.journal)

    def start_refit(self) -> None:
        """Fit the base run again with all labels, in another process."""
        with self.lock:
            if self.refit.running:
                raise InputError("a fit is running already")
            path = self.write_export()
            if path is None:
                raise InputError("there are no new labels to fit to")
            self.comparison = None
            folder = next_folder(self.base.folder)
            self.refit.start(self.base.folder, path, folder, self._show_new_run)

    def _show_new_run(self, folder: Path) -> None:
        """Show the predictions of a fit that has ended."""
        new = open_run(folder)
        both = self.run.split.pool[0] & new.split.pool[0]
        found = asdict(compare(self.run, new)) if both.any() else None
        with self.lock:
            self.comparison = found
            self.run = new
            self.version += 1
        self._suggest()

    def _check_name(self, name: str) -> None:
        if not 0 < len(name) <= MAX_NAME:
            raise InputError(f"the name of a class needs 1 to {MAX_NAME} characters")
        if clean_cell(name) != name:
            raise InputError(f"{name!r} means a missing value in tables; choose another name")
        known = {other.casefold(): other for other in self.class_names}
        if name not in self.class_names and name.casefold() in known:
            same = known[name.casefold()]
            raise InputError(f"{name!r} differs from {same!r} in letter case only; use {same!r}")
