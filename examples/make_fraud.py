"""A fraud case: accounts in rings that share devices, messy columns, three relations.

    python examples/make_fraud.py FOLDER

writes ``accounts.csv``, ``links.csv`` and ``truth.csv``. The accounts are made up.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

CITIES = 25
ORDINARY = ["coffee", "rent", "salary", "groceries", "holiday", "gift", "insurance", "books"]
SUSPICIOUS = ["crypto", "urgent", "refund", "voucher", "card", "prepaid", "invoice", "fee"]
DOMAINS = ("mail.example", "post.example", "web.example")
SUSPICIOUS_DOMAINS = ("quick.example", "temp.example")


@dataclass(frozen=True)
class FraudCase:
    """The tables and the truth.

    Attributes:
        nodes: node table.
        edges: edge table.
        fraud: ``(n,)`` bool.
        labeled: ``(n,)`` bool.
    """

    nodes: Path
    edges: Path
    fraud: np.ndarray
    labeled: np.ndarray


def make_fraud_case(folder: Path, count: int = 2000, seed: int = 0) -> FraudCase:
    """Write the tables: 6% of the accounts are fraud, 60 are labeled."""
    rng = np.random.default_rng(seed)
    ring = np.full(count, -1)
    free = rng.permutation(count)
    number = 0
    while (ring >= 0).sum() < 0.06 * count:
        size = int(rng.integers(6, 13))
        ring[free[:size]] = number
        free, number = free[size:], number + 1
    fraud, city = ring >= 0, rng.integers(0, CITIES, count)
    edges = _device_edges(rng, ring) + _city_edges(rng, city)
    for _ in range(4 * count):
        i, j = rng.choice(count, 2, replace=False)
        edges.append((i, j, "transfer", int(rng.lognormal(5, 1.5)) + 1))
    order = rng.permutation(count)
    chosen = [*order[fraud[order]][:20], *order[~fraud[order]][:40]]
    labeled = np.isin(np.arange(count), chosen)
    nodes, links = folder / "accounts.csv", folder / "links.csv"
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "opened", "balance", "zip", "email", "note", "verified", "label"])
        for i in range(count):
            label = ("fraud" if fraud[i] else "ok") if labeled[i] else ""
            writer.writerow([f"a{i:05d}", *_cells(rng, bool(fraud[i]), int(city[i])), label])
    with links.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", "type", "amount"])
        writer.writerows([f"a{i:05d}", f"a{j:05d}", kind, amount] for i, j, kind, amount in edges)
    return FraudCase(nodes, links, fraud, labeled)


def _device_edges(rng: np.random.Generator, ring: np.ndarray) -> list[tuple[int, int, str, int]]:
    edges = []
    for number in range(int(ring.max()) + 1):
        members = np.flatnonzero(ring == number)
        for i in members:
            edges += [
                (i, j, "device", rng.integers(1, 20)) for j in rng.choice(members, 3) if i != j
            ]
    honest = np.flatnonzero(ring < 0)
    for _ in range(len(ring) // 3):
        i, j = rng.choice(honest, 2, replace=False)
        edges.append((i, j, "device", rng.integers(1, 5)))
    return edges


def _city_edges(rng: np.random.Generator, city: np.ndarray) -> list[tuple[int, int, str, int]]:
    edges = []
    for number in range(CITIES):
        members = np.flatnonzero(city == number)
        for i in members:
            edges += [(i, j, "same_city", 1) for j in rng.choice(members, 3) if i != j]
    return edges


def _cells(rng: np.random.Generator, fraud: bool, city: int) -> list[str]:
    """Date, money, zip code, e-mail address, note and flag; some are missing."""
    odd = rng.random() < (0.3 if fraud else 0.05)
    opened = date(2024, 6, 1) - timedelta(days=int(rng.gamma(2, 150 if fraud else 400)))
    note = " ".join(rng.choice(SUSPICIOUS if odd else ORDINARY, rng.integers(3, 7)))
    domain = rng.choice(SUSPICIOUS_DOMAINS if odd else DOMAINS)
    cells = [
        opened.isoformat(),
        f"${rng.lognormal(7.2 if fraud else 7.6, 1.0):,.2f}",
        f"{10_000 + 1000 * city + rng.integers(0, 999):05d}",
        f"user{rng.integers(1, 9999)}@{domain}",
        note,
        str(rng.choice(["yes", "no"])),
    ]
    return [cell if rng.random() > 0.05 else "" for cell in cells]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    case = make_fraud_case(folder)
    with (folder / "truth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label"])
        for i, own in enumerate(case.fraud):
            writer.writerow([f"a{i:05d}", "fraud" if own else "ok"])


if __name__ == "__main__":
    main()
