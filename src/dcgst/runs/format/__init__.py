"""The run folder: which files it has and what is in them. See docs/run-folder.md.

No other package knows the format. ``run.json`` is written last: a folder that has it is complete.
"""

from dcgst.runs.format.layout import (
    CHECKPOINT,
    FORMAT,
    PREDICTIONS,
    PREDICTIONS_PARQUET,
    REPORT,
    Stored,
    identity,
    locked,
    prepare,
    remove,
    stored_steps,
)
from dcgst.runs.format.reading import read, read_node_table, read_probabilities
from dcgst.runs.format.writing import write

__all__ = [
    "CHECKPOINT",
    "FORMAT",
    "PREDICTIONS",
    "PREDICTIONS_PARQUET",
    "REPORT",
    "Stored",
    "identity",
    "locked",
    "prepare",
    "read",
    "read_node_table",
    "read_probabilities",
    "remove",
    "stored_steps",
    "write",
]
