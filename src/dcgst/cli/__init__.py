"""The command line: ``dcgst VERB``."""

from __future__ import annotations

from dcgst.cli.app import main

__all__ = ["main"]
