"""Run folders: results of a fit in documented files."""

from dcgst.runs.fitting import REPLICAS, fit
from dcgst.runs.predictions import GIVEN, PREDICTED, PSEUDO
from dcgst.runs.run import Run, open_run

__all__ = ["GIVEN", "PREDICTED", "PSEUDO", "REPLICAS", "Run", "fit", "open_run"]
