"""DC-GST: its stages, its student, other graphs, and its accuracy on biased labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import load, synthetic
from dcgst.errors import InputError
from dcgst.methods import DCGST, GCN, Ensemble
from dcgst.methods.dcgst import algorithm as method
from dcgst.methods.dcgst.candidates import Candidates, find_candidates, propagated_features
from dcgst.methods.dcgst.teacher import Teacher
from dcgst.methods.problem import Problem
from dcgst.shift.cmd import labeled_shift
from dcgst.splits import Split, sample
from dcgst.train.training import EpochEnd, cross_entropy
from tests.methods.helpers import problem_of, ring_problem, selection_of
from tests.methods.helpers import quick_dcgst as quick


@pytest.fixture
def problem(small, one_run) -> Problem:
    """New for each test: a problem is solved once, because its checkpoint names every step."""
    return problem_of(small, one_run)


class TestStages:
    @pytest.mark.parametrize("growth", [0.0, 0.5, 1.0])
    def test_k_grows_by_the_factor_from_the_mean_number_of_labels(
        self, problem, monkeypatch, growth
    ):
        """K = 4 (1 + λ)^(s - 1): there are four labels per class."""
        seen = []

        def recorded(problem, log_proba, num_candidates, class_balance, budget):
            seen.append(float(num_candidates))
            return find_candidates(problem, log_proba, num_candidates, class_balance, budget)

        monkeypatch.setattr(method, "find_candidates", recorded)
        quick(growth=growth, stage_patience=9).solve(problem)
        assert seen == pytest.approx([4, 4 * (1 + growth), 4 * (1 + growth) ** 2])

    def test_teacher_is_trained_on_the_labels_of_the_stage_before(self, monkeypatch):
        problem = ring_problem([0, 1, 0, -1, -1, -1])
        seen = []
        monkeypatch.setattr(Teacher, "train", lambda self, labels, *_: seen.append(labels[0]))
        selection = selection_of([[1] * 6], [[0, 0, 0, 1, 1, 0]])
        monkeypatch.setattr(Candidates, "select", lambda *_: selection)
        quick(max_stages=2).solve(problem)
        assert [labels.tolist() for labels in seen] == [
            [0, 1, 0, -1, -1, -1],
            [0, 1, 0, 1, 1, -1],
        ]

    def test_runs_that_stop_early_are_not_changed_by_longer_runs(self, small):
        split = sample(small, "ppr-s", per_class=4, runs=3, val_rate=0.1)
        edges = {"edge_predictor": True, "backbone": "gcn", "edge_nodes": 4, "edge_pairs": 8}
        settings = {"stage_patience": 1, "max_stages": 5, "lr": 0.05, **edges}
        together = quick(chunk_size=3, **settings).fit_runs(small, split)
        stages = {len(result.history) for result in together}
        assert len(stages) > 1, "choose data where the runs stop at different stages"
        for result, alone in zip(together, quick(**settings).fit_runs(small, split), strict=True):
            np.testing.assert_allclose(result.proba, alone.proba, atol=1e-4)
            np.testing.assert_array_equal(result.labeled_stage, alone.labeled_stage)
            found, expected = result.edge_probabilities, alone.edge_probabilities
            assert len(found) > 0
            ends = ["source", "target"]
            np.testing.assert_array_equal(found[ends], expected[ends])
            np.testing.assert_allclose(found["probability"], expected["probability"], atol=1e-4)

    @pytest.mark.parametrize("accumulate", [True, False])
    def test_pseudo_labels_are_kept_only_if_accumulated(self, monkeypatch, accumulate):
        """Stage 1 selects nodes 3 and 4, stage 2 selects nodes 4 and 5."""
        problem = ring_problem([0, 1, 0, -1, -1, -1, -1, -1])
        selected = iter([[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0]])
        monkeypatch.setattr(
            Candidates, "select", lambda *_: selection_of([[1] * 8], [next(selected)])
        )
        settings = {"criterion": "confidence", "max_stages": 2, "stage_patience": 9}
        method = quick(accumulate=accumulate, **settings)
        (result,) = method.solve(problem)
        third = 1 if accumulate else -1
        assert result.labeled_stage.tolist() == [0, 0, 0, third, 1, 2, -1, -1]

    def test_number_of_epochs_of_each_training(self, problem):
        events = []
        quick(max_stages=2, stage_patience=9).solve(replace(problem, callbacks=(events.append,)))
        totals = [e.total for e in events if isinstance(e, EpochEnd) and e.number == 0]
        assert totals == [6, 3, 3, 2]  # pretraining, two stages, student

    def test_stops_after_the_maximum_number_of_stages(self, small, one_run):
        fitted = quick(stage_patience=9).fit(small, one_run)
        assert fitted.stop_reason_ == "maximum number of stages (3)"

    def test_stops_if_the_shift_does_not_decrease(self, problem, monkeypatch):
        """Without training and pseudo-labels, the shift stays the same."""
        nothing = selection_of([[0] * 150], [[0] * 150])
        monkeypatch.setattr(Candidates, "select", lambda *_: nothing)
        monkeypatch.setattr(Teacher, "train", lambda *_: None)
        (result,) = quick(max_stages=9, stage_patience=2).solve(problem)
        assert result.stop_reason == "CMD did not decrease for 2 stages"
        assert [record["stage"] for record in result.history] == [0, 1, 2, 3]


class TestStart:
    """The network that the student starts from, among the teachers of four stages."""

    def logits(self, problem, monkeypatch) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Logits of the teacher after each stage, and of the student before its training."""
        teachers, students = [], []

        def recorded(problem, log_proba, num_candidates, class_balance, budget):
            teachers.append(log_proba)
            return find_candidates(problem, log_proba, num_candidates, class_balance, budget)

        monkeypatch.setattr(method, "find_candidates", recorded)
        monkeypatch.setattr(
            DCGST, "train_student", lambda _, student, *__: students.append(student.predict())
        )
        quick(backbone="gcn", lr=0.1, max_stages=4, stage_patience=9).solve(problem)
        return teachers, students[0].logits

    def test_is_the_one_with_the_lowest_validation_loss(self, problem, monkeypatch):
        teachers, student = self.logits(problem, monkeypatch)
        losses = [float(cross_entropy(logits, problem.val_labels)) for logits in teachers]
        best = int(np.argmin(losses))
        assert 0 < best < 3, "choose data where neither the first nor the last stage is the best"
        torch.testing.assert_close(student, teachers[best])

    def test_is_the_last_one_without_validation(self, small, one_run, monkeypatch):
        problem = problem_of(small, Split.of(one_run.train[0]))
        teachers, student = self.logits(problem, monkeypatch)
        torch.testing.assert_close(student, teachers[3])


def test_student_is_trained_on_the_last_labels(problem, monkeypatch):
    seen = []
    monkeypatch.setattr(DCGST, "train_student", lambda self, _, labels, __: seen.append(labels))
    (result,) = quick(stage_patience=9).solve(problem)
    labeled = seen[0][0] >= 0
    np.testing.assert_array_equal(labeled.numpy(), result.labeled_stage >= 0)
    last = result.candidates[(result.candidates["stage"] == 3) & result.candidates["selected"]]
    np.testing.assert_array_equal(seen[0][0].numpy()[last["node"]], last["label"])


def test_student_labels_may_be_those_of_the_lowest_shift(small, one_run, monkeypatch):
    seen = []
    monkeypatch.setattr(DCGST, "train_student", lambda self, _, labels, __: seen.append(labels))
    settings = {"stage_patience": 9, "max_stages": 5, "lr": 0.05}
    problem = problem_of(small, one_run)
    (result,) = quick(student_labels="shift", **settings).solve(problem)
    shifts = [record["cmd"] for record in result.history[1:]]
    lowest = 1 + int(np.argmin(shifts))
    chosen = result.candidates[result.candidates["selected"]]
    of_stage = chosen[chosen["stage"] == lowest]
    labels = seen[0][0].numpy()
    np.testing.assert_array_equal(labels[of_stage["node"]], of_stage["label"])
    assert (labels >= 0).sum() == len(of_stage) + int(one_run.train[0].sum())
    np.testing.assert_array_equal(result.labeled_stage >= 0, labels >= 0)


def test_k_may_grow_by_an_increment(problem, monkeypatch):
    """Algorithm 1: K is incremented by (1 + λ) K."""
    seen = []

    def recorded(problem, log_proba, num_candidates, class_balance, budget):
        seen.append(float(num_candidates))
        return find_candidates(problem, log_proba, num_candidates, class_balance, budget)

    monkeypatch.setattr(method, "find_candidates", recorded)
    quick(growth=0.5, growth_rule="increment", stage_patience=9).solve(problem)
    assert seen == pytest.approx([4, 10, 25])


@pytest.mark.parametrize("name", ["hidden", "tanh", "softmax", "propagated"])
@pytest.mark.parametrize("support", ["range", "one"])
def test_shift_is_measured_in_the_chosen_representation(small, one_run, name, support):
    fitted = quick(representation=name, support=support, max_stages=1).fit(small, one_run)
    problem = problem_of(small, one_run)
    if name == "propagated":  # the only one that training does not change
        z = propagated_features(problem.x, problem.graph.normalized)
        assert float(z.abs().max()) == pytest.approx(1)
        labeled = problem.train_labels >= 0
        expected = labeled_shift(z[None], labeled, problem.pool, fitted.cmd_support)
        assert fitted.history_[0]["cmd"] == pytest.approx(float(expected), rel=1e-3)
        assert fitted.history_[1]["cmd_before"] == pytest.approx(float(expected), rel=1e-3)
    assert np.isfinite([record["cmd"] for record in fitted.history_]).all()


@pytest.mark.parametrize(
    ("best_teacher", "expected"), [("shift", "lowest shift"), ("last", "last stage")]
)
def test_the_student_may_start_from_another_teacher(
    small, one_run, monkeypatch, best_teacher, expected
):
    teachers, students = [], []

    def recorded(problem, log_proba, num_candidates, class_balance, budget):
        teachers.append(log_proba)
        return find_candidates(problem, log_proba, num_candidates, class_balance, budget)

    monkeypatch.setattr(method, "find_candidates", recorded)
    monkeypatch.setattr(
        DCGST, "train_student", lambda _, student, *__: students.append(student.predict())
    )
    settings = {"backbone": "gcn", "lr": 0.3, "max_stages": 4, "stage_patience": 9}
    problem = problem_of(small, one_run)
    (result,) = quick(best_teacher=best_teacher, **settings).solve(problem)
    shifts = [record["cmd"] for record in result.history[1:]]
    number = int(np.argmin(shifts)) if expected == "lowest shift" else 3
    torch.testing.assert_close(students[0].logits, teachers[number])


class TestEdgePredictor:
    def test_table_of_edges_exists_only_with_a_predictor(self, small, one_run):
        settings = {"max_stages": 1, "replicas": 2, "edge_nodes": 10, "edge_pairs": 10}
        settings["backbone"] = "gcn"
        table = quick(edge_predictor=True, **settings).fit(small, one_run).edge_probabilities_
        assert set(table["replica"]) == {0, 1}
        present = small.adjacency.toarray()[table["source"], table["target"]] > 0
        np.testing.assert_array_equal(table["present"], present)
        assert quick(**settings).fit(small, one_run).edge_probabilities_.size == 0

    def test_without_pairs_and_weight_it_changes_nothing(self, small, one_run):
        settings = {"edge_nodes": 0, "edge_pairs": 0, "predictor_weight": 0.0, "backbone": "gcn"}
        with_predictor = quick(edge_predictor=True, **settings).fit(small, one_run)
        without = quick(edge_predictor=False, backbone="gcn").fit(small, one_run)
        np.testing.assert_allclose(with_predictor.proba_, without.proba_, atol=1e-5)


def test_permuting_nodes_permutes_the_result(small, one_run, rng):
    """Without dropout and edge predictor, no random number belongs to a node."""
    order = rng.permutation(small.num_nodes)
    here = quick(dropout=0.0).fit(small, one_run)
    there = quick(dropout=0.0).fit(small.reorder(order), one_run.reorder(order))
    np.testing.assert_allclose(here.proba_[order], there.proba_, atol=2e-3)
    np.testing.assert_array_equal(here.labeled_stage_[order], there.labeled_stage_)


def test_literal_presets_have_the_published_weights_and_do_what_is_printed():
    for name in ("cora", "citeseer", "pubmed", "ogbn-arxiv"):
        literal, paper = (DCGST.from_preset(f"{kind}/{name}") for kind in ("literal", "paper"))
        for weight in ("cmd_weight", "predictor_weight", "ner_weight", "lr", "growth"):
            assert getattr(literal, weight) == getattr(paper, weight)
        assert (literal.ner_reduction, literal.solver) == ("sum", "penalty")
        assert (literal.representation, literal.support) == ("hidden", "range")
        assert literal.dropout == 0.5
        assert (literal.budget, literal.class_balance) == ("total", "none")
        assert (literal.cmd_trains, literal.edge_noise) == ("both", "gumbel")
        assert (literal.accumulate, literal.criterion, literal.hidden) == (False, "shift", 64)


def test_paper_presets_have_the_published_weights():
    published = {
        "paper/cora": (8, 0.3, 0.1, 0.01),
        "paper/citeseer": (18, 0.6, 0.4, 0.01),
        "paper/pubmed": (13, 1.5, 0.7, 0.001),
        "paper/ogbn-arxiv": (26, 0.7, 0.6, 0.001),
    }
    for name, expected in published.items():
        m = DCGST.from_preset(name)
        assert (m.cmd_weight, m.predictor_weight, m.ner_weight, m.lr) == expected
        assert (m.growth, m.weight_decay, m.backbone) == (0.5, 5e-4, "gcn")
        assert (m.edge_predictor, m.ner_reduction) == (True, "relative")


def test_paper_presets_differ_only_in_what_is_published():
    one, two = (DCGST.from_preset(f"paper/{name}").get_params() for name in ("cora", "pubmed"))
    different = {name for name, value in one.items() if two[name] != value}
    assert different == {"cmd_weight", "predictor_weight", "ner_weight", "lr"}


class TestBiasedLabels:
    def test_accuracy_is_higher_than_of_a_gcn(self):
        graph = load("digits")
        split = sample(graph, "ppr-s", per_class=4, runs=1)
        settings = {"epochs": 60, "hidden": 32}
        plain = GCN(**settings).fit(graph, split).score(graph)
        ours = DCGST(max_stages=8, student_epochs=20, edge_predictor=False, **settings)
        assert ours.fit(graph, split).score(graph) > plain + 0.02
        assert Ensemble().fit(graph, split).score(graph) > plain + 0.05

    def test_shift_decreases_more_than_by_confidence(self):
        graph = synthetic(300, 4, features=16, seed=4)
        split = sample(graph, "ppr-s", per_class=4, runs=2)
        settings = {
            "epochs": 60,
            "hidden": 16,
            "max_stages": 3,
            "edge_predictor": False,
            "ner_weight": 0.0,
        }
        by_shift, by_confidence = (
            DCGST(criterion=criterion, **settings).fit_runs(graph, split)
            for criterion in ("shift", "confidence")
        )
        assert all(r.cmd_after < r.cmd_before for r in by_shift)
        after = [np.mean([r.cmd_after for r in results]) for results in (by_shift, by_confidence)]
        assert after[0] < 0.8 * after[1]


def test_an_edge_predictor_needs_a_network_with_edges():
    with pytest.raises(InputError, match="set edge_predictor=false, or backbone=gcn"):
        DCGST(backbone="sign").check()
    DCGST(edge_predictor=False, backbone="sign").check()
