"""Update the short table in README.md from results/reproduce.jsonl."""

from __future__ import annotations

from pathlib import Path

from dcgst.bench.pages import summary_table
from dcgst.bench.records import Records
from dcgst.files import write_text

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- summary table -->\n", "<!-- end of summary table -->"
"""Comments in README.md before and after the table."""


def main() -> None:
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    table = summary_table(Records(ROOT / "results" / "reproduce.jsonl"))
    write_text(readme, f"{before}{BEGIN}{table}\n{END}{after}")


if __name__ == "__main__":
    main()
