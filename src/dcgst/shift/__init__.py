"""How far two sets of nodes are apart: pure functions of tensors and matrices."""

from dcgst.shift.cmd import cmd
from dcgst.shift.ppr import ppr_distances, ppr_push, ppr_rows

__all__ = ["cmd", "ppr_distances", "ppr_push", "ppr_rows"]
