"""Run folders: what a fit found, in files that stay readable."""

from dcgst.runs.fitting import REPLICAS, fit
from dcgst.runs.predictions import GIVEN_LABEL, PREDICTED, PSEUDO_LABEL
from dcgst.runs.run import Run, open_run

__all__ = ["GIVEN_LABEL", "PREDICTED", "PSEUDO_LABEL", "REPLICAS", "Run", "fit", "open_run"]
