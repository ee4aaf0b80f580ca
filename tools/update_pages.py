"""Update docs/suite.md, and tables in README.md and other pages, from results/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dcgst.bench.cells import Records
from dcgst.bench.claims import claim_sections, claims_table
from dcgst.bench.iceberg import iceberg_section
from dcgst.bench.pages import mean_table
from dcgst.bench.suite import GROUPS, SAMPLERS, render_suite, suite_summary
from dcgst.files import write_text

ROOT = Path(__file__).parents[1]


def replace_between(text: str, name: str, content: str) -> str:
    """Replace what is between the comments before and after a table."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}{content}\n{end}{after}"


def ensemble_table(path: Path) -> str:
    """Gaps of variants of the ensemble, measured by benchmarks/weights.py."""
    variants = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    regimes = [f"{sampler} {count}" for count in (0, 20) for sampler in SAMPLERS]
    head = ["", *(f"no validation: {group}" for group in GROUPS)]
    head += [f"20 labels: {group}" for group in GROUPS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for own in variants:
        cells = [
            " / ".join(f"{own[f'{group} {regime}'][0]:+.1f}" for regime in part)
            for part in (regimes[:3], regimes[3:])
            for group in GROUPS
        ]
        lines.append("| " + " | ".join([own["variant"], *cells]) + " |")
    return "\n".join(lines)


def readings(protocol: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The variants of DC-GST and what benchmarks/readings.py measured, by protocol."""
    variants = json.loads((ROOT / "benchmarks" / "readings.json").read_text(encoding="utf-8"))
    lines = (ROOT / "results" / "readings.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    own = [r for r in records if (r["preset"] == "default") == (protocol == "suite")]
    return list(variants[protocol]), own


def alternatives_table() -> str:
    """Accuracy and shift of DC-GST with other readings of the paper."""
    variants, records = readings("paper")
    found = {(record["variant"], record["dataset"]): record for record in records}
    lines = [
        "| | Cora | shift | CiteSeer | shift | PubMed | shift |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in variants:
        cells = []
        for dataset in ("cora", "citeseer", "pubmed"):
            own, rule = found[name, dataset], found["rule", dataset]
            values = np.subtract(own["accuracy"], rule["accuracy"])
            error = values.std(ddof=1) / len(values) ** 0.5
            change = f"{values.mean():+.1f} ± {error:.1f}".replace("-", "−")
            accuracy = f"{np.mean(own['accuracy']):.1f}" if name == "rule" else change
            stages = own["stages"]
            shift = [
                value
                for value, runs in zip(stages["fixed_cmd"], stages["runs"], strict=True)
                if 2 * runs >= max(stages["runs"])
            ]
            cells += [
                f"{accuracy} ({np.mean(own['val_accuracy']):.1f})",
                " → ".join(f"{value:.3f}" for value in (*shift[:2], shift[-1])),
            ]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def shift_table() -> str:
    """The shift by number of labels, for three ways to select, interpolated between stages."""
    _, records = readings("paper")
    ways = {
        "rule": "exchange",
        "descent over q, its sum fixed": "descent over q",
        "confidence": "confidence",
    }
    parts = []
    for dataset in ("cora", "citeseer"):
        curves = {}
        for record in records:
            if record["dataset"] == dataset and record["variant"] in ways:
                stages = record["stages"]
                reached = sum(2 * runs >= max(stages["runs"]) for runs in stages["runs"])
                curves[record["variant"]] = [
                    np.array(stages[key][:reached]) for key in ("labeled", "fixed_cmd")
                ]
        labels = curves["rule"][0][[0, 1, 4, 6, 8, 9, 10, 11]]
        head = [dataset, *(f"{count:,.0f}" for count in labels)]
        parts.append("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
        for name, title in ways.items():
            counts, shift = curves[name]
            cells = [f"{value:.3f}" for value in np.interp(labels, counts, shift)]
            parts[-1] += "\n| " + " | ".join([title, *cells]) + " |"
    return "\n\n".join(parts)


def other_graphs_table() -> str:
    """Accuracy of variants of the preset ``default`` on graphs of the suite."""
    variants, records = readings("suite")
    graphs = ("cora_ml", "uai", "amazon_photo", "wikispeedia", "digits", "counties_winner")
    found = {(r["sampler"], r["variant"], r["dataset"]): np.mean(r["accuracy"]) for r in records}
    lines = [
        "| labels | | " + " | ".join(graphs) + " | mean |",
        "|---" * (len(graphs) + 3) + "|",
    ]
    for sampler, labels in (("ppr-s", "from one region (PPR-S)"), ("uniform", "random")):
        for number, name in enumerate(variants):
            means = [found[sampler, name, graph] for graph in graphs]
            cells = [labels if number == 0 else "", name]
            cells += [f"{value:.1f}" for value in (*means, np.mean(means))]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    paper, suite = (Records(ROOT / "results" / f"{name}.jsonl") for name in ("reproduce", "suite"))
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = replace_between(text, "summary table", mean_table("", paper).body())
    text = replace_between(text, "suite table", suite_summary(suite))
    write_text(readme, text)
    write_text(ROOT / "docs" / "suite.md", render_suite(suite))
    reproduction = ROOT / "docs" / "reproduction.md"
    text = reproduction.read_text(encoding="utf-8")
    text = replace_between(text, "verdicts", claims_table("", paper).body())
    write_text(reproduction, replace_between(text, "claims", claim_sections(paper)))
    dcgst = ROOT / "docs" / "methods" / "dcgst.md"
    text = dcgst.read_text(encoding="utf-8")
    text = replace_between(text, "shift by labels", shift_table())
    text = replace_between(text, "alternatives", alternatives_table())
    write_text(dcgst, replace_between(text, "other graphs", other_graphs_table()))
    ensemble = ROOT / "docs" / "methods" / "ensemble.md"
    table = ensemble_table(ROOT / "results" / "ensemble.jsonl")
    text = ensemble.read_text(encoding="utf-8")
    write_text(ensemble, replace_between(text, "ensemble table", table))
    measurements = ROOT / "docs" / "measurements.md"
    text = measurements.read_text(encoding="utf-8")
    section = iceberg_section(Records(ROOT / "results" / "iceberg.jsonl"))
    write_text(measurements, replace_between(text, "iceberg table", section))


if __name__ == "__main__":
    main()
