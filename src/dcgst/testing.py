"""Checks that every method must pass; for methods of your own too.

from dcgst.testing import check_method
check_method(lambda **settings: MyMethod(epochs=5, **settings))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.methods.base import Method
from dcgst.methods.stages import GIVEN, NEVER
from dcgst.splits import Split, sample


class Make(Protocol):
    """Makes the method under test, with any settings on top of its own."""

    def __call__(self, **settings: object) -> Method: ...


Check = Callable[[Make], None]


def small_graph(nodes: int = 120) -> Graph:
    """A small shifted graph for checks."""
    return synthetic(nodes, 3, features=8, labels_per_class=4, seed=1)


def small_split(graph: Graph, runs: int = 1) -> Split:
    """Biased labels with a little validation."""
    return sample(graph, "ppr-s", per_class=3, runs=runs, val_rate=0.1)


def check_method(make: Make) -> None:
    """Run every check; the first that fails raises."""
    for check in CHECKS:
        check(make)


def check_constructor_only_stores(make: Make) -> None:
    """Settings come out as they went in, nothing is fitted, and scikit-learn can clone it."""
    from sklearn.base import clone

    method = make(seed=7)
    params = method.get_params()
    assert params["seed"] == 7
    assert not [name for name in vars(method) if name.endswith("_")], "fitted before fit"
    again = clone(method)
    assert again is not method
    assert again.get_params() == params


def check_results(make: Make) -> None:
    """Fit returns the method itself, with results of the promised shapes and meaning."""
    graph = small_graph()
    split = small_split(graph)
    method = make()
    assert method.fit(graph, split) is method
    n, classes = graph.num_nodes, graph.num_classes
    assert method.proba_.shape == (n, classes)
    assert np.isfinite(method.proba_).all()
    assert (method.proba_ >= 0).all()
    np.testing.assert_allclose(method.proba_.sum(axis=1), 1, rtol=1e-4)
    assert method.labels_.shape == method.labeled_stage_.shape == (n,)
    assert method.labels_.min() >= 0
    assert method.labels_.max() < classes
    assert method.history_
    assert all(
        {"replica", "stage", "labeled", "cmd"} <= record.keys() for record in method.history_
    )
    assert method.stop_reason_
    np.testing.assert_array_equal(method.predict(), method.labels_)
    np.testing.assert_array_equal(method.predict_proba(), method.proba_)
    assert 0 <= method.score(graph) <= 1


def check_given_labels_stay(make: Make) -> None:
    """Given labels are never changed, not even wrong ones, and validation nodes never join."""
    graph = small_graph()
    split = small_split(graph)
    train, val = split.train[0], split.val[0]
    wrong = graph.labels.copy()
    wrong[np.flatnonzero(train)[0]] = (wrong[np.flatnonzero(train)[0]] + 1) % graph.num_classes
    method = make().fit(graph.with_labels(wrong), split)
    np.testing.assert_array_equal(method.labels_[train], wrong[train])
    assert (method.labeled_stage_[train] == GIVEN).all()
    assert (method.labeled_stage_[~train] != GIVEN).all()
    assert (method.labeled_stage_[val] == NEVER).all()


def check_audit(make: Make) -> None:
    """Pseudo-labels come from the pool alone, and the book tells of every one of them."""
    graph = small_graph()
    split = small_split(graph)
    method = make().fit(graph, split)
    assert split.pool[0][method.audit_["node"]].all(), "a candidate that is not in the pool"
    joined = method.labeled_stage_ > GIVEN
    assert split.pool[0][joined].all(), "a pseudo-label outside of the pool"
    chosen = method.audit_[method.audit_["chosen"]]
    assert set(np.flatnonzero(joined)) <= set(chosen["node"])
    for record in method.history_:
        if record["stage"] > 0:
            assert {"cmd_before", "cmd", "accuracy", "candidates"} <= record.keys()


def check_pool_labels_unused(make: Make) -> None:
    """Scrambling the labels of the nodes to predict changes nothing."""
    graph = small_graph()
    split = small_split(graph)
    scrambled = graph.labels.copy()
    pool = np.flatnonzero(split.pool[0])
    scrambled[pool] = np.random.default_rng(0).permutation(scrambled[pool])
    hidden = np.where(split.pool[0], -1, graph.labels)
    expected = make().fit(graph, split).proba_
    for labels in (scrambled, hidden):
        np.testing.assert_array_equal(make().fit(graph.with_labels(labels), split).proba_, expected)


def check_seed_decides(make: Make) -> None:
    """The same seed gives the same result, and the global generators are left alone."""
    graph = small_graph()
    split = small_split(graph)
    torch_before, numpy_before = torch.get_rng_state(), _numpy_state()
    first = make(seed=3).fit(graph, split).proba_
    assert torch.equal(torch.get_rng_state(), torch_before), "torch's global generator was used"
    assert _numpy_state() == numpy_before, "NumPy's global generator was used"
    np.testing.assert_array_equal(make(seed=3).fit(graph, split).proba_, first)


def check_runs_alone_or_together(make: Make) -> None:
    """A run gives the same whether computed alone, among others, or by ``fit``."""
    graph = small_graph()
    split = small_split(graph, runs=3)
    together = make(chunk=3).fit_runs(graph, split)
    one_by_one = make(chunk=1).fit_runs(graph, split)
    for run in range(3):
        _close(together[run].proba, one_by_one[run].proba)
        _close(make().fit(graph, split[run]).proba_, one_by_one[run].proba)


def check_replicas_are_averaged(make: Make) -> None:
    """An ensemble's probabilities are the mean over its members'."""
    graph = small_graph()
    split = small_split(graph)
    three, two, one = (make(replicas=k).fit(graph, split) for k in (3, 2, 1))
    assert {record["replica"] for record in three.history_} == {0, 1, 2}
    # The third member, from both sides: what it adds to three, and what it would be alone.
    second = 2 * two.proba_ - one.proba_
    third = 3 * three.proba_ - 2 * two.proba_
    for member in (second, third):
        np.testing.assert_allclose(member.sum(axis=1), 1, rtol=1e-3)
        assert (member > -1e-3).all(), "not a mean over members"
    if not one.deterministic:
        assert not np.allclose(second, one.proba_, atol=1e-6), "two members are the same"
        assert not np.allclose(second, third, atol=1e-6), "two members are the same"


def check_chunk_mates_do_not_matter(make: Make) -> None:
    """A run with validation and one without, computed together, are as they are alone."""
    graph = small_graph()
    split = small_split(graph, runs=2)
    val = split.val.copy()
    val[1] = False
    mixed = dataclasses.replace(split, val=val)
    together = make(chunk=2).fit_runs(graph, mixed)
    for run in range(2):
        (alone,) = make().fit_runs(graph, mixed[run])
        _close(together[run].proba, alone.proba)


def check_without_validation(make: Make) -> None:
    """Two labels per class, no validation, two nodes without an edge: still an answer for all."""
    graph = _with_isolated(small_graph())
    train = np.zeros(graph.num_nodes, dtype=bool)
    for label in range(graph.num_classes):
        train[np.flatnonzero(graph.labels == label)[:2]] = True
    method = make().fit(graph, Split.of(train))
    assert np.isfinite(method.proba_).all()
    known = graph.with_labels(np.where(train, graph.labels, -1))
    np.testing.assert_array_equal(make().fit(known).proba_, method.proba_)


def check_class_without_labels(make: Make) -> None:
    """A class that no label names is no reason to fail."""
    graph = small_graph()
    split = small_split(graph)
    named = split.train & (graph.labels != 1)
    method = make().fit(graph, dataclasses.replace(split, train=named))
    assert np.isfinite(method.proba_).all()
    assert method.labels_.shape == (graph.num_nodes,)


def check_nothing_left_to_predict(make: Make) -> None:
    """All nodes labeled: no pool, no pseudo-labels, and still a fitted method."""
    graph = small_graph()
    method = make().fit(graph, Split.of(np.ones(graph.num_nodes, dtype=bool)))
    np.testing.assert_array_equal(method.labels_, graph.labels)
    assert method.audit_.size == 0
    assert (method.labeled_stage_ == GIVEN).all()


def check_pyg_data(make: Make) -> None:
    """PyG ``Data`` is as good as a graph."""
    graph = small_graph()
    np.testing.assert_array_equal(make().fit(graph.to_pyg()).proba_, make().fit(graph).proba_)


CHECKS: tuple[Check, ...] = (
    check_constructor_only_stores,
    check_results,
    check_given_labels_stay,
    check_audit,
    check_pool_labels_unused,
    check_seed_decides,
    check_runs_alone_or_together,
    check_chunk_mates_do_not_matter,
    check_replicas_are_averaged,
    check_without_validation,
    check_class_without_labels,
    check_nothing_left_to_predict,
    check_pyg_data,
)


def _with_isolated(graph: Graph) -> Graph:
    """The graph without the edges of its last two nodes."""
    cut = graph.adjacency.tolil()
    cut[-2:, :] = 0
    cut[:, -2:] = 0
    adjacency = cut.tocsr()
    adjacency.eliminate_zeros()
    return dataclasses.replace(graph, adjacency=adjacency, masks={})


def _numpy_state() -> str:
    return str(np.random.get_state(legacy=False))  # noqa: NPY002


def _close(left: NDArray[np.float32], right: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(left, right, atol=1e-4)
