"""Put the main table of results/reproduce.jsonl into the README, between its two marks."""

from __future__ import annotations

from pathlib import Path

from dcgst.bench.pages import main_table
from dcgst.bench.records import Records

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- main table -->\n", "\n<!-- end of it -->"

if __name__ == "__main__":
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    table = main_table(Records(ROOT / "results" / "reproduce.jsonl"))
    readme.write_text(before + BEGIN + table + END + after, encoding="utf-8")
