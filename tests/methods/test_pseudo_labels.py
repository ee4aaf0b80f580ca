"""PseudoLabels: which labels to train on, and since which stage."""

from __future__ import annotations

import pytest
import torch

from dcgst.methods.result import NOT_LABELED, TRAINING_LABEL
from dcgst.methods.self_training import PseudoLabels
from tests.methods.helpers import selection_of

LABELS = torch.tensor([[1, -1, -1, -1]])
ACTIVE = torch.tensor([True])


def test_starts_with_the_given_labels():
    state = PseudoLabels(LABELS)
    assert state.labels.tolist() == [[1, -1, -1, -1]]
    assert state.labeled_stage.tolist() == [[TRAINING_LABEL, NOT_LABELED, NOT_LABELED, NOT_LABELED]]


def test_pseudo_labels_are_replaced_in_every_stage():
    state = PseudoLabels(LABELS)
    state.apply(1, selection_of([[0, 2, 2, 2]], [[0, 1, 1, 0]]), ACTIVE)
    assert state.labels.tolist() == [[1, 2, 2, -1]]
    state.apply(2, selection_of([[0, 0, 0, 0]], [[0, 0, 1, 1]]), ACTIVE)
    assert state.labels.tolist() == [[1, -1, 0, 0]]
    # Node 2 stays labeled since stage 1, with another label; node 1 is no longer labeled.
    assert state.labeled_stage.tolist() == [[TRAINING_LABEL, NOT_LABELED, 1, 2]]


def test_accumulated_pseudo_labels_never_change():
    state = PseudoLabels(LABELS, accumulate=True)
    state.apply(1, selection_of([[0, 2, 2, 2]], [[0, 1, 0, 0]]), ACTIVE)
    state.apply(2, selection_of([[0, 0, 0, 0]], [[0, 1, 1, 0]]), ACTIVE)
    assert state.labels.tolist() == [[1, 2, 0, -1]]
    assert state.labeled_stage.tolist() == [[TRAINING_LABEL, 1, 2, NOT_LABELED]]


def test_node_that_is_selected_again_later_counts_from_then_on():
    state = PseudoLabels(LABELS)
    for stage, selected in enumerate([[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0]], start=1):
        state.apply(stage, selection_of([[0, 2, 2, 2]], [selected]), ACTIVE)
    assert state.labeled_stage.tolist() == [[TRAINING_LABEL, 3, 2, NOT_LABELED]]


@pytest.mark.parametrize("accumulate", [False, True])
def test_given_labels_never_change(accumulate):
    state = PseudoLabels(LABELS, accumulate)
    state.apply(1, selection_of([[2, 2, 2, 2]], [[1, 1, 0, 0]]), ACTIVE)
    assert state.labels.tolist() == [[1, 2, -1, -1]]
    assert state.labeled_stage.tolist() == [[TRAINING_LABEL, 1, NOT_LABELED, NOT_LABELED]]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_training_labels_of_every_class_are_kept(label):
    state = PseudoLabels(torch.tensor([[label, -1]]))
    state.apply(1, selection_of([[(label + 1) % 3, 0]], [[1, 1]]), torch.tensor([True]))
    assert state.labels.tolist() == [[label, 0]]


def test_stopped_runs_do_not_change():
    state = PseudoLabels(LABELS.repeat(2, 1))
    everywhere = selection_of([[2, 2, 2, 2]] * 2, [[0, 1, 1, 1]] * 2)
    state.apply(1, everywhere, torch.tensor([False, True]))
    assert state.labels.tolist() == [[1, -1, -1, -1], [1, 2, 2, 2]]
    assert state.labeled_stage.tolist() == [
        [TRAINING_LABEL, NOT_LABELED, NOT_LABELED, NOT_LABELED],
        [TRAINING_LABEL, 1, 1, 1],
    ]


def test_restore_changes_one_run_to_an_earlier_stage():
    state = PseudoLabels(LABELS.repeat(2, 1))
    both = torch.tensor([True, True])
    state.apply(1, selection_of([[0, 2, 2, 2]] * 2, [[0, 1, 0, 0]] * 2), both)
    state.apply(2, selection_of([[0, 0, 0, 0]] * 2, [[0, 0, 1, 1]] * 2), both)
    state.restore(fit=0, stage=1)
    assert state.labels.tolist() == [[1, 2, -1, -1], [1, -1, 0, 0]]
    assert state.labeled_stage.tolist() == [
        [TRAINING_LABEL, 1, NOT_LABELED, NOT_LABELED],
        [TRAINING_LABEL, NOT_LABELED, 2, 2],
    ]
    state.restore(fit=1, stage=0)
    assert state.labels.tolist() == [[1, 2, -1, -1], [1, -1, -1, -1]]
    assert LABELS.tolist() == [[1, -1, -1, -1]], "the given labels were changed in place"
