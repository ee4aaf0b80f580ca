"""Active learning: suggest nodes to label, add their labels, fit again.

python examples/active_labeling.py [FOLDER]

The true labels of all nodes are known here; in practice a person provides them. Seeded EM takes
seconds, so there is little waiting between rounds; dcgst.Ensemble() can be used in its place.
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
    """Fit with the current labels, and print the accuracy on all other nodes."""
    graph = truth.with_labels(np.where(labeled, truth.labels, -1))
    run = dcgst.fit(graph, folder / name, dcgst.EM())
    accuracy = (run.result.labels == truth.labels)[~labeled].mean()
    print(f"{name}: {labeled.sum()} labels, accuracy {accuracy:.1%} on the other nodes")
    return run


run = refit("before")
found = dcgst.suggest(run.graph, run.result.proba, labeled, count=10)
print("Nodes to label:", ", ".join(str(run.graph.ids[s.node]) for s in found.nodes))
labeled[[s.node for s in found.nodes]] = True  # a person would label them here
refit("after")
