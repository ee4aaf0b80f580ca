"""Limits on the size of files and functions, and American spelling."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for folder in ("src", "tests", "tools", "benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
TEXTS = [*FILES, *ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
BRITISH = re.compile(
    r"neighbour|colour|behaviour|favour|\bcentre|\bgrey\b|licence|catalogue|labelled|modelled|dialled|"
    r"(normal|optim|minim|maxim|initial|regular|general|personal|recogn|real|organ|summar|"
    r"vector|token|random|standard|parameter)is(e|ed|es|ing|ation|er)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_without_docstring_are_short(path):
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is None:
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 40, f"{node.name} has {length} lines and no docstring"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_spelling_is_american(path):
    if path == Path(__file__):
        return
    # Accepted input, a stored value, a word of the example data, names in Markdown.
    allowed = re.compile(r"unlabelled|\"normalised\"|shape colour|`[^`]*`")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if BRITISH.search(allowed.sub("", line))]
    assert not found, found[:3]
