"""PyG data in; a label and honest probabilities for every node out.

python examples/from_pyg.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import torch

import dcgst
from dcgst.evaluate.calibration import expected_calibration_error

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "pyg"

data = dcgst.synthetic(600, 4, labels_per_class=20).to_pyg()  # any Data of x, edge_index, y
print(data)

# Of the labels in train_mask, 40 % are set aside. From 20 on a temperature is learned from them.
run = dcgst.fit(data, folder, dcgst.DCGST(replicas=2), validate=0.4)
print("Calibration:", run.calibration.words)

data.label, data.proba = torch.tensor(run.labels), torch.tensor(run.proba)
test = data.test_mask
right = (data.label == data.y)[test].float().mean()
ece = expected_calibration_error(run.proba[test], data.y[test].numpy())
print(
    f"Accuracy on {int(test.sum())} test nodes: {right:.1%}; told on average: "
    f"{data.proba.amax(1)[test].mean():.1%}; calibration error: {ece:.3f}"
)
