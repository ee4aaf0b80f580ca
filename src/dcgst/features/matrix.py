"""Matrices in memory or in files, in blocks of columns and rows; products with the neighbors."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import WriteError
from dcgst.files import TEMPORARY, write_text
from dcgst.graph.references import ByReference
from dcgst.memory import available_memory, forget
from dcgst.train.device import free_memory
from dcgst.train.executors import current_executor, tasks_at_once
from dcgst.train.progress import Task, counted

ENTRIES = 1 << 22
"""Entries of the adjacency matrix that are read at a time."""

SHARE_FOR_EDGES = 0.4
"""Largest share of the memory of a GPU that edges may keep."""

Finish = Callable[[slice, Tensor], object]
"""A function that changes the sums ``(m, k)`` of a range of nodes in place."""


@dataclass(frozen=True)
class EdgeTensors:
    """Edges of a range of nodes: neighbors, the first entry of each node, weights if they differ.

    ``offsets`` has one more entry, the number of edges.
    """

    indices: Tensor
    offsets: Tensor
    weights: Tensor | None


class Neighbors(ByReference):
    """The edges of a large graph.

    Sums are computed by a kernel that, on a CPU, prefetches rows. The symmetrically normalized
    adjacency with self-loops is never formed: its two diagonal factors are applied to the sums.

    Args:
        adjacency: ``(n, n)`` symmetric, without self-loops; its arrays may be memory-mapped.
        weighted: whether any weight differs from one; default: found by reading all weights.
        device: where sums are computed. On a GPU, the edges stay there if memory suffices.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        weighted: bool | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.adjacency, self.device = adjacency, torch.device(device)
        self.weighted = bool((adjacency.data != 1).any()) if weighted is None else weighted
        n, indptr = adjacency.shape[0], adjacency.indptr
        steps = np.arange(ENTRIES, int(indptr[-1]) + ENTRIES, ENTRIES)
        ends = np.unique(np.concatenate([np.searchsorted(indptr, steps, "right") - 1, [n]]))
        starts = np.concatenate([[0], ends])
        self.ranges = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts) if a < b]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed from the edges."""
        state = super().__getstate__()
        return {name: state[name] for name in ("adjacency", "weighted", "device", "ranges")}

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    def sums(self, z: Tensor, out: Tensor, finish: Finish) -> Tensor:
        """Sum the rows of ``z`` ``(n, k)`` over the neighbors of each node into ``out``."""
        for nodes, edges in self._edges_by_range():
            out[nodes] = F.embedding_bag(
                edges.indices,
                z,
                edges.offsets,
                mode="sum",
                per_sample_weights=edges.weights,
                include_last_offset=True,
            )
            finish(nodes, out[nodes])
        forget(self.adjacency.indices, self.adjacency.data)
        return out

    def _edges_by_range(self) -> Iterable[tuple[slice, EdgeTensors]]:
        stored = self._stored_edges
        return stored if stored else ((nodes, self._read_edges(nodes)) for nodes in self.ranges)

    @cached_property
    def _stored_edges(self) -> list[tuple[slice, EdgeTensors]]:
        """The edges of a small graph, and those on a GPU with enough memory.

        It is empty if they are read again in every step.
        """
        if len(self.ranges) == 1:
            return [(nodes, self._read_edges(nodes)) for nodes in self.ranges]
        needed = self.adjacency.indices.nbytes + self.weighted * self.adjacency.data.nbytes
        if self.device.type == "cpu" or needed > SHARE_FOR_EDGES * free_memory(self.device):
            return []
        return [(nodes, self._read_edges(nodes)) for nodes in self.ranges]

    def _read_edges(self, nodes: slice) -> EdgeTensors:
        matrix = self.adjacency
        pointers = matrix.indptr[nodes.start : nodes.stop + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        indices = torch.from_numpy(np.array(matrix.indices[entries]))
        offsets = torch.from_numpy(np.asarray(pointers - pointers[0])).to(indices.dtype)
        weights = torch.from_numpy(np.array(matrix.data[entries])) if self.weighted else None
        return EdgeTensors(
            indices.to(self.device),
            offsets.to(self.device),
            None if weights is None else weights.to(self.device),
        )

    @cached_property
    def degrees(self) -> Tensor:
        """``(n, 1)`` sum of the weights of each node's edges."""
        if not self.weighted:
            counts = torch.from_numpy(np.diff(self.adjacency.indptr).astype(np.float32))
            return counts[:, None].to(self.device)
        ones = torch.ones(self.num_nodes, 1, device=self.device)
        return self.sums(ones, torch.empty_like(ones), lambda _nodes, _sums: None)

    @cached_property
    def scale(self) -> Tensor:
        """``(n, 1)`` :math:`(d + 1)^{-1/2}`."""
        return (self.degrees + 1).rsqrt()

    def means(self, z: Tensor, out: Tensor) -> Tensor:
        """Means over the neighbors; zero for a node without neighbors."""
        degrees = self.degrees.clamp_min(1e-12)
        return self.sums(z, out, lambda nodes, sums: sums.div_(degrees[nodes]))

    def smooth(
        self,
        x: Tensor,
        teleport: float,
        hops: Collection[int],
        on_step: Callable[[], object] = lambda: None,
    ) -> Iterator[Tensor]:
        r"""Personalized PageRank smoothing, :math:`Z_{k+1} = (1-a)\,\hat A Z_k + a\,X`.

        It is computed for :math:`U = S Z` with the scale S, so that two further copies are enough.

        Args:
            x: ``(n, k)``; it is changed.
            teleport: a.
            hops: numbers of steps after which the result is needed.
            on_step: called after each step.

        Yields:
            ``(n, k)`` for each of them, in ascending order; valid until the next is asked for.
        """
        scale = self.scale
        factor = (1 - teleport) * scale.square()
        x *= scale
        u, other = x.clone(), torch.empty_like(x)
        x *= teleport

        def finish(nodes: slice, sums: Tensor) -> None:
            sums.add_(u[nodes]).mul_(factor[nodes]).add_(x[nodes])

        for step in range(1, max(hops) + 1):
            self.sums(u, other, finish)
            u, other = other, u
            on_step()
            if step in hops:
                yield torch.div(u, scale, out=other)


ROWS = 1 << 16
"""Rows that are computed at a time."""


def row_ranges(count: int) -> Iterator[slice]:
    """All rows, :data:`ROWS` at a time."""
    for start in range(0, count, ROWS):
        yield slice(start, min(count, start + ROWS))


def mean_rows(matrix: NDArray[np.float32], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``(d,)`` mean of some rows of ``(n, d)``, computed in blocks."""
    total = np.zeros(matrix.shape[1])
    for part in row_ranges(len(matrix)):
        total += matrix[part][rows[part]].sum(axis=0, dtype=np.float64)
    forget(matrix)
    mean: NDArray[np.float64] = total / rows.sum()
    return mean


def new_file(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An array of float32 in a new file, whose space on the disk is reserved.

    Raises:
        WriteError: if the disk is full; writing to the array later would end the process.
    """
    try:
        with open(path, "wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(1, int(np.prod(shape)) * 4))
    except OSError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror or error}") from error
    return np.memmap(path, np.float32, "r+" if path.stat().st_size else "w+", shape=shape)


def empty_like(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """An array of the same shape, in a file that has no name any more if ``array`` is in a file."""
    if not isinstance(array, np.memmap):
        return np.empty_like(array)
    folder = Path(array.filename).parent if array.filename else Path(tempfile.gettempdir())
    return empty(array.shape, folder)


def empty(shape: tuple[int, ...], folder: Path | None) -> NDArray[np.float32]:
    """A new array, in memory or, with a folder, in a file that has no name any more.

    If the folder does not exist any more, the file is in the folder for temporary files.
    """
    if folder is None:
        return np.empty(shape, dtype=np.float32)
    handle, name = tempfile.mkstemp(dir=folder if folder.exists() else None)
    os.close(handle)
    found = new_file(Path(name), shape)
    with contextlib.suppress(OSError):  # on Windows, it stays until the folder is removed
        Path(name).unlink()
    return found


Step = Callable[[], object]
"""A function that is called after each step of an operation."""


class Operation(Protocol):
    """Computes new blocks of columns ``(n, k)`` from one block, which it may change.

    A result may be changed once the next is asked for.
    """

    @property
    def steps(self) -> int:
        """Number of steps."""

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        """Yield the new blocks."""


@dataclass(frozen=True)
class Smoothing:
    """Personalized PageRank smoothing.

    Attributes:
        teleport: probability to return to the start.
        hops: numbers of steps after which the result is needed, in ascending order.
        sums: ``(n, 1)`` for each result, which it is divided by; None for no division.
    """

    teleport: float
    hops: tuple[int, ...]
    sums: tuple[Tensor, ...] | None = None

    @property
    def steps(self) -> int:
        return max(self.hops)

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        smoothed = neighbors.smooth(block, self.teleport, self.hops, on_step)
        for number, z in enumerate(smoothed):
            yield z if self.sums is None else z.div_(self.sums[number])


@dataclass(frozen=True)
class Means:
    """Means over the neighbors, repeated.

    Attributes:
        steps: how often; each result is yielded.
    """

    steps: int

    def __call__(self, neighbors: Neighbors, block: Tensor, on_step: Step) -> Iterator[Tensor]:
        other = torch.empty_like(block)
        for _ in range(self.steps):
            block, other = neighbors.means(block, other), block
            on_step()
            yield block


def compute_files(
    operation: Operation,
    neighbors: Neighbors,
    source: Path,
    width: int,
    targets: Sequence[Path],
    on_step: Step = lambda: None,
) -> None:
    """Apply an operation to a block of columns in a file; the results are written atomically.

    Args:
        operation: the operation.
        neighbors: the edges.
        source: file of the block.
        width: number of columns of the block.
        targets: files of the results.
        on_step: called after each step.
    """
    block = torch.from_numpy(np.fromfile(source, dtype=np.float32).reshape(-1, width))
    results = operation(neighbors, block.to(neighbors.device), on_step)
    for target, result in zip(targets, results, strict=True):
        partial = target.with_suffix(TEMPORARY)
        result.numpy(force=True).tofile(partial)
        partial.replace(target)


Nodes = slice | Tensor
"""A range of nodes, or their positions."""

COLUMNS = "columns.txt"
"""File with the number of columns that are computed at a time."""

NUMBER = 4
"""Bytes of a number."""

COPIES = 3
"""Copies of a block of columns that propagation needs."""

SHARE = 0.65
"""Share of the available memory for matrices; the rest is for what is computed from them."""

MOST_AT_ONCE = 64
AT_ONCE_IN_MEMORY = 16
"""Columns that are computed at a time: few, so that they fit into the cache of the CPU."""


class Matrix:
    """An ``(n, d)`` matrix of float32.

    Args:
        shape: n and d.
        blocks: of columns: tensors ``(n, k)``, or files with their numbers, row by row.
        widths: number of columns of each block.
    """

    def __init__(
        self, shape: tuple[int, int], blocks: Sequence[Tensor | Path], widths: Sequence[int]
    ) -> None:
        self.shape, self.blocks, self.widths = shape, list(blocks), list(widths)

    def columns(self) -> Iterator[Tensor]:
        """Blocks of columns ``(n, k)`` one after the other; they may be changed."""
        for block, width in zip(self.blocks, self.widths, strict=True):
            if isinstance(block, Tensor):
                yield block.clone()
            else:
                whole = np.fromfile(block, dtype=np.float32)
                yield torch.from_numpy(whole.reshape(self.shape[0], width))

    def rows(self, nodes: Nodes) -> Tensor:
        """``(m, d)`` some rows."""
        parts = [
            block[nodes] if isinstance(block, Tensor) else self._read(block, width, nodes)
            for block, width in zip(self.blocks, self.widths, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _read(self, path: Path, width: int, nodes: Nodes) -> Tensor:
        if isinstance(nodes, Tensor):
            mapped = np.memmap(path, dtype=np.float32, mode="r", shape=(self.shape[0], width))
            return torch.from_numpy(mapped[nodes.numpy()])
        start, stop, _ = nodes.indices(self.shape[0])
        found = np.fromfile(
            path, np.float32, count=(stop - start) * width, offset=start * width * NUMBER
        )
        return torch.from_numpy(found.reshape(stop - start, width))

    def delete(self) -> None:
        """Remove the files."""
        for block in self.blocks:
            if not isinstance(block, Tensor):
                block.unlink(missing_ok=True)


class Workspace:
    """Where the matrices of a graph are kept and how many columns are computed at a time.

    Files that are complete are not computed again: their names must stand for their content.

    Args:
        folder: for files; None keeps all matrices in memory.
        columns: number of columns that are computed at a time.
        device: where matrices in memory are kept.
    """

    def __init__(
        self,
        folder: Path | None = None,
        columns: int = AT_ONCE_IN_MEMORY,
        device: torch.device | str = "cpu",
    ) -> None:
        self.folder, self.columns, self.device = folder, columns, torch.device(device)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def from_rows(
        self,
        name: str,
        shape: tuple[int, int],
        compute: Callable[[slice], Tensor],
        title: str = "rows",
    ) -> Matrix:
        """Create a matrix from its rows, computed :data:`ROWS` at a time.

        Args:
            name: of the files.
            shape: n and d.
            compute: returns the rows ``(m, d)`` of a range of nodes.
            title: what they are, for the user.
        """
        widths = self._widths(shape)
        ranges = list(row_ranges(shape[0]))
        rows = counted(f"computation of {title}", ranges)
        if self.folder is None:
            blocks = [torch.empty(shape[0], width, device=self.device) for width in widths]
            for nodes in rows:
                for block, part in zip(blocks, torch.split(compute(nodes), widths, 1), strict=True):
                    block[nodes] = part  # from any device
            return Matrix(shape, blocks, widths)
        found = self.find([name], shape)
        if found is not None:
            return found[0]
        paths = self._paths(name, shape)
        with ExitStack() as stack:
            files = [stack.enter_context(_partial(path).open("wb")) for path in paths]
            for nodes in rows:
                for file, part in zip(files, torch.split(compute(nodes), widths, 1), strict=True):
                    part.contiguous().numpy(force=True).tofile(file)
        for path in paths:
            os.replace(_partial(path), path)
        return Matrix(shape, paths, widths)

    def from_columns(
        self,
        names: Sequence[str],
        source: Matrix,
        operation: Operation,
        neighbors: Neighbors,
        title: str,
    ) -> list[Matrix]:
        """Create matrices from each block of columns of another.

        Blocks in files are computed in parallel if there is an executor.

        Args:
            names: of the files of each matrix.
            source: the other matrix.
            operation: computes the blocks of the new matrices.
            neighbors: the edges.
            title: what is done, for the user.
        """
        task = Task(title, len(source.blocks) * operation.steps)
        paths = [self._paths(name, source.shape) for name in names]
        if self.folder is not None:
            todo = [
                (operation, neighbors, block, width, targets)
                for block, width, *targets in zip(source.blocks, source.widths, *paths, strict=True)
                if not all(_is_complete(target, source.shape[0], width) for target in targets)
            ]
            task.advance(operation.steps * (len(source.blocks) - len(todo)))
            run_blocks(todo, task)
            return [Matrix(source.shape, own, source.widths) for own in paths]
        kept: list[list[Tensor]] = [[] for _ in names]
        for block in source.columns():
            results = operation(neighbors, block.to(neighbors.device), task.advance)
            for own, result in zip(kept, results, strict=True):
                own.append(result.clone().to(self.device))
        return [Matrix(source.shape, own, source.widths) for own in kept]

    def find(self, names: Sequence[str], shape: tuple[int, int]) -> list[Matrix] | None:
        """Matrices whose files are complete; None if one is missing."""
        paths = [self._paths(name, shape) for name in names]
        widths = self._widths(shape)
        complete = self.folder is not None and all(
            _is_complete(path, shape[0], width)
            for own in paths
            for path, width in zip(own, widths, strict=True)
        )
        return [Matrix(shape, own, widths) for own in paths] if complete else None

    def _widths(self, shape: tuple[int, int]) -> list[int]:
        return [min(self.columns, shape[1] - start) for start in range(0, shape[1], self.columns)]

    def _paths(self, name: str, shape: tuple[int, int]) -> list[Path]:
        folder = self.folder or Path()
        return [
            folder / f"{name}-{self.columns}-{number:03d}.f32"
            for number, _ in enumerate(self._widths(shape))
        ]


@contextmanager
def open_workspace(
    num_rows: int,
    num_columns: int,
    folder: Path | None = None,
    *,
    prepared: bool = False,
    device: torch.device | str = "cpu",
    reserved: int = 0,
) -> Iterator[Workspace]:
    """A workspace in files if there is a folder, or no room for all matrices; else in memory.

    Args:
        num_rows: of all matrices.
        num_columns: of all matrices together.
        folder: for files, so that an interrupted fit can use them again, and all processes of a
            pool; default a temporary one, if files are needed. If it has files already, they are
            used, unless they were made with more memory.
        prepared: whether the files in the folder are complete already.
        device: where columns are computed; as many at a time as fit there.
        reserved: bytes of memory that are needed for something else while matrices are kept.
    """
    found = _stored_columns(folder)
    if folder is not None and found and prepared:
        yield Workspace(folder, found)
        return
    memory = available_memory()
    room, room_beside = (
        SHARE * size / (NUMBER * num_rows) for size in (memory, memory - reserved)
    )  # in columns
    free = free_memory(torch.device(device))
    most = MOST_AT_ONCE if free == float("inf") else int(free / 2 / (NUMBER * num_rows) / COPIES)
    if num_columns < room_beside and folder is None:
        yield Workspace(None, max(1, min(AT_ONCE_IN_MEMORY, most)))
        return
    at_once = max(1, min(MOST_AT_ONCE, most, int(room / COPIES / tasks_at_once())))
    at_once -= at_once % 16 if at_once > 16 else 0  # whole lines of the cache
    if folder is not None:
        if found and found <= at_once:
            at_once = found
        write_text(folder / COLUMNS, str(at_once))
        yield Workspace(folder, at_once)
        return
    with tempfile.TemporaryDirectory(prefix="dcgst-", ignore_cleanup_errors=True) as temporary:
        yield Workspace(Path(temporary), at_once)


def _stored_columns(folder: Path | None) -> int:
    """Number of columns that were computed at a time in a folder; zero if it is new."""
    if folder is None or not (folder / COLUMNS).exists():
        return 0
    return int((folder / COLUMNS).read_text(encoding="utf-8"))


def run_blocks(
    todo: Sequence[tuple[Operation, Neighbors, Any, int, Sequence[Path]]], task: Task
) -> None:
    """Call :func:`compute_files` with all arguments, in parallel if there is an executor."""
    executor = current_executor()
    if executor is None:
        for arguments in todo:
            compute_files(*arguments, on_step=task.advance)
        return
    for future in as_completed([executor.submit(compute_files, *arguments) for arguments in todo]):
        future.result()
        task.advance(todo[0][0].steps)


def _is_complete(path: Path, rows: int, columns: int) -> bool:
    return path.exists() and path.stat().st_size == NUMBER * rows * columns


def _partial(path: Path) -> Path:
    return path.with_suffix(TEMPORARY)
