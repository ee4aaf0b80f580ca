"""Notes below the tables: explanation of the marks, and where DC-GST is not the best."""

from __future__ import annotations

from collections.abc import Sequence

from dcgst.bench.published import published_result
from dcgst.bench.ranking import BETTER, WORSE, Column, adjusted_p_values, mean_accuracy
from dcgst.bench.records import StoredRecord
from dcgst.bench.tuned import TRIALS

EXPLANATION = (
    "Accuracy in percent: mean ± population standard deviation over the runs, with the published "
    f"result in parentheses. Bold marks the best of the eight methods. {BETTER} means that DC-GST "
    f"is significantly better in the same runs, {WORSE} that it is significantly worse (two-sided "
    "Wilcoxon signed-rank test, Holm correction over the baselines, 5% level). DC-GST has its "
    "`paper/…` preset: the published weights; other details are tuned on Cora, CiteSeer and "
    "PubMed. The ensemble is not a method of the paper, and has no published result: it combines "
    "simple methods and has the same settings for all datasets. Validation labels set its weights; "
    "to keep the protocol of the paper, they are not trained on (`train_on_validation=false`)."
)
TUNED = (
    f"The baselines are tuned for this dataset: the best of {TRIALS} trials of `dcgst tune`, by "
    "accuracy on the validation nodes of runs 10 to 19 (`results/studies`). For DC-GST, details "
    "that the paper does not specify were tuned with as many trials. The ensemble has the same "
    "settings for all datasets. Numbers and marks are explained below the first table of the "
    "results page."
)
ABLATION_EXPLANATION = (
    "`paper/…` presets, 2% biased labels, with the published result in parentheses. p-values: "
    "two-sided Wilcoxon signed-rank test over the runs, Holm correction over the ablations."
)
SUBSTITUTE_WARNING = (
    "ogbn-arxiv uses substitute features. Do not compare these results with published ones."
)


def comparison_notes(grid: Sequence[Column], columns: Sequence[tuple[str, float]]) -> list[str]:
    """Write the notes of a comparison table.

    Args:
        grid: One row of records per method: the baselines, DC-GST, the ensemble.
        columns: Dataset and label rate of each column.
    """
    notes = [EXPLANATION, *_notes_on_dcgst(grid, columns), *_notes_on_the_ensemble(grid, columns)]
    if any(record is not None and not record["official"] for row in grid for record in row):
        notes.append(SUBSTITUTE_WARNING)
    return notes


def ablation_note(dataset: str, column: Column, titles: Sequence[str]) -> str | None:
    """Name the ablations that are better than the full method, or return None.

    Args:
        dataset: Name of the dataset.
        column: Records of the full method and of each ablation.
        titles: Title of each ablation.
    """
    full, *ablations = column
    present = [(t, r) for t, r in zip(titles, ablations, strict=True) if r is not None]
    if full is None or not present:
        return None
    p_values = adjusted_p_values(full, [record for _, record in present])
    better = [
        f"{title} is {record['mean'] - full['mean']:.1f} points better"
        + (f" (p = {p:.2f})" if full["runs"] > 1 else "")
        for (title, record), p in zip(present, p_values, strict=True)
        if record["mean"] > full["mean"]
    ]
    if not better:
        return None
    return f"On {dataset}, the full method is not the best: {', '.join(better)}."


def _notes_on_dcgst(grid: Sequence[Column], columns: Sequence[tuple[str, float]]) -> list[str]:
    """Count the columns where DC-GST is below a baseline or its published result."""
    *baselines, ours, _ = grid
    present = [(i, record) for i, record in enumerate(ours) if record is not None]
    if not present:
        return []
    beaten = sum(_below_a_baseline(record, [row[i] for row in baselines]) for i, record in present)
    note = f"DC-GST is below at least one baseline in {beaten} of {len(present)} cells"
    pairs = [(record["mean"], _comparable_mean(record, *columns[i])) for i, record in present]
    comparable = [(mean, published) for mean, published in pairs if published is not None]
    if comparable:
        below = sum(mean < published for mean, published in comparable)
        note += f", and below its published result in {below} of {len(comparable)}"
    return [note + "."]


def _notes_on_the_ensemble(
    grid: Sequence[Column], columns: Sequence[tuple[str, float]]
) -> list[str]:
    """Name the columns where the ensemble is below one of the other methods."""
    *others, ensemble = grid
    below = [
        f"{dataset} {100 * rate:g}%"
        for i, ((dataset, rate), record) in enumerate(zip(columns, ensemble, strict=True))
        if record is not None and _below_a_baseline(record, [row[i] for row in others])
    ]
    return [f"The ensemble is below another method at {', '.join(below)}."] if below else []


def _below_a_baseline(record: StoredRecord, baselines: Column) -> bool:
    return any(mean_accuracy(baseline) > mean_accuracy(record) for baseline in baselines)


def _comparable_mean(record: StoredRecord, dataset: str, rate: float) -> float | None:
    """Return the published mean of DC-GST, or None if the record is not comparable with it."""
    published = published_result(dataset, record["sampler"], rate, "dcgst")
    return published.mean if published is not None and record["official"] else None
