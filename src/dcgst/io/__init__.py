"""Read graphs from tables, graph files, stores and objects of other libraries."""

from dcgst.io.adding import add_labels
from dcgst.io.columns import Columns
from dcgst.io.databases import Query
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.input import Input
from dcgst.io.labels import LabelTable, read_label_table
from dcgst.io.read import read

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
