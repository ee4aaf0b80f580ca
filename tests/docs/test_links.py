"""Every method and setting is documented, and links work."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from dcgst.methods import METHODS

ROOT = Path(__file__).parents[2]
METHOD_PAGES = ROOT / "docs" / "methods"


@pytest.mark.parametrize("name", METHODS)
def test_method_has_a_page_with_all_settings(name):
    shared = (METHOD_PAGES / "README.md").read_text(encoding="utf-8")
    link = re.search(rf"\[`{name}`\]\((\w+\.md)\)", shared)
    assert link, f"methods/README.md has no link to {name}"
    own = (METHOD_PAGES / link[1]).read_text(encoding="utf-8")
    for field in dataclasses.fields(METHODS[name]):
        mentioned = rf"`{field.name}[`=]|--set {field.name}="
        assert re.search(mentioned, own + shared), field.name


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs generate them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_targets(page):
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors_of(linked), target


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "name"), re.findall(r"`([a-z_/]+)\.py`(?:: `([\w.]+)`)?", GLOSSARY)
)
def test_the_glossary_names_code_that_exists(path, name):
    found = importlib.import_module(f"dcgst.{path.replace('/', '.')}")
    for part in name.split(".") if name else ():
        found = getattr(found, part)
