"""Fill in a table of papers as a person would: with the true topics.

python examples/label_papers.py audit.csv     fill in the column topic
python examples/label_papers.py --all FILE    write the topics of all papers
python examples/label_papers.py FOLDER        the same, into FOLDER/topics.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from examples.make_papers import papers


def main() -> None:
    topics = {f"p{number:04d}": topic for number, topic in enumerate(papers()[2])}
    path = Path(sys.argv[-1])
    rows = [{"id": name, "topic": topic} for name, topic in topics.items()]
    if path.is_dir():
        path = path / "topics.csv"
    elif "--all" not in sys.argv:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{**row, "topic": topics[row["id"]]} for row in csv.DictReader(file)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} topics: {path}")


if __name__ == "__main__":
    main()
