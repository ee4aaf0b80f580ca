"""The ensemble: several methods, each fitted alone, weighted by left-out labels."""

from dcgst.methods.ensemble.method import Ensemble

__all__ = ["Ensemble"]
