"""The results page: every table from the same records."""

from __future__ import annotations

from collections.abc import Callable

from dcgst.bench.experiments import Experiment
from dcgst.bench.records import Records
from dcgst.bench.tables import Table, ablation, comparison, datasets


def tables(experiments: list[Experiment], records: Records, runs: int = 10) -> list[Table]:
    """The tables among these experiments."""

    def compare(title: str, names: list[str], sampler: str) -> Callable[[], Table]:
        return lambda: comparison(title, names, sampler, records, runs)

    made: dict[str, Callable[[], Table]] = {
        "table1": compare("Biased labels on Cora and PubMed", ["cora", "pubmed"], "released"),
        "table2": compare("Biased labels on CiteSeer", ["citeseer"], "released"),
        "table3": lambda: ablation(records, runs),
        "table4": datasets,
        "table5": compare("Random labels on CiteSeer", ["citeseer"], "uniform"),
        "arxiv": compare("Biased labels on ogbn-arxiv", ["ogbn-arxiv"], "released"),
    }
    return [made[e.name]() for e in experiments if e.name in made]
