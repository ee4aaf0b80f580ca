"""From node and edge tables to a folder with predictions and a report.

python examples/from_csv.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import dcgst

DATA = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "papers"

data = dcgst.read(DATA / "papers.csv", DATA / "papers_edges.csv", dcgst.Columns(label="topic"))
print(data.graph)
for note in data.notes:  # how the columns were interpreted
    print(" ", note)
print(dcgst.diagnose(data.graph).headline)

run = dcgst.fit(data, folder, dcgst.Ensemble(replicas=2))
for row in run.predictions[:5]:
    print(row["id"], row["class"], f"{row['probability']:.0%}", row["source"])
print("Predictions:", folder / "predictions.csv")
print("Report:", dcgst.write_report(run))
