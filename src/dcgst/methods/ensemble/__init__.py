"""The ensemble: several methods, each fitted alone, weighted by left-out labels."""

from dcgst.methods.ensemble.ensemble import Ensemble

__all__ = ["Ensemble"]
