"""What becomes of the columns of a table: kinds, fitted encoders, features."""

from dcgst.io.encoders.features import FeatureEncoder
from dcgst.io.encoders.fitting import fit_encoder
from dcgst.io.encoders.kinds import KINDS, UNUSED

__all__ = ["KINDS", "UNUSED", "FeatureEncoder", "fit_encoder"]
