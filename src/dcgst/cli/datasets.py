"""``dcgst datasets``: the datasets."""

from __future__ import annotations

from rich.table import Table

from dcgst.cli.output import JsonOption, console, print_json, say
from dcgst.datasets import DATASETS
from dcgst.datasets.files import data_folders

COUNTS = ("nodes", "edges", "features", "classes")


def command(json: JsonOption = False) -> None:
    """List the datasets.

    Shows their sizes and whether their files are on this machine.
    """
    table = Table("name", *COUNTS, "available", "origin", box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:5]:
        column.justify = "right"
    for name in DATASETS:
        dataset = DATASETS[name]
        available = dataset.available()
        counts = {count: getattr(dataset, count) for count in COUNTS}
        if json:
            about = {"available": available, "origin": dataset.origin}
            print_json({"name": dataset.name, **counts, **about})
        sizes = ["–" if count is None else f"{count:,}" for count in counts.values()]
        table.add_row(dataset.name, *sizes, "yes" if available else "no", dataset.origin)
    if not json:
        console.print(table)
        folders = ", then ".join(str(folder) for folder in data_folders())
        say(f"\nFiles are searched in {folders}. Set DCGST_DATA to use your own folder.")
