"""The paper's figures, made from records."""

from dcgst.bench.figures.registry import CAPTIONS, FIGURES, draw, draw_study
from dcgst.bench.figures.style import import_matplotlib, save
from dcgst.bench.figures.variant import compare_graphs

__all__ = [
    "CAPTIONS",
    "FIGURES",
    "compare_graphs",
    "draw",
    "draw_study",
    "import_matplotlib",
    "save",
]
