"""The ensemble: folds of labels, weights from left-out labels, own members."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import load
from dcgst.errors import InputError
from dcgst.methods import GCN, METHODS, Ensemble, Majority
from dcgst.methods.ensemble.combination import (
    Evidence,
    agreements,
    combine,
    pseudo_labels,
    with_shares,
)
from dcgst.methods.ensemble.members import MemberFit, fit_student, label_folds
from dcgst.methods.result import LEFT_OUT
from dcgst.methods.row_models import Affine
from dcgst.splits import sample
from dcgst.testing import check_method, small_graph, small_split
from tests.methods.helpers import problem_of


def test_folds_divide_each_class_and_keep_the_only_label_of_a_class():
    labels = torch.tensor([[0] * 10 + [1] * 5 + [2] + [-1] * 4])
    folds = label_folds(labels, 5, (3,))[0]
    for first, last, each in ((0, 10, 2), (10, 15, 1)):
        assert torch.bincount(folds[first:last], minlength=5).tolist() == [each] * 5
    assert folds[15:].tolist() == [-1] * 5
    assert torch.equal(label_folds(labels, 5, (3,))[0], folds)
    assert not torch.equal(label_folds(labels, 5, (4,))[0], folds)


def fit_of(proba):
    log_proba = torch.tensor([proba]).log()
    return MemberFit(log_proba, log_proba, None, None)


def evidence_of(labels, *, random=False, trust=1.0):
    labels = torch.tensor([labels])
    everywhere = torch.ones_like(labels, dtype=torch.bool)
    return Evidence.of(labels, everywhere & random, everywhere, torch.tensor([trust]))


EVERY_NODE = torch.ones(1, 2, dtype=torch.bool)


def test_weights_are_the_fourth_power_of_left_out_accuracy():
    right, wrong = fit_of([[0.9, 0.1]] * 2), fit_of([[0.4, 0.6]] * 2)
    found = combine({"right": right, "wrong": wrong}, evidence_of([0, 0]), EVERY_NODE)
    # (2 + 1) / (2 + 2) and (0 + 1) / (2 + 2)
    assert float(found.weights["right"] / found.weights["wrong"]) == pytest.approx(3**4)
    assert (found.log_proba.argmax(-1) == 0).all()


def test_biased_labels_do_not_set_weights_and_clusters_count_more():
    right, wrong = fit_of([[0.9, 0.1]] * 2), fit_of([[0.4, 0.6]] * 2)
    evidence = evidence_of([0, 0], trust=0.0)
    found = combine({"right": right, "wrong": wrong}, evidence, EVERY_NODE, ["wrong"])
    assert float(found.weights["wrong"] / found.weights["right"]) == pytest.approx(20)
    trusted = combine({"right": right, "wrong": wrong}, evidence_of([0, 0]), EVERY_NODE, ["wrong"])
    assert float(trusted.weights["wrong"] / trusted.weights["right"]) == pytest.approx(3**-4)


def test_a_single_member_is_not_scaled_by_its_agreement_with_itself():
    """Labels that are not believed: the student has learned from the member, so it agrees, too."""
    alone = fit_of([[0.7, 0.3]] * 2)
    evidence = evidence_of([0, 0], trust=0.0)
    for fits in ({"gcn": alone}, {"gcn": alone, "student": alone}):
        found = combine(fits, evidence, EVERY_NODE)
        assert [float(scale.factor) for scale in found.scales.values()] == [1.0] * len(fits)
        torch.testing.assert_close(found.log_proba.exp()[0, 0], torch.tensor([0.7, 0.3]))
    two = combine({"gcn": alone, "mlp": alone}, evidence, EVERY_NODE)
    assert float(two.scales["gcn"].factor) > 2


def test_random_labels_count_fully_where_training_labels_do_not():
    evidence = evidence_of([0] * 5, random=True, trust=0.0)
    assert evidence.belief.tolist() == [0.5]  # as many as ENOUGH_RANDOM
    assert evidence.counts.tolist() == [[1.0] * 5]
    assert float(evidence.accuracy(fit_of([[0.9, 0.1]] * 5).log_proba)) == pytest.approx(6 / 7)


def test_a_prediction_that_is_too_confident_is_scaled_down():
    log_proba = torch.tensor([[[0.99, 0.01]] * 400]).log()
    evidence = evidence_of([0] * 300 + [1] * 100)  # right in 75%, claims 99%
    factor = evidence.best_factor(log_proba)
    assert float((factor * log_proba[0, 0]).softmax(-1)[0]) == pytest.approx(0.75, abs=0.03)


def test_shares_move_towards_those_of_a_random_sample():
    log_proba = torch.full((1, 60, 2), 0.5).log()
    evidence = evidence_of([1] * 40, random=True)
    nodes = torch.arange(60)[None] >= 40
    one = Affine(torch.ones(1))
    calibration = with_shares(one, log_proba, log_proba[:, :40], evidence, nodes)
    # 40 labels: half of the difference between 1 and the mean prediction 0.5 counts
    shares = calibration.apply(log_proba)[0, -1].exp()
    assert shares.tolist() == pytest.approx([0.25, 0.75], abs=1e-3)


def test_many_labels_need_few_folds():
    few = label_folds(torch.arange(100)[None] % 4, 5, (0,))
    many = label_folds(torch.arange(2600)[None] % 4, 5, (0,))
    assert sorted(set(few[0].tolist())) == [0, 1, 2, 3, 4]
    assert sorted(set(many[0].tolist())) == [-1, 0]  # 520 labels are enough


def test_validation_labels_are_always_left_out():
    labels = torch.arange(2600)[None] % 4
    labels[0, -1] = 4  # the only label of its class
    always = torch.zeros_like(labels, dtype=torch.bool)
    always[0, -300:] = True
    folds = label_folds(labels, 5, (0,), always)
    assert (folds[always] >= 0).all()
    assert int(folds.max()) == 0


def test_agreement_is_the_share_of_nodes_with_the_same_class():
    fits = {"a": fit_of([[0.9, 0.1]] * 2), "b": fit_of([[0.9, 0.1], [0.1, 0.9]])}
    assert agreements(fits, EVERY_NODE)["a"].tolist() == [0.5]


def test_a_member_without_skill_has_a_small_weight():
    graph = load("digits")
    split = sample(graph, "uniform", per_class=10, runs=1)
    model = Ensemble(members="majority,lp").fit(graph, split)
    assert model.member_weights_["lp"] > 100 * model.member_weights_["majority"]
    assert (model.labels_ == graph.labels).mean() > 0.9


class Constant(Majority):
    """A method of a user, without a model for other graphs."""

    name = "constant"


def test_own_members_are_instances_or_paths():
    graph, split = small_graph(), small_split(small_graph())
    members = ("lp", GCN(epochs=3), GCN(epochs=5), Constant())
    model = Ensemble(members=members, student=None).fit(graph, split)
    assert list(model.member_weights_) == ["lp", "gcn", "gcn-2", "constant"]
    by_path = Ensemble(members=f"lp,{__name__}:Constant", student=None).fit(graph, split)
    assert list(by_path.member_weights_) == ["lp", "constant"]
    check_method(lambda **settings: Ensemble(members=f"mlp,{__name__}:Constant", **settings))


def test_other_graphs_are_predicted_by_the_members_that_have_a_model():
    graph, split = small_graph(), small_split(small_graph())
    model = Ensemble(members=("lp", "em")).fit(graph, split)
    other = small_graph(150)
    proba = model.predict_proba(other)
    assert proba.shape == (150, graph.num_classes)
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-4)


def test_members_without_a_model_of_another_graph_are_named():
    graph, split = small_graph(), small_split(small_graph())
    model = Ensemble(members=("lp", "em", Constant()), student=None).fit(graph, split)
    nothing, everything = np.full(graph.num_nodes, -1), graph.labels
    assert model.members_without_model(model.result_, nothing) == ["lp", "constant"]
    assert model.members_without_model(model.result_, everything) == ["constant"]
    for members, message in ((("lp",), "so few labels"), ((Constant(),), "constant; add one")):
        fitted = Ensemble(members=members, student=None).fit(graph, split)
        with pytest.raises(InputError, match=message):
            fitted.predict_proba(small_graph(150))


def test_none_is_no_student():
    assert Ensemble(student="none").create_student() is None
    assert list(Ensemble(members="lp", student="none").all_members()) == ["lp"]


@pytest.mark.parametrize("members", ["", "lp,nonsense", "lp,,em", (), (3,), 5])
def test_invalid_members_are_errors(members):
    with pytest.raises(InputError, match="members"):
        Ensemble(members=members).check()


def test_it_is_registered():
    assert METHODS["ensemble"] is Ensemble


def test_pseudo_labels_are_the_confident_half_of_each_predicted_class():
    proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.1, 0.9], [0.4, 0.6]]
    nodes = torch.tensor([[True] * 6])
    nodes[0, 0] = False  # a labeled node
    # 3 nodes are predicted as class 0, of which half, rounded up, are 2; 2 as class 1
    labels = pseudo_labels(torch.tensor([proba]).log(), nodes)
    assert labels.tolist() == [[-1, 0, 0, -1, 1, -1]]


def test_the_left_out_predictions_of_the_student_are_those_of_its_teachers():
    graph, split = small_graph(), small_split(small_graph())
    problem = problem_of(graph, split)
    task = Ensemble(members="lp").make_task(problem)
    labels = torch.full_like(problem.train_labels, -1)
    labels[:, 100:] = 0  # all other nodes are said to be of class 0
    left_out = torch.randn(1, len(task.rows), graph.num_classes).log_softmax(-1)
    student = fit_student(METHODS["mlp"](epochs=30), task, labels, left_out)
    torch.testing.assert_close(student.left_out, left_out)
    fewer = task.problem.train_labels.clone()
    fewer[:, task.rows[0]] = -1
    hidden = replace(task, problem=replace(task.problem, train_labels=fewer))
    student = fit_student(METHODS["mlp"](epochs=30), hidden, labels, left_out)
    own = student.log_proba[:, task.rows[0]]
    torch.testing.assert_close(student.left_out[:, 0], own)  # not trained on this label
    torch.testing.assert_close(student.left_out[:, 1:], left_out[:, 1:])
    assert (student.log_proba[0, 100:].argmax(-1) == 0).float().mean() > 0.9


def test_the_student_learns_from_the_members():
    graph = load("digits")
    split = sample(graph, "uniform", per_class=3, runs=1)
    taught = Ensemble(members="lp", student="mlp").fit(graph, split)
    assert list(taught.member_weights_) == ["lp", "student"]
    features_only = METHODS["mlp"]().fit(graph, split)
    pool = split.pool[0]
    truth = graph.labels[pool]
    member = taught.result_.predictors[0].members["student"]
    assert member is not None
    right = (taught.labels_[pool] == truth).mean()
    assert right > (features_only.labels_[pool] == truth).mean() + 0.05


def test_invalid_students_are_errors():
    with pytest.raises(InputError, match="student: unknown method 'nonsense'"):
        Ensemble(student="nonsense").check()


def test_the_name_student_belongs_to_the_student():
    class Student(Majority):
        name = "student"

    graph, split = small_graph(), small_split(small_graph())
    members = ("lp", Student())
    assert list(Ensemble(members=members).all_members()) == ["lp", "student-2", "student"]
    fitted = Ensemble(members=members, student=None).fit(graph, split)
    assert list(fitted.member_weights_) == ["lp", "student-2"]


def test_two_equal_members_have_different_random_numbers():
    graph, split = small_graph(), small_split(small_graph())
    members = (GCN(epochs=5), GCN(epochs=5))
    model = Ensemble(members=members, student=None).fit(graph, split)
    first, second = model.result_.predictors[0].members.values()
    left, right = (own.fits[0].network.weight1 for own in (first, second))
    assert not torch.equal(left, right)


@pytest.mark.parametrize("settings", [{"replicas": 3}, {"prior": {"a": 0.5}}, {"chunk_size": 1}])
def test_settings_that_the_ensemble_has_for_all_members_are_errors(settings):
    with pytest.raises(InputError, match="set it for the ensemble"):
        Ensemble(members=("lp", GCN(**settings))).check()


def test_settings_are_restored_with_instances_and_names():
    for members in ("lp,em", ("lp", GCN(epochs=3))):
        model = Ensemble(members=members, student=GCN(epochs=2))
        stored = json.loads(json.dumps(model.config()))
        restored = Ensemble.from_stored(stored)
        assert restored.config() == model.config()
        assert restored.student.epochs == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"members": "lp,evil_module:Method"},
        {"members": ["lp", "evil_module:Method"]},
        {"members": [{"gcn": {"backbone": "evil_module:Network"}}]},
        {"student": "evil_module:Method"},
    ],
)
def test_stored_settings_never_name_a_module_to_import(settings):
    with pytest.raises(InputError, match="evil_module"):
        Ensemble.from_stored(settings)


def test_labels_that_no_fit_left_out_are_not_counted_as_left_out():
    graph = load("digits")
    split = sample(graph, "uniform", per_class=1, runs=1, val_count=0)
    found = Ensemble(members="lp,mlp", student=None).fit(graph, split).result_.expectation
    assert LEFT_OUT not in found


def test_each_fit_has_its_own_number_of_folds():
    labels = torch.full((2, 2600), -1)
    labels[0] = torch.arange(2600) % 4
    labels[1, :40] = torch.arange(40) % 4
    folds = label_folds(labels, 5, (0, 1))
    assert folds.amax(1).tolist() == [0, 4]
    assert torch.equal(folds[:1], label_folds(labels[:1], 5, (0,)))
