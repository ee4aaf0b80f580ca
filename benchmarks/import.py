"""Time and peak memory of looking up edges' ids with DuckDB and with Polars.

The step of ``dcgst import`` that needs a database: both ends of each edge of a CSV file are
replaced by the positions of the nodes with these ids. Each engine runs in a process of its own.

    python benchmarks/import.py --nodes 1000000 --json
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from _common import show, time_alternately
from _tables import Tables


def with_duckdb(folder: Path, text: bool) -> Any:
    """Look up with DuckDB, whose memory is limited."""
    import duckdb

    def run(rounds: int) -> int:
        database = duckdb.connect(config={"memory_limit": "4GiB", "threads": 2})
        kind = "VARCHAR" if text else "BIGINT"
        nodes = f"read_csv('{folder}/nodes.csv', types={{'id': '{kind}'}})"
        edges = f"read_csv('{folder}/edges.csv', columns={{'s': '{kind}', 't': '{kind}'}})"
        database.execute(
            f"create table ids as select id, row_number() over () - 1 as node from {nodes}"
        ).fetchall()
        query = (
            f"select a.node as s, b.node as t from {edges} e left join ids a on e.s = a.id "
            "left join ids b on e.t = b.id"
        )
        return sum(len(batch) for batch in database.sql(query).to_arrow_reader(1_000_000))

    return run


def with_polars(folder: Path, text: bool) -> Any:
    """Look up with Polars, in streams."""
    import polars as pl

    def run(rounds: int) -> int:
        kind = pl.String if text else pl.Int64
        ids = pl.read_csv(folder / "nodes.csv", columns=["id"], schema_overrides={"id": kind})
        ids = ids.with_row_index("node")
        found = pl.scan_csv(folder / "edges.csv", schema_overrides={"source": kind, "target": kind})
        for end in ("source", "target"):
            own = ids.lazy().rename({"id": end, "node": f"{end}_node"})
            found = found.join(own, on=end, how="left")
        found.select("source_node", "target_node").sink_parquet(folder / "polars.parquet")
        return 0

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Tables(options.nodes, features=1).write(folder)
        for text in (True, False):
            found = time_alternately(
                {"duckdb": with_duckdb, "polars": with_polars},
                options.rounds,
                1,
                folder=folder,
                text=text,
            )
            record: dict[str, Any] = {
                "nodes": options.nodes,
                "edges": 10 * options.nodes,
                "ids": "text" if text else "numbers",
            }
            for engine, own in found.items():
                record |= {f"{engine}_s": own["ms"] / 1000, f"{engine}_peak_mib": own["peak_mib"]}
            show(record, options.json)


if __name__ == "__main__":
    main()
