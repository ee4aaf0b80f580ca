"""How good predictions are."""

from dcgst.evaluate.metrics import accuracy

__all__ = ["accuracy"]
