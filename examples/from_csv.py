"""Tables in; a folder with predictions and a report out.

python examples/from_csv.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import dcgst

DATA = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "papers"

found = dcgst.read(DATA / "papers.csv", DATA / "papers_edges.csv", dcgst.Columns(label="topic"))
print(found.graph)
for note in found.notes:  # what was taken for what
    print(" ", note)
print(dcgst.diagnose(found.graph).headline)

run = dcgst.fit(found, folder, dcgst.DCGST(replicas=2))
for row in run.predictions[:5]:
    print(row["id"], row["class"], f"{row['probability']:.0%}", row["source"])
print("Predictions:", folder / "predictions.csv")
print("Report:", dcgst.write_report(run))
