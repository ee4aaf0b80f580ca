"""Contract checks that every method must pass, also for your own methods.

Example:
    >>> from dcgst import GCN
    >>> from dcgst.testing import check_method
    >>> check_method(lambda **settings: GCN(**{"epochs": 2, "hidden": 4, **settings}))
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
from dcgst.methods.result import NOT_LABELED, TRAINING_LABEL
from dcgst.splits import Split, sample


class Make(Protocol):
    """Creates the method to check, with any settings in addition to its own."""

    def __call__(self, **settings: object) -> Method: ...


Check = Callable[[Make], None]


def small_graph(nodes: int = 120) -> Graph:
    """A small graph with biased labels."""
    return synthetic(nodes, 3, features=8, labels_per_class=4, seed=1)


def small_split(graph: Graph, runs: int = 1) -> Split:
    """Biased training labels and some validation nodes."""
    return sample(graph, "ppr-s", per_class=3, runs=runs, val_rate=0.1)


def check_method(make: Make) -> None:
    """Run all checks; the first that fails raises."""
    for check in CHECKS:
        check(make)


def check_constructor_only_stores(make: Make) -> None:
    """The constructor stores settings unchanged, and scikit-learn can clone the method."""
    from sklearn.base import clone

    method = make(seed=7)
    params = method.get_params()
    assert params["seed"] == 7
    assert not [name for name in vars(method) if name.endswith("_")], "fitted before fit"
    cloned = clone(method)
    assert cloned is not method
    assert cloned.get_params() == params


def check_results(make: Make) -> None:
    """``fit`` returns the method, with results of the documented shapes and meaning."""
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


def check_given_labels_are_kept(make: Make) -> None:
    """Given labels never change, even wrong ones, and validation nodes get no pseudo-label."""
    graph = small_graph()
    split = small_split(graph)
    train, val = split.train[0], split.val[0]
    wrong = graph.labels.copy()
    wrong[np.flatnonzero(train)[0]] = (wrong[np.flatnonzero(train)[0]] + 1) % graph.num_classes
    method = make().fit(graph.with_labels(wrong), split)
    np.testing.assert_array_equal(method.labels_[train], wrong[train])
    assert (method.labeled_stage_[train] == TRAINING_LABEL).all()
    assert (method.labeled_stage_[~train] != TRAINING_LABEL).all()
    assert (method.labeled_stage_[val] == NOT_LABELED).all()


def check_candidates(make: Make) -> None:
    """Pseudo-labels come from the pool, and the table of candidates contains every one of them."""
    graph = small_graph()
    split = small_split(graph)
    method = make().fit(graph, split)
    assert split.pool[0][method.candidates_["node"]].all(), "a candidate outside the pool"
    pseudo = method.labeled_stage_ > TRAINING_LABEL
    assert split.pool[0][pseudo].all(), "a pseudo-label outside the pool"
    selected = method.candidates_[method.candidates_["selected"]]
    assert set(np.flatnonzero(pseudo)) <= set(selected["node"])
    for record in method.history_:
        if record["stage"] > 0:
            assert {"cmd_before", "cmd", "accuracy", "candidates"} <= record.keys()


def check_pool_labels_are_unused(make: Make) -> None:
    """Permuting or hiding the labels of the pool changes nothing."""
    graph = small_graph()
    split = small_split(graph)
    permuted = graph.labels.copy()
    pool = np.flatnonzero(split.pool[0])
    permuted[pool] = np.random.default_rng(0).permutation(permuted[pool])
    hidden = np.where(split.pool[0], -1, graph.labels)
    expected = make().fit(graph, split).proba_
    for labels in (permuted, hidden):
        np.testing.assert_array_equal(make().fit(graph.with_labels(labels), split).proba_, expected)


def check_seed(make: Make) -> None:
    """The same seed gives the same result, and global random generators are not used."""
    graph = small_graph()
    split = small_split(graph)
    torch_before, numpy_before = torch.get_rng_state(), _numpy_state()
    first = make(seed=3).fit(graph, split).proba_
    assert torch.equal(torch.get_rng_state(), torch_before), "torch's global generator was used"
    assert _numpy_state() == numpy_before, "NumPy's global generator was used"
    np.testing.assert_array_equal(make(seed=3).fit(graph, split).proba_, first)


def check_runs_are_independent(make: Make) -> None:
    """A run gives the same result alone, together with others, and by ``fit``."""
    graph = small_graph()
    split = small_split(graph, runs=3)
    together = make(chunk_size=3).fit_runs(graph, split)
    one_by_one = make(chunk_size=1).fit_runs(graph, split)
    for run in range(3):
        _assert_close(together[run].proba, one_by_one[run].proba)
        _assert_close(make().fit(graph, split[run]).proba_, one_by_one[run].proba)


def check_runs_without_validation_are_independent(make: Make) -> None:
    """Runs with and without validation nodes can be computed together."""
    graph = small_graph()
    split = small_split(graph, runs=2)
    val = split.val.copy()
    val[1] = False
    mixed = dataclasses.replace(split, val=val)
    together = make(chunk_size=2).fit_runs(graph, mixed)
    for run in range(2):
        (alone,) = make().fit_runs(graph, mixed[run])
        _assert_close(together[run].proba, alone.proba)


def check_replicas_are_averaged(make: Make) -> None:
    """The probabilities of several replicas are the mean over the replicas."""
    graph = small_graph()
    split = Split.of(small_split(graph).train[0])
    three, two, one = (make(replicas=k).fit(graph, split) for k in (3, 2, 1))
    assert {record["replica"] for record in three.history_} == {0, 1, 2}
    second = 2 * two.proba_ - one.proba_
    third = 3 * three.proba_ - 2 * two.proba_
    for replica in (second, third):
        np.testing.assert_allclose(replica.sum(axis=1), 1, rtol=1e-3)
        assert (replica > -1e-3).all(), "not a mean over replicas"
    if not one.deterministic:
        assert not np.allclose(second, one.proba_, atol=1e-6), "two replicas are equal"
        assert not np.allclose(second, third, atol=1e-6), "two replicas are equal"


def check_without_validation(make: Make) -> None:
    """Two labels per class, no validation, isolated nodes: every node gets a prediction."""
    graph = _with_isolated_nodes(small_graph())
    train = np.zeros(graph.num_nodes, dtype=bool)
    for label in range(graph.num_classes):
        train[np.flatnonzero(graph.labels == label)[:2]] = True
    method = make().fit(graph, Split.of(train))
    assert np.isfinite(method.proba_).all()
    known = graph.with_labels(np.where(train, graph.labels, -1))
    np.testing.assert_array_equal(make().fit(known).proba_, method.proba_)


def check_class_without_labels(make: Make) -> None:
    """A class without training labels does not cause an error."""
    graph = small_graph()
    split = small_split(graph)
    train = split.train & (graph.labels != 1)
    method = make().fit(graph, dataclasses.replace(split, train=train))
    assert np.isfinite(method.proba_).all()
    assert method.labels_.shape == (graph.num_nodes,)


def check_empty_pool(make: Make) -> None:
    """All nodes labeled: no pool, no pseudo-labels, and still a fitted method."""
    graph = small_graph()
    method = make().fit(graph, Split.of(np.ones(graph.num_nodes, dtype=bool)))
    np.testing.assert_array_equal(method.labels_, graph.labels)
    assert method.candidates_.size == 0
    assert (method.labeled_stage_ == TRAINING_LABEL).all()


def check_pyg_data(make: Make) -> None:
    """PyG ``Data`` gives the same result as a :class:`Graph`."""
    graph = small_graph()
    np.testing.assert_array_equal(make().fit(graph.to_pyg()).proba_, make().fit(graph).proba_)


CHECKS: tuple[Check, ...] = (
    check_constructor_only_stores,
    check_results,
    check_given_labels_are_kept,
    check_candidates,
    check_pool_labels_are_unused,
    check_seed,
    check_runs_are_independent,
    check_runs_without_validation_are_independent,
    check_replicas_are_averaged,
    check_without_validation,
    check_class_without_labels,
    check_empty_pool,
    check_pyg_data,
)


def _with_isolated_nodes(graph: Graph) -> Graph:
    """The graph without the edges of its last two nodes."""
    cut = graph.adjacency.tolil()
    cut[-2:, :] = 0
    cut[:, -2:] = 0
    adjacency = cut.tocsr()
    adjacency.eliminate_zeros()
    return dataclasses.replace(graph, adjacency=adjacency, masks={})


def _numpy_state() -> str:
    return str(np.random.get_state(legacy=False))  # noqa: NPY002


def _assert_close(left: NDArray[np.float32], right: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(left, right, atol=1e-4)
