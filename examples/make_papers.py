"""Generate examples/data: 300 papers that cite each other, of which only 16 have a topic.

python examples/make_papers.py [FOLDER]

The papers are synthetic. Topics and citations are a graph of dcgst.synthetic; year, venue and words
depend on the position of a paper in it. Early papers of a topic use words of that topic, late ones
share words with the next topic, and the labeled papers are close to one paper of each topic.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from dcgst import sample, synthetic

WORDS = {
    "databases": "query index join transaction schema table storage cache log recovery cursor view",
    "networks": "packet router latency protocol bandwidth queue flow wireless link node relay hop",
    "security": "attack cipher key proof threat malware privacy access trust audit token leak",
    "vision": "image pixel texture camera contour depth scene stereo motion filter shape colour",
}
COMMON = (
    "method model result problem approach dataset bound error cost design paper tool survey gain "
    "analysis system test measure scale case theory practice limit sample rate user group year"
)
VENUES = ("Annals", "Letters", "Proceedings", "Reviews", "Transactions", "Workshop")
SENTENCES = (
    "We study {} and {} of {} under {}. The {} needs no {}, its {} no {}. On {} and {} we compare.",
    "A {} for {} is given. It joins {} and {}, and its {} needs no {}. Tests with {}, {} and {}.",
    "Why is {} hard? We take {} apart and find {}, {} and {} behind it, and {} and {} behind {}.",
)


def papers(seed: int = 7) -> tuple[list[dict[str, object]], list[tuple[str, str]], list[str]]:
    """Rows of the node table, rows of the edge table, and the topic of every paper."""
    graph = synthetic(300, len(WORDS), degree=5, homophily=0.85, labels_per_class=4, seed=seed)
    labeled = sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0, seed=seed).train[0]
    rng = np.random.default_rng(seed)
    names, rows, truth = list(WORDS), [], []
    late = np.arange(300) % 75 / 75  # nodes are sorted by class and by position on its arc
    number = rng.permutation(300)  # ids do not depend on the topic
    for node, code in enumerate(graph.labels):
        own, following = names[code], names[(code + 1) % len(names)]
        kinds = rng.choice(3, p=(0.3 - 0.15 * late[node], 0.15 * late[node], 0.7), size=20)
        pools = (WORDS[own].split(), WORDS[following].split(), COMMON.split())
        words = [str(rng.choice(pools[kind])) for kind in kinds]
        favorite = VENUES[code] if rng.random() < 0.4 else str(rng.choice(VENUES))
        row = {
            "id": f"p{number[node]:04d}",
            "year": round(2002 + 16 * late[node] + rng.normal(0, 2)),
            "venue": favorite if rng.random() < 0.95 else "",
            "abstract": str(rng.choice(SENTENCES)).format(*words),
            "topic": own if labeled[node] else "",
        }
        rows.append(row)
        truth.append(own)
    ends = np.argwhere(np.triu(graph.adjacency.toarray()))
    ends = [sorted(pair, key=lambda node: -int(rows[node]["year"])) for pair in ends]
    edges = sorted((str(rows[a]["id"]), str(rows[b]["id"])) for a, b in ends)
    order = np.argsort(number)
    return [rows[node] for node in order], edges, [truth[node] for node in order]


def main(folder: Path) -> None:
    """Write both tables."""
    rows, edges, _ = papers()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "papers.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with open(folder / "papers_edges.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("citing", "cited"), *edges])
    known = sum(bool(row["topic"]) for row in rows)
    print(f"{len(rows)} papers, {known} with a topic, {len(edges)} citations: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
