"""Render the templates of pages; a page is one file that needs no network."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from dcgst.text import printable


def render_template(name: str, **content: Any) -> str:
    """Render a template of ``templates/`` with autoescaping."""
    from jinja2 import Environment, FunctionLoader

    folder = resources.files("dcgst.insight.report").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda file: folder.joinpath(file).read_text(encoding="utf-8")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    return environment.get_template(name).render(**content)


def to_script(value: Any) -> str:
    """JSON that is safe inside a ``script`` element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
