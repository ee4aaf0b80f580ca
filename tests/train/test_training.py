"""The training loop: independent replicas, best states, early stopping of each replica."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dcgst.train.checkpoint import Checkpoint
from dcgst.train.training import BestState, TrainingOptions, Validation, cross_entropy, train


class Points(nn.Module):
    """One number per replica."""

    def __init__(self, start):
        super().__init__()
        self.at = nn.Parameter(torch.tensor(start))


def squared_distance(model, target):
    return lambda: (model.at - torch.tensor(target)).square()


def everywhere(measure, replicas):
    return Validation(measure, torch.ones(replicas, dtype=torch.bool))


def test_each_replica_is_trained_independently():
    together = Points([0.0, 5.0])
    train("t", together, squared_distance(together, [1.0, -1.0]), TrainingOptions(50, 0.1, 0.0))
    for start, target, value in zip([0.0, 5.0], [1.0, -1.0], together.at.tolist(), strict=True):
        alone = Points([start])
        train("t", alone, squared_distance(alone, [target]), TrainingOptions(50, 0.1, 0.0))
        assert alone.at.tolist() == pytest.approx([value])


def test_weight_decay_pulls_toward_zero():
    free, decayed = Points([0.0]), Points([0.0])
    train("t", free, squared_distance(free, [1.0]), TrainingOptions(300, 0.1, 0.0))
    train("t", decayed, squared_distance(decayed, [1.0]), TrainingOptions(300, 0.1, 2.0))
    assert free.at.tolist() == pytest.approx([1.0], abs=1e-3)
    # The gradient 2(x - 1) + 2x is zero at 1/2.
    assert decayed.at.tolist() == pytest.approx([0.5], abs=1e-3)


def test_the_model_ends_in_the_best_state_of_each_replica():
    model = Points([0.0, 0.0])
    path = []

    def measure():
        path.append(model.at.detach().clone())
        return (model.at - torch.tensor([0.3, 0.6])).abs()

    result = train(
        "t",
        model,
        squared_distance(model, [1.0, 1.0]),
        TrainingOptions(40, 0.1, 0.0),
        validation=everywhere(measure, 2),
    )
    states = torch.stack(path)
    for replica in range(2):
        best = int(result.best_epoch[replica])
        assert best == int(result.validation[:, replica].argmin())
        assert model.at[replica].tolist() == states[best, replica].tolist()


def test_patience_stops_each_replica_as_if_it_were_alone():
    def run(targets):
        model = Points([0.0] * len(targets))

        # The first replica gets worse from the start, the second gets better for a while. Beyond
        # 0.8 both get far better, which must not count for the first: it has stopped.
        def measure():
            at = model.at.detach()
            return torch.where(at > 0.8, -10.0, (at - torch.tensor(targets)).abs())

        result = train(
            "t",
            model,
            squared_distance(model, [1.0] * len(targets)),
            TrainingOptions(200, 0.05, 0.0, patience=4),
            validation=everywhere(measure, len(targets)),
        )
        return model, result

    model, result = run([0.0, 0.5])
    alone, first = run([0.0])
    assert len(first.loss) == int(first.best_epoch[0]) + 4 + 1
    assert len(first.loss) < len(result.loss) < 200
    assert model.at[0].tolist() == alone.at[0].tolist()
    assert int(result.best_epoch[0]) == int(first.best_epoch[0])


def test_replicas_without_validation_nodes_keep_their_last_state():
    model = Points([0.0, 0.0])
    result = train(
        "t",
        model,
        squared_distance(model, [1.0, 1.0]),
        TrainingOptions(30, 0.1, 0.0, patience=5),
        validation=Validation(
            lambda: (model.at.detach() - torch.tensor([0.3, 0.3])).abs(),
            available=torch.tensor([True, False]),
        ),
    )
    assert int(result.best_epoch[0]) < 10
    assert int(result.best_epoch[1]) == len(result.loss) - 1 == 29
    assert model.at[1].item() > 0.8


def test_without_validation_the_last_state_is_kept_and_patience_has_no_effect():
    model = Points([0.0])
    result = train(
        "t", model, squared_distance(model, [1.0]), TrainingOptions(7, 0.1, 0.0, patience=2)
    )
    assert len(result.loss) == 7
    assert result.validation is None
    assert int(result.best_epoch[0]) == 6


def test_callbacks_receive_every_epoch():
    events = []
    model = Points([0.0])
    train("t", model, squared_distance(model, [1.0]), TrainingOptions(3), callbacks=[events.append])
    assert [(e.number, e.total) for e in events] == [(0, 3), (1, 3), (2, 3)]
    assert events[0].loss.tolist() == [1.0]
    assert events[0].validation is None


def test_a_stored_training_is_not_repeated(tmp_path):
    def run(loss_of):
        model = Points([0.0, 0.0])
        validation = everywhere(lambda: model.at.detach().abs(), 2)
        checkpoint = Checkpoint(tmp_path)
        options = {"validation": validation, "checkpoint": checkpoint}
        return model, train("t", model, loss_of(model), TrainingOptions(5, 0.1), **options)

    first, result = run(lambda model: squared_distance(model, [1.0, -1.0]))
    second, again = run(lambda model: lambda: pytest.fail("trained again"))
    assert torch.equal(first.at, second.at)
    for part in ("loss", "validation", "best_epoch"):
        assert torch.equal(getattr(result, part), getattr(again, part))


class TestBestState:
    def after(self, *updates):
        """The state after updates ``(number, parameters, value, options)``."""
        param = nn.Parameter(torch.zeros(2, 3))
        best = BestState([param])
        for number, parameters, value, options in updates:
            with torch.no_grad():
                param.copy_(torch.tensor(parameters)[:, None].expand(2, 3))
            masks = {name: torch.tensor(mask) for name, mask in options.items()}
            best.update(number, torch.tensor(value), **masks)
        best.restore()
        return param[:, 0].tolist(), best.number.tolist()

    def test_lowest_value_wins_and_ties_keep_the_earlier_state(self):
        states = self.after((0, [1.0, 1.0], [3.0, 3.0], {}), (1, [2.0, 2.0], [3.0, 2.0], {}))
        assert states == ([1.0, 2.0], [0, 1])

    def test_replicas_that_are_excluded_store_nothing(self):
        first = (0, [1.0, 1.0], [3.0, 3.0], {})
        second = (1, [2.0, 2.0], [0.0, 0.0], {"only": [True, False]})
        assert self.after(first, second) == ([2.0, 1.0], [1, 0])

    def test_always_stores_every_state_but_not_if_excluded(self):
        first = (0, [1.0, 1.0], [3.0, 3.0], {})
        both = {"always": [True, True], "only": [True, False]}
        assert self.after(first, (1, [2.0, 2.0], [9.0, 9.0], both)) == ([2.0, 1.0], [1, 0])

    def test_stopped_replicas_keep_what_is_stored(self):
        param = nn.Parameter(torch.zeros(2, 1))
        best = BestState([param])
        best.stop(torch.tensor([True, False]))
        best.update(4, torch.tensor([-1.0, -1.0]), always=torch.tensor([True, True]))
        assert best.number.tolist() == [0, 4]
        assert best.active.tolist() == [False, True]


def test_cross_entropy_is_the_weighted_mean_over_labeled_nodes():
    logits = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[0, -1, 2, -1], [-1, 1, -1, -1]])
    each = torch.nn.functional.cross_entropy
    expected = [each(logits[0, [0, 2]], labels[0, [0, 2]]), each(logits[1, [1]], labels[1, [1]])]
    torch.testing.assert_close(cross_entropy(logits, labels), torch.stack(expected))
    weights = torch.tensor([[1.0, 5, 3, 5], [1, 1, 1, 1]])
    single = [each(logits[0, [node]], labels[0, [node]]) for node in (0, 2)]
    first = cross_entropy(logits, labels, weights)[0]
    torch.testing.assert_close(first, (single[0] + 3 * single[1]) / 4)


def test_cross_entropy_without_labels_is_zero():
    assert cross_entropy(torch.randn(2, 4, 3), torch.full((2, 4), -1)).tolist() == [0, 0]
