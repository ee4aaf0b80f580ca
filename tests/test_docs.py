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
        told = rf"`{field.name}[`=]|--set {field.name}="
        assert re.search(told, own + shared), field.name


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
