"""Update docs/suite.md, and tables in README.md and docs/measurements.md, from results/."""

from __future__ import annotations

from pathlib import Path

from dcgst.bench.iceberg import iceberg_section
from dcgst.bench.pages import summary_table
from dcgst.bench.records import Records
from dcgst.bench.suite_page import render_suite, suite_summary
from dcgst.files import write_text

ROOT = Path(__file__).parents[1]


def replace_between(text: str, name: str, content: str) -> str:
    """Replace what is between the comments before and after a table."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}{content}\n{end}{after}"


def main() -> None:
    paper, suite = (Records(ROOT / "results" / f"{name}.jsonl") for name in ("reproduce", "suite"))
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = replace_between(text, "summary table", summary_table(paper))
    text = replace_between(text, "suite table", suite_summary(suite))
    write_text(readme, text)
    write_text(ROOT / "docs" / "suite.md", render_suite(suite))
    measurements = ROOT / "docs" / "measurements.md"
    text = measurements.read_text(encoding="utf-8")
    section = iceberg_section(Records(ROOT / "results" / "iceberg.jsonl"))
    write_text(measurements, replace_between(text, "iceberg table", section))


if __name__ == "__main__":
    main()
