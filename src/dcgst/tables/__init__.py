"""Read graphs from tables, graph files, stores and objects of other libraries."""

from dcgst.tables.encoders import FeatureEncoder
from dcgst.tables.labels import LabelTable, add_labels, read_label_table
from dcgst.tables.nodes import Columns, Input
from dcgst.tables.read import read
from dcgst.tables.sources import Query

__all__ = [
    "Columns",
    "FeatureEncoder",
    "Input",
    "LabelTable",
    "Query",
    "add_labels",
    "read",
    "read_label_table",
]
