"""Run folders: results of a fit in documented files."""

from dcgst.runs.fitting import REPLICAS, default_replicas, fit
from dcgst.runs.predictions import GIVEN, PREDICTED, PSEUDO
from dcgst.runs.run import Run, open_run

__all__ = ["GIVEN", "PREDICTED", "PSEUDO", "REPLICAS", "Run", "default_replicas", "fit", "open_run"]
