"""The pages tell of every method and every setting."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from dcgst.methods import METHODS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page_that_tells_of_its_settings(name):
    page = DOCS / "methods" / f"{name}.md"
    own = (page if page.exists() else DOCS / "methods" / "floors.md").read_text(encoding="utf-8")
    shared = (DOCS / "methods" / "README.md").read_text(encoding="utf-8")
    assert f"`{name}`" in own or name == "dcgst"
    assert f"[`{name}`]" in shared
    for field in dataclasses.fields(METHODS[name]):
        assert f"`{field.name}" in own + shared or f"--set {field.name}" in own, field.name


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
