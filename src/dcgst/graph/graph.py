"""The :class:`Graph` class and its constructors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray

from dcgst.errors import InputError
from dcgst.graph.cleaning import (
    MAX_ROWS,
    UNKNOWN,
    FeatureMatrix,
    check_adjacency,
    check_class_names,
    check_codes,
    check_features,
    check_ids,
    check_labels,
    check_masks,
    checked_csr,
    clean_edges,
    clean_features,
    clean_labels,
    clean_mask,
    features_from_tensor,
    find_ids,
    make_read_only,
)
from dcgst.graph.references import ByReference

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False, repr=False)
class Graph(ByReference):
    """An undirected graph with node features and a class for some or all nodes.

    Create one with :meth:`from_edges`, :meth:`from_scipy` or :meth:`from_pyg`. They clean the
    input and note each change; the constructor only validates. Arrays are read-only.

    Attributes:
        adjacency: ``(n, n)`` CSR, symmetric, no self-loops, positive weights (1 if unweighted).
        features: ``(n, d)`` float32, a dense array or CSR.
        labels: ``(n,)`` class codes ``0 … C-1``, ``-1`` where unknown.
        class_names: one name per class code.
        ids: ``(n,)`` the user's node ids, unique strings or integers.
        masks: named node sets that belong to the data, such as ``train`` of an official split.
        name: name of the graph in tables and messages.
        official: False if parts of a published dataset were substituted; not to be compared.
        notes: changes made while the graph was built, as text.
        columns_weighted: whether ``features`` are weighted, as those of tables are.

    Example:
        >>> graph = Graph.from_edges([[0, 1], [1, 2]], [[1.0], [2.0], [3.0]], [0, -1, 1])
        >>> graph
        Graph('graph': 3 nodes, 2 edges, 1 features, 2 classes, 2 labels)
        >>> graph.notes
        ('2 directed edges made undirected',)
    """

    adjacency: sp.csr_array
    features: FeatureMatrix
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    ids: NDArray[Any]
    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    name: str = "graph"
    official: bool = True
    notes: tuple[str, ...] = ()
    columns_weighted: bool = False

    def __post_init__(self) -> None:
        check_adjacency(self.adjacency)
        n = self.adjacency.shape[0]
        check_features(self.features, n)
        check_ids(self.ids, n)
        make_read_only(self.adjacency, self.features, self.ids)
        self._check_labels()

    def _check_labels(self) -> None:
        check_labels(self.labels, self.num_nodes, self.num_classes)
        check_class_names(self.class_names)
        check_masks(self.masks, self.num_nodes)
        make_read_only(self.labels, *self.masks.values())

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike,
        features: ArrayLike | sp.sparray | sp.spmatrix,
        labels: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        masks: Mapping[str, NDArray[np.bool_]] | None = None,
        name: str = "graph",
        official: bool = True,
        notes: Sequence[str] = (),
    ) -> Graph:
        """Create a graph from a ``(2, E)`` array of node positions: sources above targets.

        Edges are undirected. A repeated edge counts once, with its largest weight. Self-loops and
        edges of weight zero are dropped. Nodes without edges are kept. The number of nodes is the
        number of feature rows.
        """
        matrix = clean_features(features)
        n = matrix.shape[0]
        adjacency, cleaned = clean_edges(np.asarray(edges), weights, n)
        codes = np.full(n, UNKNOWN) if labels is None else clean_labels(labels)
        if class_names is None:
            check_codes(codes)
            class_names = [str(c) for c in range(int(codes.max(initial=UNKNOWN)) + 1)]
        return cls(
            adjacency=adjacency,
            features=matrix,
            labels=codes,
            class_names=tuple(class_names),
            ids=np.arange(n) if ids is None else np.array(ids),
            masks={key: np.array(mask, dtype=bool) for key, mask in (masks or {}).items()},
            name=name,
            official=official,
            notes=(*notes, *cleaned),
        )

    @classmethod
    def from_scipy(
        cls,
        adjacency: sp.sparray | sp.spmatrix,
        features: ArrayLike | sp.sparray | sp.spmatrix,
        labels: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Graph:
        """Create a graph from a SciPy adjacency matrix, cleaned as in :meth:`from_edges`."""
        if adjacency.format == "csr":
            parts = (adjacency.data, adjacency.indices, adjacency.indptr)
            adjacency = checked_csr(parts, adjacency.shape, "adjacency", MAX_ROWS)
        coo = sp.coo_array(adjacency)
        if coo.shape[0] != coo.shape[1]:
            raise InputError(f"adjacency must be square, got shape {coo.shape}")
        return cls.from_edges(np.stack(coo.coords), features, labels, weights=coo.data, **kwargs)

    @classmethod
    def from_pyg(cls, data: Data, **kwargs: Any) -> Graph:
        """Create a graph from PyG ``Data``: ``x``, ``edge_index``, ``y``, ``edge_weight``, masks.

        Of a mask with several columns (one per split), the first is used. Other edge attributes
        are ignored; a note says so.
        """
        if data.edge_index is None or data.x is None:
            raise InputError("the PyG data must have x and edge_index")
        weights = data.get("edge_weight")
        masks = {}
        for key in ("train", "val", "test"):
            mask = data.get(f"{key}_mask")
            if mask is not None:
                masks[key] = clean_mask((mask if mask.dim() == 1 else mask[:, 0]), f"{key}_mask")
        return cls.from_edges(
            data.edge_index.numpy(force=True),
            features_from_tensor(data.x),
            None if data.get("y") is None else data.y.numpy(force=True),
            weights=None if weights is None else weights.numpy(force=True),
            masks=masks,
            notes=["edge_attr is not used"] if data.get("edge_attr") is not None else [],
            **kwargs,
        )

    def to_pyg(self) -> Data:
        """Convert to PyG ``Data`` with dense features; each edge is listed in both directions."""
        from torch_geometric.data import Data

        coo = self.adjacency.tocoo()
        features = self.features.toarray() if sp.issparse(self.features) else self.features
        data = Data(
            x=torch.tensor(features),
            edge_index=torch.tensor(np.stack(coo.coords).astype(np.int64)),
            y=torch.tensor(self.labels),
        )
        if self.weighted:
            data.edge_weight = torch.tensor(coo.data)
        for name, mask in self.masks.items():
            data[f"{name}_mask"] = torch.tensor(mask)
        return data

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def id_order(self) -> NDArray[np.int64]:
        """``(n,)`` the nodes sorted by id.

        Random numbers belong to positions in this order, so that results do not depend on the
        order of the rows in a file.
        """
        ids = self.ids.astype(str) if self.ids.dtype == object else self.ids
        return np.argsort(ids, kind="stable")

    @cached_property
    def node_of(self) -> dict[str, int]:
        """The position of each node by its id, written as text."""
        return {str(node_id): node for node, node_id in enumerate(self.ids.tolist())}

    def find(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Positions of nodes by their ids, written as text; -1 where there is no such node."""
        return find_ids(self.ids, self.id_order, ids)

    @cached_property
    def weighted(self) -> bool:
        """Whether any edge weight differs from 1."""
        return bool((self.adjacency.data != 1).any())

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """``(n,)`` number of neighbors."""
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.int64)

    def homophily(self) -> float:
        """Edge homophily: share of edges between nodes of the same class.

        Only edges between labeled nodes count; nan if there are none.
        """
        coo = self.adjacency.tocoo()
        left, right = self.labels[coo.row], self.labels[coo.col]
        known = (left != UNKNOWN) & (right != UNKNOWN)
        return float((left == right)[known].mean()) if known.any() else float("nan")

    def with_labels(
        self,
        labels: ArrayLike | None = None,
        *,
        class_names: Sequence[str] | None = None,
        masks: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Graph:
        """Return the same graph with other labels, classes or masks; None keeps them.

        Adjacency and features are not read, so that this is fast on large graphs.
        """
        other = copy.copy(self)
        if labels is not None:
            other.__dict__["labels"] = clean_labels(labels)
        if class_names is not None:
            other.__dict__["class_names"] = tuple(class_names)
        if masks is not None:
            other.__dict__["masks"] = masks
        other._check_labels()
        return other

    def reorder(self, order: NDArray[np.int64]) -> Graph:
        """Return the same graph with node ``order[i]`` at position ``i``."""
        adjacency = self.adjacency[order][:, order]
        adjacency.sort_indices()
        return replace(
            self,
            adjacency=adjacency,
            features=self.features[order],
            labels=self.labels[order],
            ids=self.ids[order],
            masks={name: mask[order] for name, mask in self.masks.items()},
        )

    def __repr__(self) -> str:
        labeled = int((self.labels != UNKNOWN).sum())
        return (
            f"Graph({self.name!r}: {self.num_nodes} nodes, {self.num_edges} edges, "
            f"{self.num_features} features, {self.num_classes} classes, {labeled} labels)"
        )


def as_graph(graph: Graph | Data) -> Graph:
    """Return a :class:`Graph`, converting PyG ``Data``."""
    if isinstance(graph, Graph):
        return graph
    if hasattr(graph, "node_types") or not hasattr(graph, "edge_index"):
        hint = "; use dcgst.fit, or dcgst.read(data).graph" if hasattr(graph, "node_types") else ""
        raise InputError(f"expected a Graph or PyG Data, got {type(graph).__name__}{hint}")
    return Graph.from_pyg(graph)


def trusted_graph(
    *,
    adjacency: sp.csr_array,
    features: FeatureMatrix,
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    ids: NDArray[Any],
    name: str,
    notes: tuple[str, ...],
    weighted: bool,
    columns_weighted: bool,
) -> Graph:
    """A graph whose parts were validated when they were stored, with its nodes sorted by id.

    Nothing is read, so that memory-mapped arrays can be larger than the memory. Arguments as in
    :class:`Graph`; ``weighted`` says whether any edge weight differs from one.
    """
    graph = object.__new__(Graph)
    fields = {
        "adjacency": adjacency,
        "features": features,
        "labels": labels,
        "class_names": class_names,
        "ids": ids,
        "masks": {},
        "name": name,
        "official": True,
        "notes": notes,
        "columns_weighted": columns_weighted,
    }
    known = {"weighted": weighted, "id_order": np.arange(len(ids))}
    graph.__dict__.update(fields, **known)
    return graph
