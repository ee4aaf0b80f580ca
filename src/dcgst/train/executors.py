"""Where tasks run in parallel: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

import torch

from dcgst.errors import InputError, option
from dcgst.memory import limit_memory, memory_limit

Value = TypeVar("Value")

RETRIES = 3
"""Times that Ray repeats a task whose process or machine was lost."""

TASKS_PER_GPU = 8

SMALLEST_LIMIT = 2**30
"""Bytes that each task may use, however small the memory limit of the command is."""

CONNECT_SECONDS = 10
"""How long the head node of a cluster may take to answer."""


def open_executor(workers: int, ray: str | None = None, *, gpu: bool = False) -> Executor:
    """An executor whose tasks use one thread each.

    Args:
        workers: number of processes of this machine; with a Ray cluster, its size counts instead.
        ray: ``auto`` (the cluster that this machine belongs to), ``local`` (a new one on this
            machine) or the address of a cluster; None for processes of this machine.
        gpu: whether each task needs a part of a GPU of the cluster.
    """
    if ray is None:
        return ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=init_worker
        )
    return RayExecutor(ray, workers, gpu=gpu)


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextlib.contextmanager
def in_parallel(executor: Executor) -> Iterator[None]:
    """Run computations of the block that can be divided in the processes of an executor."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def current_executor() -> Executor | None:
    """The executor of :func:`in_parallel`; None: compute everything in this process."""
    return _executor.get()


def current_cluster() -> RayExecutor | None:
    """The executor, if it is a Ray cluster: its tasks can be any function, also a nested one."""
    executor = _executor.get()
    return executor if isinstance(executor, RayExecutor) else None


def tasks_at_once() -> int:
    """Tasks of the current executor that share the memory of one machine."""
    executor = current_executor()
    if isinstance(executor, RayExecutor):
        return executor.per_machine
    return 1 if executor is None else getattr(executor, "_max_workers", 1)


def init_worker() -> None:
    """Use one thread per process, and leave the handling of Ctrl-C to the parent process."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True)
class Shared(Generic[Value]):
    """A value in the object store of a cluster, which copies it once to each machine."""

    reference: Any

    def get(self) -> Value:
        """The value, in a task."""
        import ray

        found: Value = ray.get(self.reference)
        return found


class RayExecutor(Executor):
    """Runs tasks on a Ray cluster, one CPU each.

    Ray schedules and transports everything, and repeats tasks whose worker died.

    Args:
        address: as ``ray`` of :func:`open_executor`.
        workers: CPUs of a new local cluster.
        gpu: whether each task needs a part of a GPU.

    Raises:
        InputError: if Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, address: str, workers: int, *, gpu: bool = False) -> None:
        try:
            import ray
        except ImportError as error:
            raise InputError(f"{option('ray')} requires Ray: pip install 'dcgst[ray]'") from error
        self._ray, self._refs = ray, set[Any]()
        self._started = not ray.is_initialized()
        if self._started:
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
            try:
                if address == "local":
                    ray.init("local", num_cpus=workers, include_dashboard=False, **quiet)
                else:
                    _check_reachable(address)
                    ray.init(address, **quiet)
            except (OSError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"there is no Ray cluster at {address!r}; start one with `ray start --head`, "
                    f"or use {option('ray', 'local')}"
                ) from error
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        cpus = [node["Resources"].get("CPU", 1) for node in nodes if node["Alive"]]
        self.cpus, self.per_machine = max(1, int(sum(cpus))), max(1, int(max(cpus, default=1)))
        gpus = 1 / TASKS_PER_GPU if gpu else 0
        self._run = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_run)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function on the cluster."""
        limit = memory_limit()
        own = None if limit is None else max(limit // self.per_machine, SMALLEST_LIMIT)
        ref = self._run.remote(function, args, kwargs, own)
        future: Future[Any] = ref.future()
        self._refs.add(ref)
        future.add_done_callback(lambda _: self._refs.discard(ref))
        return future

    def share(self, value: Value) -> Shared[Value]:
        """Store a value that several tasks need."""
        return Shared(self._ray.put(value))

    def map_in_order(
        self, function: Callable[..., Value], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterator[Value]:
        """Results of many calls; only a few are computed before they are asked for."""
        ahead = 2 * self.cpus
        waiting = deque(self.submit(function, *own) for own in arguments[:ahead])
        for number in range(len(arguments)):
            found: Value = waiting.popleft().result()
            if number + ahead < len(arguments):
                waiting.append(self.submit(function, *arguments[number + ahead]))
            yield found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; a local one ends."""
        if cancel_futures:
            for ref in list(self._refs):
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.cancel(ref, force=True)
        elif wait and self._refs:
            self._ray.wait(list(self._refs), num_returns=len(self._refs))
        if self._started:
            self._ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise OSError if nothing listens at an address; Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
            pass


def _run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    limit: int | None = None,
) -> Any:
    """Call a function with one thread, and with a part of the memory limit of the command."""
    torch.set_num_threads(1)
    if limit is not None and memory_limit() is None:
        limit_memory(limit)
    return function(*args, **kwargs)
