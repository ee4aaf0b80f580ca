"""Attributes of a fitted method."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dcgst.graph import Graph
from dcgst.methods.core.result import History, Result
from dcgst.nn.base import Backbone
from dcgst.splits import Split


class FittedAttributes:
    """The parts of ``result_`` under the names that scikit-learn would give them.

    See :class:`~dcgst.Result`. ``classes_`` holds the class names.
    """

    graph_: Graph
    split_: Split
    result_: Result

    @property
    def proba_(self) -> NDArray[np.float32]:
        return self.result_.proba

    @property
    def labels_(self) -> NDArray[np.int64]:
        return self.result_.labels

    @property
    def labeled_stage_(self) -> NDArray[np.int64]:
        return self.result_.labeled_stage

    @property
    def agreement_(self) -> NDArray[np.float32]:
        return self.result_.agreement

    @property
    def history_(self) -> History:
        return self.result_.history

    @property
    def stop_reason_(self) -> str:
        return self.result_.stop_reason

    @property
    def candidates_(self) -> NDArray[np.void]:
        return self.result_.candidates

    @property
    def edge_probabilities_(self) -> NDArray[np.void]:
        return self.result_.edge_probabilities

    @property
    def member_weights_(self) -> Mapping[str, float]:
        return self.result_.member_weights

    @property
    def models_(self) -> tuple[Backbone, ...]:
        return self.result_.models

    @property
    def classes_(self) -> tuple[str, ...]:
        return self.graph_.class_names
