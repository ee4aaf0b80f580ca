"""What MkDocs cannot know: the figures lie outside docs/, and docstrings are written for Sphinx."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FIGURES = "results/figures"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the figures of the results page into the site."""
    for figure in sorted((Path(config.config_file_path).parent / FIGURES).glob("*.svg")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the results page, which is generated and read in the repository too, at them."""
    return markdown.replace(f"](../{FIGURES}/", "](figures/")


class PlainDocstrings(Extension):
    """Sphinx's roles as code, and its formulas as blocks of LaTeX."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """A docstring as Markdown."""
    text = re.sub(r":(?:class|meth|func|data|mod|math):`~?([^`]+)`", r"`\1`", text)
    return re.sub(
        r"^( *)\.\. math:: (.+(?:\n\1 +\S.*)*)",
        lambda found: found[1] + "    " + re.sub(r"\n\s*", f"\n{found[1]}    ", found[2]),
        text,
        flags=re.MULTILINE,
    )
