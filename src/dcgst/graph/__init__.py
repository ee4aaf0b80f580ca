"""The graph that every method works on: undirected, attributed, partly labeled, validated."""

from dcgst.graph.cleaning import UNKNOWN, FeatureMatrix
from dcgst.graph.graph import Graph, as_graph

__all__ = ["UNKNOWN", "FeatureMatrix", "Graph", "as_graph"]
