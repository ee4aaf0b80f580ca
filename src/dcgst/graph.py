"""The graph every method works on: undirected, attributed, partly labeled, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dcgst.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

FeatureMatrix: TypeAlias = Any
"""``(n, d)`` float32: an array or a ``csr_array`` (SciPy has no types to say so)."""

UNKNOWN = -1
"""The label of a node whose class is not known."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph with node features and, for some or all nodes, a class.

    Build one with :meth:`from_edges`, :meth:`from_scipy` or :meth:`from_pyg`: they clean what can
    be cleaned and record it in ``notes``. The constructor itself only accepts what is already clean
    and says precisely what is not. A graph never changes; its arrays are read-only.

    Attributes:
        adjacency: ``(n, n)`` CSR, symmetric, no self-loops, positive weights (1 when unweighted).
        features: ``(n, d)`` float32, a dense array or CSR.
        labels: ``(n,)`` class codes ``0 … C-1``, ``-1`` where unknown.
        class_names: one name per class code.
        ids: ``(n,)`` the user's own node ids, strings or integers, all different.
        masks: named node sets that came with the data, such as ``train`` of an official split.
        name: what to call the graph in tables and messages.
        official: whether the data are the published ones; substitutes are never compared with
            published results.
        notes: what was changed or substituted while building the graph, in plain words.
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

    def __post_init__(self) -> None:
        _check_adjacency(self.adjacency)
        n = self.adjacency.shape[0]
        _check_features(self.features, n)
        _check_labels(self.labels, n, len(self.class_names))
        _check_ids(self.ids, n)
        for name, mask in self.masks.items():
            if mask.shape != (n,) or mask.dtype != np.bool_:
                raise InputError(
                    f"mask {name!r} must be {n} booleans, got {mask.dtype} {mask.shape}"
                )
        _freeze(self.adjacency, self.features, self.labels, self.ids, *self.masks.values())

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
        """Build a graph from a ``(2, E)`` array of node positions: sources above targets.

        Edges listed in one direction count in both; an edge listed more than once counts once (the
        largest weight is kept); self-loops and edges of weight zero are dropped. Each of these is
        noted. Nodes without an edge are kept. Features decide the number of nodes.
        """
        matrix = _clean_features(features)
        n = matrix.shape[0]
        adjacency, cleaned = _clean_edges(np.asarray(edges), weights, n)
        codes = np.full(n, UNKNOWN) if labels is None else _clean_labels(labels)
        if class_names is None:
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
        """Build a graph from a SciPy adjacency matrix; cleaning as in :meth:`from_edges`."""
        coo = sp.coo_array(adjacency)
        if coo.shape[0] != coo.shape[1]:
            raise InputError(f"adjacency must be square, got shape {coo.shape}")
        return cls.from_edges(np.stack(coo.coords), features, labels, weights=coo.data, **kwargs)

    @classmethod
    def from_pyg(cls, data: Data, **kwargs: Any) -> Graph:
        """Build a graph from PyG ``Data``: ``x``, ``edge_index``, ``y``, ``edge_weight``, masks.

        A mask with several columns (one per split) contributes its first. Other edge attributes are
        not used, and the notes say so.
        """
        if data.edge_index is None or data.x is None:
            raise InputError("the PyG data needs both x and edge_index")
        weights = data.get("edge_weight")
        masks = {}
        for key in ("train", "val", "test"):
            mask = data.get(f"{key}_mask")
            if mask is not None:
                masks[key] = (
                    (mask if mask.dim() == 1 else mask[:, 0]).numpy(force=True).astype(bool)
                )
        return cls.from_edges(
            data.edge_index.numpy(force=True),
            _features_of(data.x),
            None if data.get("y") is None else data.y.numpy(force=True),
            weights=None if weights is None else weights.numpy(force=True),
            masks=masks,
            notes=["edge_attr is not used"] if data.get("edge_attr") is not None else [],
            **kwargs,
        )

    def to_pyg(self) -> Data:
        """The graph as PyG ``Data``, both directions of every edge listed, features dense."""
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
        """Undirected edges, each counted once."""
        return int(self.adjacency.nnz // 2)

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def weighted(self) -> bool:
        return bool((self.adjacency.data != 1).any())

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """``(n,)`` number of neighbours."""
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.int64)

    def homophily(self) -> float:
        """Share of edges between nodes of known class that join the same class; nan if none."""
        coo = self.adjacency.tocoo()
        left, right = self.labels[coo.row], self.labels[coo.col]
        known = (left != UNKNOWN) & (right != UNKNOWN)
        return float((left == right)[known].mean()) if known.any() else float("nan")

    def with_labels(self, labels: ArrayLike) -> Graph:
        """The same graph with other labels."""
        return replace(self, labels=_clean_labels(labels))

    def reorder(self, order: NDArray[np.int64]) -> Graph:
        """The same graph with its first node now the one that was ``order[0]``, and so on."""
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


def _clean_edges(
    edges: NDArray[Any], weights: ArrayLike | None, n: int
) -> tuple[sp.csr_array, list[str]]:
    """Symmetric CSR adjacency without self-loops or duplicates, and notes on what was changed."""
    if edges.size == 0:
        return sp.csr_array((n, n), dtype=np.float32), []
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        remedy = "; transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InputError(
            f"edges must be (2, E) node positions, got {edges.dtype} {edges.shape}{remedy}"
        )
    outside = (edges < 0) | (edges >= n)
    if outside.any():
        at = int(np.argmax(outside.any(axis=0)))
        raise InputError(
            f"edge {at} joins nodes {int(edges[0, at])} and {int(edges[1, at])}, but the features "
            f"describe nodes 0 … {n - 1} only"
        )
    values = np.ones(edges.shape[1]) if weights is None else np.asarray(weights).reshape(-1)
    values = values.astype(np.float32)
    if values.shape != (edges.shape[1],):
        raise InputError(f"{edges.shape[1]} edges but {values.size} edge weights")
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"edge {at} has weight {values[at]}; weights must be finite and not negative"
        )

    loops = edges[0] == edges[1]
    keep = ~loops & (values > 0)
    row, col, values = (
        edges[0, keep].astype(np.int64),
        edges[1, keep].astype(np.int64),
        values[keep],
    )
    # Sorted by place, then weight: the last entry of each place is the largest.
    order = np.lexsort((values, row * n + col))
    row, col, values = row[order], col[order], values[order]
    place = row * n + col
    last = np.append(place[1:] != place[:-1], True) if place.size else np.zeros(0, bool)
    one_way = sp.csr_array((values[last], (row[last], col[last])), shape=(n, n))
    both_ways = one_way.maximum(one_way.T).tocsr()
    both_ways.sort_indices()

    counts = {
        "self-loops dropped": loops.sum(),
        "repeated edges merged": values.size - last.sum(),
        "one-directional edges made symmetric": both_ways.nnz - one_way.nnz,
        "edges of weight 0 dropped": (~loops & ~keep).sum(),
    }
    notes = [f"{count} {what}" for what, count in counts.items() if count]
    return both_ways.astype(np.float32), notes


def _clean_features(features: ArrayLike | sp.sparray | sp.spmatrix) -> Any:
    if sp.issparse(features):
        matrix = sp.csr_array(features).astype(np.float32)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix
    try:
        dense = np.array(features)
    except ValueError as error:
        raise InputError(f"features must be rows of equal length: {error}") from error
    if dense.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers, got {dense.dtype}")
    return np.ascontiguousarray(dense, dtype=np.float32)


def _clean_labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Class codes from any whole numbers, one per node."""
    codes = np.asarray(labels)
    if codes.ndim > 1 and codes.shape[1:] != (1,):
        raise InputError(f"labels must be one class code per node, got shape {codes.shape}")
    whole = codes.dtype.kind in "iub" or (
        codes.dtype.kind == "f" and (codes == codes.round()).all()
    )
    if not whole:
        raise InputError(
            f"labels must be integer class codes (-1 unknown), got {codes.dtype}; "
            "numpy.unique(labels, return_inverse=True) turns names into codes"
        )
    return codes.astype(np.int64).reshape(-1)


def as_graph(graph: Graph | Data) -> Graph:
    """A graph from itself or from PyG ``Data``."""
    if isinstance(graph, Graph):
        return graph
    if not hasattr(graph, "edge_index") or not hasattr(graph, "get"):
        raise InputError(f"a Graph or PyG Data is needed, got {type(graph).__name__}")
    return Graph.from_pyg(graph)


def _features_of(x: Tensor) -> FeatureMatrix:
    """A tensor of any layout as an array, or as CSR when under a tenth of it is set."""
    if x.layout != torch.strided:
        coo = x.to_sparse(layout=torch.sparse_coo).coalesce()
        entries = (coo.values().numpy(force=True), tuple(coo.indices().numpy(force=True)))
        return sp.csr_array(entries, shape=tuple(x.shape))
    features = x.numpy(force=True)
    few = features.size > 0 and np.count_nonzero(features) < features.size / 10
    return sp.csr_array(features) if few else features


def _check_adjacency(adjacency: sp.csr_array) -> None:
    if not isinstance(adjacency, sp.csr_array) or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError("adjacency must be a square csr_array; use Graph.from_scipy or from_edges")
    if not np.isfinite(adjacency.data).all() or (adjacency.data <= 0).any():
        raise InputError("adjacency weights must be positive and finite")
    if not adjacency.has_canonical_format:
        raise InputError("adjacency must list each entry once, columns in order; use from_scipy")
    if adjacency.diagonal().any():
        raise InputError("adjacency must not hold self-loops; Graph.from_scipy drops them")
    if abs(adjacency - adjacency.T).nnz:
        raise InputError("adjacency must be symmetric; Graph.from_scipy makes it so")


def _check_features(features: FeatureMatrix, n: int) -> None:
    if features.ndim != 2 or features.shape[0] != n or features.shape[1] == 0:
        raise InputError(f"features must be {n} rows of at least one column, got {features.shape}")
    if features.dtype != np.float32:
        raise InputError(f"features must be float32, got {features.dtype}")
    sparse = sp.issparse(features)
    wrong = ~np.isfinite(features.data if sparse else features)
    if not wrong.any():
        return
    if sparse:
        coo = features.tocoo()
        row, col = int(coo.row[wrong][0]), int(coo.col[wrong][0])
    else:
        row, col = (int(i) for i in np.argwhere(wrong)[0])
    raise InputError(
        f"{int(wrong.sum())} feature values are NaN or infinite, the first at node {row}, column "
        f"{col}; fill or drop them first"
    )


def _check_labels(labels: NDArray[np.int64], n: int, num_classes: int) -> None:
    if labels.shape != (n,):
        raise InputError(f"{n} nodes but labels of shape {labels.shape}")
    wrong = (labels < UNKNOWN) | (labels >= num_classes)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"node {at} has label {int(labels[at])}; allowed are 0 … {num_classes - 1}, and -1 for "
            "unknown"
        )


def _check_ids(ids: NDArray[Any], n: int) -> None:
    if ids.shape != (n,) or ids.dtype.kind not in "iuUO":
        raise InputError(f"ids must be {n} strings or integers, got {ids.dtype} {ids.shape}")
    first: dict[Any, int] = {}
    for node, name in enumerate(ids.tolist()):
        if first.setdefault(name, node) != node:
            raise InputError(
                f"id {name!r} occurs more than once, at nodes {first[name]} and {node}"
            )


def _freeze(*arrays: Any) -> None:
    for array in arrays:
        parts = (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,)
        for part in parts:
            part.flags.writeable = False
