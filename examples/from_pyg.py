"""PyG data in; a label and calibrated probabilities for every node out.

python examples/from_pyg.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import torch

import dcgst
from dcgst.evaluate.calibration import expected_calibration_error
from dcgst.transforms import SampleLabels

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "pyg"

# Any Data with x, edge_index, y and train_mask will do. Here training labels are biased,
# and 36 random nodes validate: from 20 on, a temperature is learned from them.
data = SampleLabels("ppr-s", per_class=4, val_rate=0.02)(dcgst.load("digits").to_pyg())
print(data)

run = dcgst.fit(data, folder, dcgst.DCGST(replicas=1))
print("Calibration:", run.calibration.words)

data.label, data.proba = torch.tensor(run.labels), torch.tensor(run.proba)
test = data.test_mask
right = (data.label == data.y)[test].float().mean()
sure = data.proba[test].amax(dim=1).mean()
ece = expected_calibration_error(run.proba[test], data.y[test].numpy())
print(f"{right:.1%} of {int(test.sum())} test nodes are right; told on average: {sure:.1%}")
print(f"Calibration error: {ece:.3f}")
