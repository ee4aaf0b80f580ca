"""From PyG data to labels and calibrated probabilities for all nodes.

python examples/from_pyg.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import torch

import dcgst
from dcgst.evaluate import expected_calibration_error
from dcgst.transforms import SampleLabels

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "pyg"

# Any Data with x, edge_index, y and train_mask can be used. Here the training labels are biased,
# and there are 36 random validation nodes, from which weights and confidence are learned.
data = SampleLabels("ppr-s", per_class=4, val_rate=0.02)(dcgst.load("digits").to_pyg())
print(data)

run = dcgst.fit(data, folder, dcgst.Ensemble())
print("Calibration:", run.calibration.description)

data.label, data.proba = torch.tensor(run.result.labels), torch.tensor(run.result.proba)
test = data.test_mask
accuracy = (data.label == data.y)[test].float().mean()
confidence = data.proba[test].amax(dim=1).mean()
ece = expected_calibration_error(run.result.proba[test], data.y[test].numpy())
print(f"Accuracy on {int(test.sum())} test nodes: {accuracy:.1%}")
print(f"Mean probability: {confidence:.1%}; calibration error: {ece:.3f}")
