"""``dcgst datasets``: what there is to try things on."""

from __future__ import annotations

from rich.table import Table

from dcgst.cli.output import JsonOption, console, print_json
from dcgst.datasets import CATALOGUE
from dcgst.datasets.files import data_folders


def datasets(json: JsonOption = False) -> None:
    """List the data sets, their sizes, and whether they are on this machine."""
    table = Table("name", "nodes", "edges", "features", "classes", "here", "from", box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:5]:
        column.justify = "right"
    for entry in CATALOGUE.values():
        present = entry.present(entry.name)
        counts = (entry.nodes, entry.edges, entry.features, entry.classes)
        if json:
            names = ("nodes", "edges", "features", "classes")
            sizes = dict(zip(names, counts, strict=True))
            print_json({"name": entry.name, **sizes, "present": present, "origin": entry.origin})
        table.add_row(
            entry.name, *[f"{c:,}" for c in counts], "yes" if present else "no", entry.origin
        )
    if not json:
        console.print(table)
        places = ", then ".join(str(folder) for folder in data_folders())
        console.print(f"\nLooked for in {places}. DCGST_DATA names a folder of your own.")
