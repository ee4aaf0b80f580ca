"""A labeling session: which node comes next, what was labeled, how good the run is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.evaluate.estimate import estimate_share
from dcgst.files import write_rows
from dcgst.insight import draw_audit, suggest
from dcgst.insight.comparison import compare
from dcgst.insight.label_rows import CHOSEN, RANDOM, SUGGESTED, id_and_label
from dcgst.insight.suggestion import CANDIDATES, similarity_space
from dcgst.label.cards import make_card
from dcgst.label.journal import LABEL, Event, Journal
from dcgst.label.layout import landmark_positions, quick_positions
from dcgst.label.refitting import Refit
from dcgst.runs import Run, open_run

SELECTED = "selected"
"""How a node was chosen that a person picked from the map or by search."""

SUGGESTIONS = 60
MOST_FOUND = 20
MAX_NAME = 200
"""Characters of a class name."""


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
        self.node_of = {str(node_id): node for node, node_id in enumerate(run.graph.ids.tolist())}
        self.class_names = list(run.graph.class_names)
        for name in dict.fromkeys(journal.state.classes.values()):
            self._know_class(name)
        self.random_order: list[int] = []
        if run.split.pool[0].any():
            count = int(run.split.pool[0].sum())
            self.random_order = draw_audit(run, count, seed=seed).tolist()
        self.suggestions: list[dict[str, Any]] = []
        self.refit = Refit()
        self.comparison: dict[str, Any] | None = None
        self.version = 0  # of map positions and predictions
        self.positions = np.zeros((run.graph.num_nodes, 2), dtype=np.float32)
        self.shown: dict[str, int] = {}  # the node that each client has
        self.turn: dict[str, int] = {}

    # --- background work --------------------------------------------------------------------

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

    # --- cards ------------------------------------------------------------------------------

    def next_card(self, client: str, mode: str) -> dict[str, Any] | None:
        """The next node for a client.

        Args:
            client: the browser tab.
            mode: ``audit`` for random nodes, ``suggest`` for informative ones, ``both`` for each in
                turn.
        """
        with self.lock:
            turn = self.turn[client] = self.turn.get(client, -1) + 1
            kinds = {"audit": [RANDOM], "suggest": [SUGGESTED]}.get(mode)
            if kinds is None:
                kinds = [RANDOM, SUGGESTED] if turn % 2 == 0 else [SUGGESTED, RANDOM]
            for kind in kinds:
                node = self._next_node(client, kind)
                if node is not None:
                    self.shown[client] = node
                    return self.card(node, kind)
            self.shown.pop(client, None)
            return None

    def _next_node(self, client: str, kind: str) -> int | None:
        """The first node of a queue that is neither decided nor shown to another client."""
        state = self.journal.state
        others = {node for name, node in self.shown.items() if name != client}
        queue = self.random_order if kind == RANDOM else [s["node"] for s in self.suggestions]
        for node in queue:
            node_id = str(self.run.graph.ids[node])
            decided = node_id in state.classes or node_id in state.skipped
            if not decided and node not in others:
                return node
        return None

    def card(self, node: int, chosen: str) -> dict[str, Any]:
        """What to show of a node; predictions are hidden for randomly chosen ones."""
        if not 0 <= node < self.run.graph.num_nodes:
            raise InputError(f"there is no node at position {node}")
        with self.lock:
            hidden = chosen == RANDOM
            card = make_card(self.run, node, self.journal.state, hide_predictions=hidden)
            reason = next((s for s in self.suggestions if s["node"] == node), None)
            return {**card, "chosen": chosen, "reason": None if hidden else reason}

    def search(self, text: str) -> list[dict[str, Any]]:
        """Nodes whose id contains a text, the shortest ids first."""
        text = text.strip().lower()
        if not text:
            return []
        found = [node_id for node_id in self.node_of if text in node_id.lower()]
        found.sort(key=lambda node_id: (len(node_id), node_id))
        return [{"id": node_id, "node": self.node_of[node_id]} for node_id in found[:MOST_FOUND]]

    # --- decisions --------------------------------------------------------------------------

    def decide(
        self, client: str, kind: str, nodes: Sequence[int], name: str = "", chosen: str = SELECTED
    ) -> None:
        """Store a decision about nodes; it is on the disk when this returns."""
        ids = self.run.graph.ids
        if not nodes or not all(0 <= node < len(ids) for node in nodes):
            raise InputError("a decision needs at least one node of the graph")
        name = name.strip()
        if kind == LABEL and not 0 < len(name) <= MAX_NAME:
            raise InputError(f"the name of a class needs 1 to {MAX_NAME} characters")
        with self.lock:
            if chosen == RANDOM and not set(nodes) <= set(self.random_order):
                chosen = SELECTED
            self.journal.decide(kind, client, [str(ids[node]) for node in nodes], name, chosen)
            if kind == LABEL:
                self._know_class(name)

    def undo(self, client: str, *, again: bool = False) -> Event | None:
        """Take back the last decision of a client, or restore it."""
        with self.lock:
            return self.journal.redo(client) if again else self.journal.undo(client)

    def _know_class(self, name: str) -> None:
        if name not in self.class_names:
            self.class_names.append(name)

    # --- state ------------------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """Counts, estimate, state of the fit."""
        self._collect_refit()
        with self.lock:
            state = self.journal.state
            random = [i for i in state.random if i in state.classes]
            return {
                "run": self.run.folder.name,
                "classes": self.class_names,
                "nodes": self.run.graph.num_nodes,
                "labels": len(state.classes),
                "random": len(random),
                "skipped": len(state.skipped),
                "given": int(self.base.split.given[0].sum()),
                "estimate": self._estimate(random),
                "suggestions": len(self.suggestions),
                "version": self.version,
                "refit": asdict(self.refit.status()),
                "comparison": self.comparison,
            }

    def _estimate(self, ids: list[str]) -> dict[str, Any] | None:
        """Accuracy of the predictions of the current run, from labels that it did not use."""
        run, state = self.run, self.journal.state
        nodes = np.array([self.node_of[i] for i in ids], dtype=np.int64)
        unused = ~run.split.train[0][nodes] if nodes.size else np.zeros(0, dtype=bool)
        nodes = nodes[unused]
        if not nodes.size:
            return None
        names = np.array(run.graph.class_names)
        truth = [state.classes[str(run.graph.ids[node])] for node in nodes]
        proba = run.result.proba
        confidence = proba.max(axis=1)
        found = estimate_share(
            names[proba[nodes].argmax(axis=1)] == np.array(truth),
            confidence[nodes],
            confidence[run.split.pool[0]],
        )
        return asdict(found)

    def points(self) -> bytes:
        """Map data: x, y and confidence as float32, then class and source as int32."""
        with self.lock:
            result, n = self.run.result, self.run.graph.num_nodes
            state = self.journal.state
            codes = result.labels.astype(np.int32)
            source = np.where(self.run.split.given[0], 1, 0).astype(np.int32)
            number = {name: code for code, name in enumerate(self.class_names)}
            order = np.array([number[name] for name in self.run.graph.class_names], dtype=np.int32)
            codes = order[codes]
            for node_id, name in state.classes.items():
                node = self.node_of[node_id]
                codes[node], source[node] = number[name], 2
            confidence = result.proba.max(axis=1).astype(np.float32)
            columns = (self.positions[:, 0], self.positions[:, 1], confidence, codes, source)
            return np.int32(n).tobytes() + b"".join(
                np.ascontiguousarray(c).tobytes() for c in columns
            )

    def label_rows(self) -> list[dict[str, Any]]:
        """The labels as rows for ``dcgst refit --labels``."""
        id_column, label_column = id_and_label(self.base)
        with self.lock:
            state = self.journal.state
            return [
                {
                    id_column: node_id,
                    label_column: name,
                    CHOSEN: RANDOM if node_id in state.random else SUGGESTED,
                }
                for node_id, name in state.classes.items()
            ]

    def write_export(self) -> Path | None:
        """Write the labels as a table; None if there are none."""
        rows = self.label_rows()
        if not rows:
            return None
        write_rows(self.export, rows)
        return self.export

    # --- fit again --------------------------------------------------------------------------

    def start_refit(self) -> None:
        """Fit the base run again with all labels, in another process."""
        with self.lock:
            if self.refit.running:
                raise InputError("a fit is running already")
            path = self.write_export()
            if path is None:
                raise InputError("there are no new labels to fit to")
            self.comparison = None
            self.refit.start(self.base.folder, path, self._next_folder())

    def _next_folder(self) -> Path:
        number = 2
        while (folder := self.base.folder.with_name(f"{self.base.folder.name}-{number}")).exists():
            number += 1
        return folder

    def _collect_refit(self) -> None:
        """Show the predictions of a fit that has ended."""
        status = self.refit.status()
        if status.state != "done" or Path(status.folder) == self.run.folder:
            return
        new = open_run(status.folder)
        found = compare(self.run, new)
        with self.lock:
            self.comparison = asdict(found)
            self.run = new
            self.version += 1
        threading.Thread(target=self._suggest, daemon=True).start()
