"""Let dcgst choose which nodes to label next, label them, fit again.

python examples/active_labeling.py [FOLDER]

The true labels of all nodes are known here; they stand in for the person who labels. Seeded EM
takes a second, so nobody waits between rounds; dcgst.DCGST() would do as well.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import dcgst

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
truth = dcgst.load("digits")
labeled = dcgst.sample(truth, "ppr-s", per_class=2, runs=1, val_rate=0).train[0]


def refit(name: str) -> dcgst.Run:
    """Fit with the labels there are, and tell how many of the other nodes are right."""
    graph = truth.with_labels(np.where(labeled, truth.labels, -1))
    run = dcgst.fit(graph, folder / name, dcgst.EM())
    right = (run.labels == truth.labels)[~labeled].mean()
    print(f"{name}: {labeled.sum()} labels, {right:.1%} of the other nodes are right")
    return run


run = refit("before")
found = dcgst.suggest(run.graph, run.proba, labeled, count=10)
print("Please label:", ", ".join(str(run.graph.ids[s.node]) for s in found.nodes))
labeled[[s.node for s in found.nodes]] = True  # a person would look at them here
refit("after")
