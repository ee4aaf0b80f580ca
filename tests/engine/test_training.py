"""The training loop: replicas independent, best states kept, stopping per replica."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dcgst.engine.training import Schedule, cross_entropy, train


class Points(nn.Module):
    """One number per replica."""

    def __init__(self, start):
        super().__init__()
        self.at = nn.Parameter(torch.tensor(start))


def quadratic(model, target):
    return lambda: (model.at - torch.tensor(target)).square()


def test_each_replica_goes_its_own_way():
    together = Points([0.0, 5.0])
    train(together, quadratic(together, [1.0, -1.0]), Schedule(50, 0.1, 0.0))
    for start, target, value in zip([0.0, 5.0], [1.0, -1.0], together.at.tolist(), strict=True):
        alone = Points([start])
        train(alone, quadratic(alone, [target]), Schedule(50, 0.1, 0.0))
        assert alone.at.tolist() == pytest.approx([value])


def test_the_best_state_of_each_replica_is_kept():
    model = Points([0.0, 0.0])
    path = []

    def validate():
        path.append(model.at.detach().clone())
        return (model.at - torch.tensor([0.3, 0.6])).abs().detach()

    result = train(model, quadratic(model, [1.0, 1.0]), Schedule(40, 0.1, 0.0), validate=validate)
    values = torch.stack(path)
    for replica in range(2):
        best = int(result.best_epoch[replica])
        assert best == int(result.validation[:, replica].argmin())
        assert model.at[replica].tolist() == values[best, replica].tolist()


def test_patience_stops_each_replica_as_if_alone():
    def run(targets):
        model = Points([0.0] * len(targets))

        # Worse from the start for the first, better for long for the second, then worse; in the end
        # far better for the first, which must not count any more.
        def validate():
            at = model.at.detach()
            return torch.where(at > 0.8, -10.0, (at - torch.tensor(targets)).abs())

        schedule = Schedule(200, 0.05, 0.0, patience=4)
        return model, train(
            model, quadratic(model, [1.0] * len(targets)), schedule, validate=validate
        )

    model, result = run([0.0, 0.5])
    alone, first = run([0.0])
    assert len(first.loss) < len(result.loss) < 200
    assert model.at[0].tolist() == alone.at[0].tolist()
    assert int(result.best_epoch[0]) == int(first.best_epoch[0])


def test_where_validation_says_nan_the_last_state_is_kept():
    model = Points([0.0, 0.0])
    target = torch.tensor([0.3, float("nan")])
    result = train(
        model,
        quadratic(model, [1.0, 1.0]),
        Schedule(30, 0.1, 0.0, patience=5),
        validate=lambda: (model.at.detach() - target).abs(),
    )
    assert int(result.best_epoch[0]) < 10
    assert int(result.best_epoch[1]) == len(result.loss) - 1 == 29


def test_without_validation_the_last_state_is_kept():
    model = Points([0.0])
    result = train(model, quadratic(model, [1.0]), Schedule(7, 0.1, 0.0, patience=2))
    assert len(result.loss) == 7
    assert result.validation is None
    assert int(result.best_epoch[0]) == 6


def test_callbacks_hear_every_epoch():
    heard = []
    model = Points([0.0])
    train(model, quadratic(model, [1.0]), Schedule(3), callbacks=[heard.append])
    assert [(e.number, e.total) for e in heard] == [(0, 3), (1, 3), (2, 3)]
    assert heard[0].loss.tolist() == [1.0]


def test_cross_entropy_counts_labeled_nodes_only():
    logits = torch.randn(2, 4, 3)
    labels = torch.tensor([[0, -1, 2, -1], [-1, 1, -1, -1]])
    each = torch.nn.functional.cross_entropy
    expected = [each(logits[0, [0, 2]], labels[0, [0, 2]]), each(logits[1, [1]], labels[1, [1]])]
    torch.testing.assert_close(cross_entropy(logits, labels), torch.stack(expected))
    weights = torch.tensor([[1.0, 5, 0, 5], [1, 1, 1, 1]])
    first = cross_entropy(logits, labels, weights)[0]
    torch.testing.assert_close(first, each(logits[0, [0]], labels[0, [0]]))
    assert float(cross_entropy(logits, torch.full((2, 4), -1)).abs().max()) == 0
