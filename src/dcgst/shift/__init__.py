"""Distribution shift between sets of nodes: pure functions of tensors and matrices."""

from dcgst.shift.cmd import cmd, labeled_shift
from dcgst.shift.ppr import ppr_distances, ppr_push, ppr_rows

__all__ = ["cmd", "labeled_shift", "ppr_distances", "ppr_push", "ppr_rows"]
