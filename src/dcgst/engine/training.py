"""The one training loop: all replicas at once, each with its own loss, stop and best state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dcgst.engine.memory import Memory


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        epochs: the most epochs.
        lr: Adam's learning rate.
        weight_decay: L2 penalty on all parameters.
        patience: epochs without a better validation value after which a replica stops; ``None``
            never stops early. Without validation it has no effect.
        keep: which epoch to keep, by validation ``loss``, by ``accuracy``, or the ``last``; for
            whoever makes the validation.
    """

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    patience: int | None = None
    keep: str = "loss"


@dataclass(frozen=True)
class Epoch:
    """What a callback hears after each epoch; tensors are ``(R,)``, on the training device."""

    number: int
    total: int
    loss: Tensor
    validation: Tensor | None


@dataclass(frozen=True)
class StageEnd:
    """What a callback hears after each stage of a self-training.

    Attributes:
        number: the stage's.
        records: one per run that took part, as in ``history_``: labels so far, the shift, …
    """

    number: int
    records: list[dict[str, float]]


Callback = Callable[[Epoch | StageEnd], None]


@dataclass(frozen=True)
class Training:
    """What happened: values per epoch and replica, and the epoch whose state was kept."""

    loss: Tensor  # (epochs, R)
    validation: Tensor | None  # (epochs, R)
    best_epoch: Tensor  # (R,)


def train(
    model: nn.Module,
    loss: Callable[[], Tensor],
    schedule: Schedule,
    *,
    validate: Callable[[], Tensor] | None = None,
    callbacks: Sequence[Callback] = (),
    memory: Memory | None = None,
) -> Training:
    """Minimise the per-replica ``loss()`` of shape ``(R,)`` over the model's parameters.

    Every parameter carries the replica axis first, and the replicas' losses are summed, so each
    replica is trained as if alone. With ``validate``, also ``(R,)`` and lower is better, the model
    is left in each replica's best state; without, and where the value is nan, in the last. A
    training that ``memory`` has kept is not repeated.
    """
    params = [p for p in model.parameters() if p.requires_grad]

    def compute() -> dict[str, Tensor]:
        training = _train(params, loss, schedule, validate, callbacks)
        kept = {"loss": training.loss, "best_epoch": training.best_epoch}
        if training.validation is not None:
            kept["validation"] = training.validation
        return kept | {f"parameter.{i}": p.detach() for i, p in enumerate(params)}

    kept = (memory or Memory()).step(compute)
    with torch.no_grad():
        for i, param in enumerate(params):
            param.copy_(kept[f"parameter.{i}"])
    return Training(kept["loss"], kept.get("validation"), kept["best_epoch"])


def _train(
    params: list[nn.Parameter],
    loss: Callable[[], Tensor],
    schedule: Schedule,
    validate: Callable[[], Tensor] | None,
    callbacks: Sequence[Callback],
) -> Training:
    optimiser = torch.optim.Adam(
        params, lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True
    )
    best = BestState(params) if validate is not None else None
    losses: list[Tensor] = []
    values: list[Tensor] = []
    for number in range(schedule.epochs):
        optimiser.zero_grad(set_to_none=True)
        per_replica = loss()
        per_replica.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(per_replica.detach())
        if best is not None and validate is not None:
            with torch.no_grad():
                values.append(validate())
            best.update(number, values[-1], schedule.patience)
        for callback in callbacks:
            callback(Epoch(number, schedule.epochs, losses[-1], values[-1] if values else None))
        if best is not None and schedule.patience is not None and not bool(best.active.any()):
            break
    if best is not None:
        best.restore()
        best_epoch = best.epoch
    else:
        best_epoch = (
            torch.full((losses[-1].numel(),), len(losses) - 1) if losses else torch.zeros(0)
        )
    stacked = torch.stack(losses).cpu() if losses else torch.zeros(0, 0)
    return Training(stacked, torch.stack(values).cpu() if values else None, best_epoch.cpu())


class BestState:
    """Each replica's parameters at its lowest validation value; at the last where it is nan."""

    def __init__(self, params: list[nn.Parameter]) -> None:
        self.params = params
        self.kept = [p.detach().clone() for p in params]
        replicas, device = params[0].shape[0], params[0].device
        self.value = torch.full((replicas,), float("inf"), device=device)
        self.epoch = torch.zeros(replicas, dtype=torch.long, device=device)
        self.active = torch.ones(replicas, dtype=torch.bool, device=device)

    def update(self, number: int, value: Tensor, patience: int | None = None) -> None:
        # A replica that has stopped no longer counts, though it is computed along with the others.
        better = self.active & ((value < self.value) | value.isnan())
        self.value = torch.where(better, value, self.value)
        self.epoch = torch.where(better, number, self.epoch)
        for kept, param in zip(self.kept, self.params, strict=True):
            shape = (-1, *[1] * (param.dim() - 1))
            torch.where(better.view(shape), param.detach(), kept, out=kept)
        if patience is not None:
            self.active &= number - self.epoch < patience

    def restore(self) -> None:
        with torch.no_grad():
            for param, kept in zip(self.params, self.kept, strict=True):
                param.copy_(kept)


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean cross entropy of each replica: ``(R, m, C)`` and ``(R, m)`` to ``(R,)``.

    Nodes labeled -1 do not count. With ``weights`` ``(R, m)`` the mean is weighted. A replica with
    nothing to count has loss zero.
    """
    counted = (labels >= 0).to(logits.dtype)
    if weights is not None:
        counted = counted * weights
    each = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
    ).view_as(counted)
    return (each * counted).sum(1) / counted.sum(1).clamp_min(torch.finfo(each.dtype).tiny)
