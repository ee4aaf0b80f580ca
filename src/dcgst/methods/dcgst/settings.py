"""Settings of DC-GST and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dcgst.methods.base import param
from dcgst.methods.dcgst.candidates import CLASS_BALANCE, REPRESENTATIONS
from dcgst.methods.networks import NeuralMethod
from dcgst.nn.backbones import BACKBONES, Backbone

EDGE = "edge predictor"
SELECTION = "selection"
UNSPECIFIED = "details that the paper does not specify"

PUBLISHED: dict[str, dict[str, Any]] = {
    "cora": {"cmd_weight": 8.0, "predictor_weight": 0.3, "ner_weight": 0.1},
    "citeseer": {"cmd_weight": 18.0, "predictor_weight": 0.6, "ner_weight": 0.4},
    "pubmed": {"cmd_weight": 13.0, "predictor_weight": 1.5, "ner_weight": 0.7, "lr": 0.001},
    "ogbn-arxiv": {"cmd_weight": 26.0, "predictor_weight": 0.7, "ner_weight": 0.6, "lr": 0.001},
}
"""α, β, γ and the learning rate of each data set."""

RULE: dict[str, Any] = {"class_balance": "none", "hidden": 32, "dropout": 0.8}
"""Details that the paper leaves open, one rule for all data sets (docs/methods/dcgst.md)."""

AS_PRINTED: dict[str, Any] = {
    "class_balance": "none",  # Eq. 9: the K most confident nodes of each class
    "budget": "total",  # δ is K/2, and the size of C_S
    "solver": "penalty",  # Eq. 14
    "cmd_trains": "both",  # Eq. 8
    "edge_noise": "gumbel",  # Eq. 4
    "ner_reduction": "sum",  # Eq. 11
    "representation": "hidden",  # Definition 1
    "support": "range",  # Definition 1
}
"""As printed, except for departures 1 to 5 and 11 (docs/methods/dcgst.md)."""


@dataclass(eq=False, kw_only=True)
class Settings(NeuralMethod):
    """The settings of :class:`DCGST`."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        **{f"paper/{name}": {**weights, **RULE} for name, weights in PUBLISHED.items()},
        **{f"literal/{name}": {**weights, **AS_PRINTED} for name, weights in PUBLISHED.items()},
    }

    backbone: str | type[Backbone] = param(
        "gcn", "the network: a name, or a subclass of Backbone", registry=BACKBONES
    )
    stage_epochs: int = param(20, "epochs per stage", low=1)
    student_epochs: int = param(100, "epochs of the student", low=1)
    max_stages: int = param(20, "maximum number of stages", low=1)
    stage_patience: int = param(5, "stages in a row without a lower CMD before stopping", low=1)
    growth: float = param(0.5, "K is multiplied by 1 + growth after each stage", low=0, symbol="λ")

    ner_weight: float = param(0.1, "weight of NER", low=0, symbol="γ", group=SELECTION)
    criterion: str = param(
        "shift",
        "select by shift and NER, or by confidence alone",
        choices=("shift", "confidence"),
        group=SELECTION,
    )

    edge_predictor: bool = param(
        True, "train on graph variants instead of the original graph; see edge predictor below"
    )
    cmd_weight: float = param(
        8.0, "weight of the CMD in the loss of the edge predictor", low=0, symbol="α", group=EDGE
    )
    predictor_weight: float = param(
        0.3, "weight of that loss in the loss of the teacher", low=0, symbol="β", group=EDGE
    )
    edge_nodes: int = param(
        200, "most shifted nodes, whose edges may change", low=0, symbol="m", group=EDGE
    )
    edge_pairs: int = param(
        1000, "further node pairs by feature similarity", low=0, symbol="e", group=EDGE
    )
    edge_temperature: float = param(
        1.2, "temperature of edge sampling", low=1e-3, symbol="τ", group=EDGE
    )

    class_balance: str = param(
        "balanced",
        "how candidates and pseudo-labels are divided among classes: uniform, balanced (in "
        "proportion to the square root of predicted class frequencies), or none (K candidates "
        "per class, the best half of all)",
        choices=CLASS_BALANCE,
        group=UNSPECIFIED,
    )
    ner_reduction: str = param(
        "relative",
        "NER of a set: sum or mean over its nodes, or relative: in the unit of the CMD, both "
        "divided by their values for a random half of the candidates",
        choices=("sum", "mean", "relative"),
        group=UNSPECIFIED,
    )
    representation: str = param(
        "propagated",
        "Z of selection and stop: last hidden layer, its tanh, the softmax of the output, or "
        "propagated features, which no training changes",
        choices=REPRESENTATIONS,
        group=UNSPECIFIED,
    )
    support: str = param(
        "one",
        "|b - a| of the CMD: range of Z, or one",
        choices=("range", "one"),
        group=UNSPECIFIED,
    )
    solver: str = param(
        "exchange",
        "how the subset is found: exchange of candidates, from the most confident ones; or descent "
        "over q, whose sum is fixed by a projection or bounded by the penalty of Eq. 14",
        choices=("exchange", "projection", "penalty"),
        group=UNSPECIFIED,
    )
    budget: str = param(
        "class",
        "δ = K/2 for each class, or in total",
        choices=("class", "total"),
        group=UNSPECIFIED,
    )
    growth_rule: str = param(
        "factor",
        "K is multiplied by 1 + λ (text), or incremented by (1 + λ) K (Algorithm 1)",
        choices=("factor", "increment"),
        group=UNSPECIFIED,
    )
    stop_compares_with: str = param(
        "previous",
        "the CMD did not decrease in a stage if it is not below that of the previous stage, or "
        "not below the lowest so far",
        choices=("previous", "lowest"),
        group=UNSPECIFIED,
    )
    best_teacher: str = param(
        "validation",
        "where the student starts: teacher of the stage with the lowest validation loss, with the "
        "lowest shift, or of the last stage",
        choices=("validation", "shift", "last"),
        group=UNSPECIFIED,
    )
    student_labels: str = param(
        "last",
        "labels of the student: of the last stage, or of the stage with the lowest shift",
        choices=("last", "shift"),
        group=UNSPECIFIED,
    )
    edge_noise: str = param(
        "logistic",
        "noise of edge sampling: logistic, or gumbel as in Eq. 4",
        choices=("logistic", "gumbel"),
        group=UNSPECIFIED,
    )
    edge_reconstruction: bool = param(
        True, "whether the BCE of the edge predictor is part of the loss", group=UNSPECIFIED
    )
    accumulate: bool = param(
        False, "keep pseudo-labels once selected; else select all again", group=UNSPECIFIED
    )
    cmd_trains: str = param(
        "predictor",
        "parameters trained by the CMD: teacher and predictor, or the predictor alone",
        choices=("both", "predictor"),
        group=UNSPECIFIED,
    )
