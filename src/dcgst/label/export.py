"""The labels of a session as a table for ``dcgst refit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dcgst.files import write_rows
from dcgst.insight.label_rows import CHOSEN, RANDOM, SUGGESTED, id_and_label
from dcgst.label.journal import Journal, LabelState
from dcgst.runs import Run


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
