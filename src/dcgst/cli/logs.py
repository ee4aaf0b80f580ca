"""Messages on standard error: as text, or as JSON lines for other programs."""

from __future__ import annotations

import json
import sys
import time

from dcgst.text import printable, without_passwords

_json = False


def write_json_logs(value: bool) -> None:
    """Whether to write further messages as JSON lines."""
    global _json
    _json = value


def as_json(text: str) -> str | None:
    """A message as a JSON object with time, level and text; None if messages are written as text.

    The level is ``error``, ``warning`` or ``info``, by the first word of the message.
    """
    if not _json:
        return None
    levels = {"Error:": "error", "Failed:": "error", "Warning:": "warning"}
    text = without_passwords(text)
    first, _, rest = text.strip().partition(" ")
    level = levels.get(first, "info")
    message = rest if first in levels else text.strip()
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"time": moment, "level": level, "message": message}, ensure_ascii=False)


def log(text: str) -> None:
    """Write a message to standard error."""
    print(as_json(text) or printable(text), file=sys.stderr)
