"""Let dcgst choose which nodes to label next, label them, fit again.

python examples/active_labeling.py [FOLDER]

Here the truth is known and plays the part of whoever labels.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import dcgst

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
whole = dcgst.load("digits")
labeled = dcgst.sample(whole, "ppr-s", per_class=2, runs=1, val_rate=0).train[0]

for round_number in range(3):
    graph = whole.with_labels(np.where(labeled, whole.labels, -1))
    run = dcgst.fit(graph, folder / f"round-{round_number}", dcgst.EM())
    right = (run.labels == whole.labels)[~labeled].mean()
    print(f"{labeled.sum()} labels: {right:.1%} of the other nodes are right")
    found = dcgst.suggest(graph, run.proba, labeled, count=10)
    print(f"  suggested: {[int(graph.ids[s.node]) for s in found.nodes]}")
    labeled[[s.node for s in found.nodes]] = True  # ask a person here
