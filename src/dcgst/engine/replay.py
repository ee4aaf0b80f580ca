"""Steps that are repeated many times: on a GPU, they are captured once and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.engine.random import Streams

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
