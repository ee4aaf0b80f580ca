"""Quality of predictions: accuracy and calibration."""

from dcgst.evaluate.calibration import (
    Calibration,
    calibrate,
    expected_calibration_error,
    reliability,
)
from dcgst.evaluate.quality import accuracy

__all__ = ["Calibration", "accuracy", "calibrate", "expected_calibration_error", "reliability"]
