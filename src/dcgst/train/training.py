"""The training loop: all replicas together, each with its own loss, stop and best state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dcgst.train.checkpoint import Checkpoint, Tensors
from dcgst.train.random import Streams

WARM_UP = 3
"""Calls before a step is captured, in which libraries allocate what they need."""


class Repeated:
    """A step that computes the same in every call, but for the values in its tensors.

    Small kernels take less time than their launch. On a GPU, the step is therefore captured as a
    CUDA graph, whose kernels are launched together; elsewhere it is called. Results are the same.

    Args:
        step: reads and changes tensors in place, whose shapes and memory stay the same, and never
            waits for the GPU; returns a tensor.
        device: where it computes.
        streams: random streams that it draws from.
    """

    enabled: ClassVar[bool] = True
    """Whether steps are captured; benchmarks compare both."""

    def __init__(
        self, step: Callable[[], Tensor], device: torch.device, streams: Sequence[Streams] = ()
    ) -> None:
        self.step, self.device, self.streams, self.calls = step, device, streams, 0
        self.captured = self.enabled and device.type == "cuda"
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: Tensor | None = None

    def __call__(self) -> Tensor:
        """Compute the step and return its result, as the step does."""
        self.calls += 1
        if not self.captured:
            return self.step()
        with torch.cuda.device(self.device):
            if self.calls <= WARM_UP:
                return self._call_in_side_stream()
            if self.graph is None and not self._capture():
                return self.step()
            assert self.graph is not None
            assert self.result is not None
            self.graph.replay()
            return self.result.clone()

    def _call_in_side_stream(self) -> Tensor:
        """Call the step in another CUDA stream, as it will be when it is captured."""
        current, beside = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        beside.wait_stream(current)
        with torch.cuda.stream(beside):
            result = self.step().clone()
        current.wait_stream(beside)
        result.record_stream(current)
        return result

    def _capture(self) -> bool:
        """Capture the step without computing it; False if it waits for the GPU."""
        graph = torch.cuda.CUDAGraph()
        for stream in self.streams:
            for generator in stream.generators:
                graph.register_generator_state(generator)
        try:
            with torch.cuda.graph(graph):
                self.result = self.step()
        except RuntimeError:
            self.captured = False
            return False
        self.graph = graph
        return True


@dataclass(frozen=True)
class TrainingOptions:
    """Epochs, learning rate, weight decay and patience of a training.

    Attributes:
        epochs: maximum number of epochs.
        lr: learning rate of Adam.
        weight_decay: L2 penalty on all parameters.
        patience: epochs without a better validation value after which a replica stops; ``None``
            never stops early. Without validation nodes it has no effect.
    """

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    patience: int | None = None


@dataclass(frozen=True)
class RepeatedLoss:
    """A loss that computes the same in every epoch, but for parameters and random numbers.

    Its epochs can be replayed on a GPU; see :class:`Repeated`.

    Attributes:
        compute: returns ``(R,)``.
        streams: that it draws from.
    """

    compute: Callable[[], Tensor]
    streams: Sequence[Streams]

    def __call__(self) -> Tensor:
        return self.compute()


@dataclass(frozen=True)
class Validation:
    """How to measure each replica on its validation nodes.

    Attributes:
        measure: returns ``(R,)`` values, lower is better.
        available: ``(R,)`` bool, replicas that have validation nodes. The others keep their last
            state.
    """

    measure: Callable[[], Tensor]
    available: Tensor


@dataclass(frozen=True)
class EpochEnd:
    """Event passed to callbacks after each epoch; tensors are ``(R,)`` on the training device.

    ``number`` is counted from 0.
    """

    number: int
    total: int
    loss: Tensor
    validation: Tensor | None


@dataclass(frozen=True)
class StageEnd:
    """Event passed to callbacks after each stage of a self-training.

    Attributes:
        number: number of the stage, from 1.
        records: one per active run, as in ``history_``.
    """

    number: int
    records: list[dict[str, float]]


Callback = Callable[[EpochEnd | StageEnd], None]


@dataclass(frozen=True)
class TrainingLog:
    """Values per epoch and replica, and the epoch whose state was kept."""

    loss: Tensor  # (epochs, R)
    validation: Tensor | None  # (epochs, R)
    best_epoch: Tensor  # (R,)


def train(
    name: str,
    model: nn.Module,
    loss: Callable[[], Tensor],
    options: TrainingOptions,
    *,
    validation: Validation | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> TrainingLog:
    """Minimize the per-replica ``loss()`` of shape ``(R,)`` over the model's parameters.

    The first axis of every parameter is the replica. The losses of the replicas are summed, so each
    replica is trained independently. With ``validation``, the model ends in each replica's best
    state; without, in its last.

    Args:
        name: name of the checkpoint step.
        model: its parameters are trained in place.
        loss: called once per epoch.
        options: epochs, learning rate, weight decay and patience.
        validation: chooses the state to keep.
        callbacks: called with an :class:`EpochEnd` after each epoch.
        checkpoint: a training stored there is not repeated.
    """
    params = [p for p in model.parameters() if p.requires_grad]

    def compute() -> Tensors:
        training = _train(params, loss, options, validation, callbacks)
        stored = {"loss": training.loss, "best_epoch": training.best_epoch}
        if training.validation is not None:
            stored["validation"] = training.validation
        return stored | {f"parameter.{i}": p.detach() for i, p in enumerate(params)}

    stored = (checkpoint or Checkpoint()).step(name, compute)
    with torch.no_grad():
        for i, param in enumerate(params):
            param.copy_(stored[f"parameter.{i}"])
    return TrainingLog(stored["loss"], stored.get("validation"), stored["best_epoch"])


def _epoch(
    params: list[nn.Parameter], loss: Callable[[], Tensor], options: TrainingOptions
) -> Callable[[], Tensor]:
    """A function that computes one epoch and returns its loss ``(R,)``."""
    device = params[0].device
    optimizer = torch.optim.Adam(
        params,
        lr=options.lr,
        weight_decay=options.weight_decay,
        fused=True,
        capturable=device.type == "cuda",
    )

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        per_replica = loss()
        per_replica.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return per_replica.detach()

    return Repeated(step, device, loss.streams) if isinstance(loss, RepeatedLoss) else step


def _train(
    params: list[nn.Parameter],
    loss: Callable[[], Tensor],
    options: TrainingOptions,
    validation: Validation | None,
    callbacks: Sequence[Callback],
) -> TrainingLog:
    epoch = _epoch(params, loss, options)
    best = BestState(params)
    losses: list[Tensor] = []
    values: list[Tensor] = []
    for number in range(options.epochs):
        losses.append(epoch())
        if validation is not None:
            with torch.no_grad():
                values.append(validation.measure())
            best.update(number, values[-1], always=~validation.available)
        for callback in callbacks:
            callback(EpochEnd(number, options.epochs, losses[-1], values[-1] if values else None))
        if validation is not None and options.patience is not None:
            best.stop(number - best.number >= options.patience)
            if not bool(best.active.any()):
                break
    stacked = torch.stack(losses).cpu()
    if validation is None:
        last = torch.full((stacked.shape[1],), len(losses) - 1)
        return TrainingLog(stacked, None, last)
    best.restore()
    return TrainingLog(stacked, torch.stack(values).cpu(), best.number.cpu())


class BestState:
    """Each replica's parameters at its lowest value so far.

    Attributes:
        number: ``(R,)`` the epoch or stage in which they were stored.
        active: ``(R,)`` bool, replicas that are not stopped.
    """

    def __init__(self, params: list[nn.Parameter]) -> None:
        self.params = params
        self.stored = [p.detach().clone() for p in params]
        replicas, device = params[0].shape[0], params[0].device
        self.value = torch.full((replicas,), float("inf"), device=device)
        self.number = torch.zeros(replicas, dtype=torch.long, device=device)
        self.active = torch.ones(replicas, dtype=torch.bool, device=device)

    def update(
        self,
        number: int,
        value: Tensor,
        *,
        always: Tensor | None = None,
        only: Tensor | None = None,
    ) -> None:
        """Store the current parameters of every replica whose value is the lowest so far.

        Args:
            number: the current epoch or stage.
            value: ``(R,)``.
            always: ``(R,)`` bool, replicas that store every state, whatever its value.
            only: ``(R,)`` bool, the only replicas that may store a state; default all.
        """
        better = value < self.value
        if always is not None:
            better = better | always
        better = better & self.active
        if only is not None:
            better = better & only
        self.value = torch.where(better, value, self.value)
        self.number = torch.where(better, number, self.number)
        for stored, param in zip(self.stored, self.params, strict=True):
            shape = (-1, *[1] * (param.dim() - 1))
            torch.where(better.view(shape), param.detach(), stored, out=stored)

    def stop(self, which: Tensor) -> None:
        """Stop replicas ``(R,)`` bool: later updates do not change what is stored for them."""
        self.active = self.active & ~which

    def restore(self) -> None:
        """Copy the stored parameters back into the model."""
        with torch.no_grad():
            for param, stored in zip(self.params, self.stored, strict=True):
                param.copy_(stored)


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean cross entropy of each replica: ``(R, m, C)`` and ``(R, m)`` to ``(R,)``.

    Nodes with label -1 are ignored. With ``weights`` ``(R, m)`` the mean is weighted. The loss of a
    replica without labels is zero.

    Example:
        >>> logits = torch.zeros(1, 2, 4)
        >>> cross_entropy(logits, torch.tensor([[3, -1]]))  # log(4)
        tensor([1.3863])
    """
    counted = (labels >= 0).to(logits.dtype)
    if weights is not None:
        counted = counted * weights
    each = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
    ).view_as(counted)
    return (each * counted).sum(1) / counted.sum(1).clamp_min(torch.finfo(each.dtype).tiny)
