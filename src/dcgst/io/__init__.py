"""From files and other libraries' objects to graphs."""

from dcgst.io.read import Columns, Input, read

__all__ = ["Columns", "Input", "read"]
