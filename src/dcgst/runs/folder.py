"""The run folder: which files it has and what is in them. See docs/run-folder.md.

No other module knows the format. ``run.json`` is written last: a folder that has it is complete.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import gzip
import hashlib
import io
import json
import math
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from dcgst.errors import InputError, UnregisteredError, WriteError, option
from dcgst.evaluate.calibration import Calibration
from dcgst.features.graph_features import Learned
from dcgst.features.matrix import row_ranges
from dcgst.files import TEMPORARY, replacing, rows_to_csv, write_bytes, write_text
from dcgst.graph import UNKNOWN, Graph
from dcgst.graph.cleaning import MAX_ROWS, checked_csr
from dcgst.memory import forget, in_gib
from dcgst.methods import METHODS, Result
from dcgst.methods.relations import Relation
from dcgst.methods.result import CANDIDATE, EDGE_PROBABILITIES, NOT_LABELED
from dcgst.methods.row_models import RowModel
from dcgst.methods.storage import DESCRIPTION, dump, restore, restore_network
from dcgst.nn import Backbone
from dcgst.runs.predictions import ColumnUse, Predictions
from dcgst.splits import Split
from dcgst.tables import Columns, FeatureEncoder, read_label_table
from dcgst.tables.graph_files import read_npz_arrays
from dcgst.tables.nodes import Input, StoreReference
from dcgst.tables.store import is_store, open_store
from dcgst.tables.table import open_file, read_bytes
from dcgst.version import VERSION

FORMAT = 3
RUN, BEGUN, CHECKPOINT, LOCK = "run.json", "begun.json", "checkpoint", ".lock"
PREDICTIONS, HISTORY, CANDIDATE_TABLE = "predictions.csv", "history.csv", "candidates.csv.gz"
ARRAYS, MODELS, NODE_TABLE = "graph.npz", "model.safetensors", "nodes.csv.gz"
PREDICTORS = "predictors.safetensors"
METRICS, REPORT, TRUTH = "metrics.json", "report.html", "truth.csv"
PREDICTIONS_PARQUET, PROBABILITIES = "predictions.parquet", "probabilities.npy"
"""Files of a run whose graph is in a store."""

OF_TABLES = (PREDICTIONS, NODE_TABLE)
OF_STORE = (PREDICTIONS_PARQUET, PROBABILITIES)
ALWAYS = (CANDIDATE_TABLE, HISTORY, MODELS, PREDICTORS, ARRAYS, METRICS)

FILES = (RUN, *OF_TABLES, *OF_STORE, *ALWAYS, REPORT, TRUTH, BEGUN)
"""All files; ``begun.json`` is removed last, because it marks the folder as a run folder."""


def fit_again() -> str:
    """What to do about a damaged run, for messages."""
    return f"fit again with {option('overwrite', True)}"


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a run folder.

    Attributes:
        info: content of ``run.json``; its entry ``store`` says whether the graph is in a store.
        graph: the graph.
        split: training, validation and pool nodes.
        result: the result of the fit.
        table: columns of the node table; read separately, by :func:`read_node_table`.
        store: where the graph is; None if it is in the folder.
    """

    info: dict[str, Any]
    graph: Graph
    split: Split
    result: Result
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)
    store: StoreReference | None = None


def identity(
    graph: Graph,
    split: Split,
    method: str,
    settings: Mapping[str, Any],
    store: StoreReference | None = None,
) -> dict[str, Any]:
    """What must be equal for a fit to be resumed: format, version, and a fingerprint.

    The fingerprint depends on graph, split, method and settings, but not on where it is computed.
    """
    digest = hashlib.sha256()
    arrays: list[Any] = [split.train, split.val, graph.labels, np.array(graph.class_names)]
    arrays.append(np.array(graph.columns_weighted))
    if store is not None:
        digest.update(store.digest.encode())
    else:
        features, adjacency = graph.features, graph.adjacency
        arrays += [adjacency.indptr, adjacency.indices, adjacency.data, graph.ids.astype("U")]
        arrays += [features.shape]
        if sp.issparse(features):
            arrays += [features.data, features.indices, features.indptr]
        else:
            arrays += [features]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    relevant = {k: v for k, v in settings.items() if k not in ("device", "chunk_size")}
    digest.update(json.dumps([method, relevant], sort_keys=True).encode())
    return {"format": FORMAT, "dcgst": VERSION, "fingerprint": digest.hexdigest()[:16]}


def digest_of(content: bytes) -> str:
    """SHA-256 digest of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path) -> str:
    """SHA-256 digest of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def seal(info: Mapping[str, Any]) -> dict[str, Any]:
    """``run.json`` with the digest of its own content."""
    content = {key: value for key, value in info.items() if key != "digest"}
    return {**content, "digest": digest_of(json.dumps(content, sort_keys=True).encode())}


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder and keep other processes from writing to it at the same time."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        existed = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        _check_own(folder)
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"another process is fitting into {folder}; wait for it, or choose another folder"
        ) from error
    except InputError:
        raise
    except NotImplementedError:
        pass  # a network file system without locks
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise WriteError(f"{folder} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise WriteError(f"{str(folder)!r} is not a folder name: {error}") from error
    try:
        yield
    finally:
        # Removed while it is held, so that no other process can hold it. Windows refuses that; the
        # file then stays, which does no harm.
        with contextlib.suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
        lock.release()
        if not existed:
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()


def _check_own(folder: Path) -> list[str]:
    """The names of the files in the folder; raises if there are files of another origin."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix != TEMPORARY)
    names = [name for name in names if name != LOCK]
    if names and BEGUN not in names:
        raise InputError(f"{folder} contains other files ({names[0]}); choose another folder")
    return names


def prepare(folder: Path, identity: Mapping[str, Any], *, resume: bool, overwrite: bool) -> bool:
    """Prepare a locked folder, or check what an earlier fit left in it.

    Returns:
        whether the folder already holds the complete run.
    """
    try:
        names = _check_own(folder)
        begun = BEGUN in names
        if begun and overwrite:
            remove(folder)
        elif begun and not resume:
            what = "a run" if RUN in names else "an interrupted run"
            raise InputError(
                f"{folder} already contains {what}; use {option('resume', True)} to continue it, "
                f"{option('overwrite', True)} to replace it, or another folder"
            )
        elif begun:
            if read_json(folder / BEGUN) != identity:
                raise InputError(
                    f"{folder} was started with another graph, other labels or settings, or by "
                    f"another version; use {option('overwrite', True)} to replace it"
                )
            _remove_temporary(folder)
            if RUN in names:
                shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
            return RUN in names
        _remove_temporary(folder)
        write_text(folder / BEGUN, json.dumps(identity))
    except OSError as error:
        raise WriteError(f"{folder} cannot be written: {error.strerror or error}") from error
    return False


def stored_steps(folder: Path) -> str:
    """What an interrupted fit left in a folder, for the user; empty if there is nothing."""
    files = [path for path in (folder / CHECKPOINT).rglob("*") if path.is_file()]
    steps = sum(path.suffix == ".step" for path in files)
    matrices = [path for path in files if path.suffix == ".f32"]
    size = sum(path.stat().st_size for path in matrices)
    parts = [f"{steps} trained or selected steps"] if steps else []
    parts += [f"{len(matrices)} blocks of propagated features ({in_gib(size)})"] if matrices else []
    return " and ".join(parts)


def remove(folder: Path) -> None:
    """Remove the files of a run; other files stay."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    _remove_temporary(folder)
    for name in FILES:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)


def _remove_temporary(folder: Path) -> None:
    """Remove temporary files that a killed process left behind."""
    for path in folder.rglob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises if the file is damaged."""
    try:
        found = json.loads(read_bytes(path), parse_constant=_refuse_constant)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}); {fit_again()}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged (not a JSON object); {fit_again()}")
    return found


DERIVED = (PREDICTIONS, PREDICTIONS_PARQUET, CANDIDATE_TABLE, METRICS)
"""Files for people, which are never read back."""

REQUIRED: dict[str, type] = {
    "method": str,
    "settings": dict,
    "models": list,
    "columns": dict,
    "spectral": bool,
    "calibration": dict,
    "notes": list,
    "node_columns": list,
    "stop_reason": str,
}
"""Required keys of ``run.json`` and their types."""


def verify_digests(folder: Path, info: Mapping[str, Any]) -> None:
    """Compare every file with its digest.

    A changed file is an error that names it, or a warning if the run does not depend on the file.
    """
    files = info.get("files")
    if info != seal(info) or not isinstance(files, dict):
        raise InputError(f"{folder / RUN} was changed or damaged; {fit_again()}")
    expected = {*ALWAYS, *(OF_STORE if info.get("store") else OF_TABLES)}
    optional = ((MODELS, "models"), (PREDICTORS, "predictors"), (NODE_TABLE, "node_columns"))
    for name, key in optional:
        if not info.get(key):
            expected.discard(name)
    if set(files) != expected:
        raise InputError(f"{folder / RUN} lists other files than a run has; fit again")
    for name, digest in files.items():
        path = folder / name
        if not path.exists():
            what = "is missing"
        elif digest_of_file(path) != digest:
            what = "was changed or damaged since the fit"
        else:
            continue
        if name not in DERIVED:
            raise InputError(f"{path} {what}; restore it, or {fit_again()}")
        warnings.warn(  # for the caller of open_run
            f"{path} {what}; the run itself is intact", stacklevel=4
        )


def check_info(info: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` or ``ValueError`` if an entry of ``run.json`` is not as it must be."""
    for key, kind in REQUIRED.items():
        if not isinstance(info[key], kind):
            raise TypeError(f"{key} is {type(info[key]).__name__}")
    calibration = Calibration(**info["calibration"])
    _check_number("calibration.temperature", calibration.temperature, above=0)
    if "seconds" in info:
        _check_number("seconds", info["seconds"])
    columns = Columns.from_json(info["columns"])
    for name in ("id", "label", "source", "target", "weight", "edge_type", "edge_time"):
        _check_text(f"columns.{name}", getattr(columns, name), optional=True)
    for relation in info.get("relations", []):
        _check_number("weight of a relation", Relation(**relation).weight, above=-1)
    for column in info.get("columns_used", []):
        _check_number("share of a column", ColumnUse(**column).explained, above=-1)
    for name in ("features", "ignore"):
        names = getattr(columns, name)
        for column in () if names is None else _sequence(f"columns.{name}", names):
            _check_text(f"columns.{name}", column)
    for encoder in FeatureEncoder.from_json(info["encoder"] or []).columns:
        _check_text("name of an encoder", encoder.name)
        encoder.check()
    if info["method"] in METHODS:  # the backbone may be of another package: it is not resolved here
        settings = {key: value for key, value in info["settings"].items() if key != "backbone"}
        with suppress(UnregisteredError):  # code of another package is not imported here
            METHODS[info["method"]].from_stored(settings).check_values()


def check_arrays(arrays: Mapping[str, NDArray[Any]], graph: Graph) -> None:
    """Raise ``ValueError`` unless all arrays have the shape, type and range of their meaning."""
    n, classes = graph.num_nodes, graph.num_classes
    expected = {
        "proba": ("f", (n, classes)),
        "labeled_stage": ("i", (n,)),
        "agreement": ("f", (n,)),
        **dict.fromkeys(("train", "val", "pool", "test"), ("b", (n,))),
    }
    for name, (kind, shape) in expected.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind != kind:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {shape}")
    proba, agreement = arrays["proba"], arrays["agreement"]
    for nodes in row_ranges(n):
        own = proba[nodes]
        if not ((own >= 0).all() and np.allclose(own.sum(axis=1), 1, rtol=0, atol=1e-2)):
            raise ValueError("proba has values that are not probabilities")
    forget(proba)
    if not ((agreement >= 0) & (agreement <= 1)).all():
        raise ValueError("agreement has values outside 0 … 1")
    if (arrays["labeled_stage"] < NOT_LABELED).any():
        raise ValueError("labeled_stage has negative stages")


def _check_number(name: str, value: Any, above: float = -1) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {type(value).__name__}")
    if not (math.isfinite(value) and value > above):
        raise ValueError(f"{name} is {value}")


def _check_text(name: str, value: Any, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError(f"{name} is {type(value).__name__}")


def _sequence(name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} is {type(values).__name__}")
    return values


def write(
    folder: Path,
    stored: Stored,
    predictions: Predictions,
    metrics: Mapping[str, Any],
    *,
    spreadsheet: bool,
) -> None:
    """Write all files, ``run.json`` last, and remove the checkpoint.

    Args:
        folder: the run folder.
        stored: what to write; the digests of the files are added to its ``info``.
        predictions: content of ``predictions.csv`` or, if the graph is in a store,
            ``predictions.parquet``.
        metrics: content of ``metrics.json``.
        spreadsheet: whether ``predictions.csv`` must be safe to open in a spreadsheet.
    """
    result = stored.result
    if not all(np.isfinite(list(record.values())).all() for record in result.history):
        raise InputError("training diverged: the shift is not finite; try a smaller lr")
    if stored.info.get("store"):
        written: tuple[str, ...] = OF_STORE
        _write_probabilities(folder / PROBABILITIES, result.proba)
        predictions.write_parquet(folder / PREDICTIONS_PARQUET)
    else:
        written = (PREDICTIONS,)
        predictions.write_csv(folder / PREDICTIONS, spreadsheet=spreadsheet)
    contents = {
        HISTORY: rows_to_csv(result.history).encode(),
        CANDIDATE_TABLE: _candidates_to_csv(result.candidates, stored.graph),
        ARRAYS: _arrays_to_npz(stored),
        METRICS: (json.dumps(metrics, indent=1, allow_nan=False) + "\n").encode(),
    }
    stored.info["node_columns"] = list(stored.table)
    if stored.table:
        columns = list(stored.table.values())
        # With this terminator, values with any kind of line break are quoted.
        contents[NODE_TABLE] = _to_csv(list(stored.table), columns, "\r\n")
    if result.models:
        contents[MODELS] = save(_tensors_of(result))
    stored.info["predictors"] = len(result.predictors)
    if result.predictors:
        contents[PREDICTORS] = _predictors_to_bytes(result)
    for name, content in contents.items():
        write_bytes(folder / name, content)
    stored.info["files"] = {
        **{name: digest_of_file(folder / name) for name in written},
        **{name: digest_of(content) for name, content in contents.items()},
    }
    write_text(folder / RUN, json.dumps(seal(stored.info), indent=1, allow_nan=False) + "\n")
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def _predictors_to_bytes(result: Result) -> bytes:
    """What predicts other graphs: tensors, and a description as metadata."""
    description, tensors = dump((result.predictors, result.learned))
    check_finite(tensors)
    return save(tensors, {DESCRIPTION: json.dumps(description, allow_nan=False)})


def _write_probabilities(path: Path, proba: NDArray[np.float32]) -> None:
    """Write an ``.npy`` file in blocks."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        header = npy.header_data_from_array_1_0(proba)
        npy.write_array_header_2_0(file, {**header, "fortran_order": False})
        for nodes in row_ranges(len(proba)):
            file.write(np.ascontiguousarray(proba[nodes]).tobytes())
            forget(proba)


def _tensors_of(result: Result) -> dict[str, Tensor]:
    """The parameters of all networks; raises if one is not finite."""
    tensors = {  # clones, because networks may share tensors and the format does not
        f"{index}.{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for index, network in enumerate(result.models)
        for name, tensor in network.state_dict().items()
    }
    check_finite(tensors)
    return tensors


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise if a parameter is NaN or infinite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InputError(f"parameter {name} of the network has values that are not finite")


def _candidates_to_csv(candidates: NDArray[np.void], graph: Graph) -> bytes:
    """The candidates for people: ids and class names instead of numbers, without the truth."""
    names = [name for name in CANDIDATE.names or () if name != "truth"]
    columns = []
    for name in names:
        if name == "node":
            columns.append(graph.ids[candidates["node"]].tolist())
        elif name == "label":
            columns.append([graph.class_names[code] for code in candidates["label"]])
        elif candidates[name].dtype == np.float32:
            columns.append(["" if np.isnan(v) else f"{v:.6g}" for v in candidates[name]])
        else:
            columns.append(candidates[name].tolist())
    return _to_csv(names, columns)


def _to_csv(
    names: Sequence[str], columns: Sequence[Sequence[Any]], lineterminator: str = "\n"
) -> bytes:
    """A compressed CSV file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=lineterminator)
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    content = buffer.getvalue().encode("utf-8", "backslashreplace")
    return gzip.compress(content, compresslevel=4, mtime=0)


def _arrays_to_npz(stored: Stored) -> bytes:
    """The arrays of graph, split and result; without those that are in a store or another file."""
    graph, split, result = stored.graph, stored.split, stored.result
    tables = {"candidates": result.candidates, "edge_probabilities": result.edge_probabilities}
    columns = {
        f"{table}_{name}": rows[name]
        for table, rows in tables.items()
        for name in rows.dtype.names or ()
    }
    arrays: dict[str, Any] = dict(
        labels=graph.labels,
        class_names=np.array(graph.class_names, dtype="U"),
        train=split.train[0],
        val=split.val[0],
        pool=split.pool[0],
        test=split.test(graph)[0],
        labeled_stage=result.labeled_stage,
        agreement=result.agreement,
        **columns,
    )
    if not stored.info.get("store"):
        arrays |= _graph_arrays(graph) | {"proba": result.proba}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _graph_arrays(graph: Graph) -> dict[str, Any]:
    features = sp.csr_array(graph.features)
    return {
        "adjacency_data": graph.adjacency.data,
        "adjacency_indices": graph.adjacency.indices,
        "adjacency_indptr": graph.adjacency.indptr,
        "features_data": features.data,
        "features_indices": features.indices,
        "features_indptr": features.indptr,
        "features_shape": np.array(features.shape),
        "features_dense": np.array(not sp.issparse(graph.features)),
        "ids": graph.ids.astype("U") if graph.ids.dtype == object else graph.ids,
    }


DAMAGED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that reading a damaged file may raise."""


def read(folder: Path) -> Stored:
    """Read a complete run folder; raises if it is incomplete, damaged or of a newer format."""
    try:
        complete, begun = (folder / RUN).is_file(), (folder / BEGUN).is_file()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} is not a run folder: {error}") from error
    if not complete:
        if begun:
            raise InputError(
                f"{folder} contains an interrupted run; continue its fit with "
                f"{option('resume', True)}"
            )
        raise InputError(f"{folder} is not a run folder: it has no run.json; see dcgst fit")
    info = read_json(folder / RUN)
    if info.get("format") != FORMAT:
        raise InputError(
            f"{folder} has format {info.get('format')} (dcgst {info.get('dcgst')}), this version "
            f"reads format {FORMAT}; fit again, or use the version that wrote it"
        )
    verify_digests(folder, info)
    del info["digest"]
    try:
        return _read(folder, info)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(
            f"{folder} is damaged ({type(error).__name__}: {error}); {fit_again()}"
        ) from error


def _read(folder: Path, info: dict[str, Any]) -> Stored:
    arrays = read_npz_arrays(folder / ARRAYS)
    graph, store = _graph_of(arrays, folder, info)
    if store is not None:
        arrays["proba"] = read_probabilities(folder)
    check_info(info)
    check_arrays(arrays, graph)
    split = Split.of(arrays["train"], arrays["val"], arrays["pool"])
    if (arrays["test"] != split.test(graph)[0]).any():
        split = replace(split, official_test=arrays["test"][None])
    predictors: tuple[RowModel, ...] = ()
    learned = None
    if info.get("predictors"):
        predictors, learned = _read_predictors(folder / PREDICTORS, info["predictors"])
    result = Result(
        proba=arrays["proba"],
        given=np.where(split.given[0], graph.labels, UNKNOWN),
        labeled_stage=arrays["labeled_stage"],
        agreement=arrays["agreement"],
        history=_read_history(folder / HISTORY),
        stop_reason=info["stop_reason"],
        candidates=_table_of(arrays, "candidates", CANDIDATE),
        edge_probabilities=_table_of(arrays, "edge_probabilities", EDGE_PROBABILITIES),
        member_weights=info.get("member_weights", {}),
        expectation=info.get("expectation", {}),
        models=_read_models(folder / MODELS, info["models"]),
        predictors=predictors,
        learned=learned,
    )
    return Stored(info, graph, split, result, store=store)


def read_node_table(folder: Path) -> dict[str, list[str]]:
    """The columns of the node table by name; raises if the file is damaged."""
    csv.field_size_limit(2**31 - 1)
    try:
        with gzip.open(folder / NODE_TABLE, "rt", newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return dict(zip(names, columns, strict=True))
    except DAMAGED as error:
        raise InputError(f"{folder / NODE_TABLE} is damaged ({error}); {fit_again()}") from error


def write_truth(folder: Path, classes: Mapping[str, str]) -> None:
    """Store true classes by node id, with which outputs compare the predictions."""
    rows = [{"id": node_id, "class": name} for node_id, name in classes.items()]
    write_text(folder / TRUTH, rows_to_csv(rows))


def read_truth(folder: Path) -> dict[str, str]:
    """Stored true classes by node id; empty if there are none."""
    path = folder / TRUTH
    if not path.exists():
        return {}
    return read_label_table(path, id_column="id", label_column="class").classes


def read_probabilities(folder: Path) -> NDArray[np.float32]:
    """The probabilities of a run whose graph is in a store, memory-mapped."""
    proba: NDArray[np.float32] = np.load(folder / PROBABILITIES, mmap_mode="r", allow_pickle=False)
    return proba


def _graph_of(
    arrays: Mapping[str, NDArray[Any]], folder: Path, info: Mapping[str, Any]
) -> tuple[Graph, StoreReference | None]:
    """The graph, and its store if it is in one.

    It has masks if more labels are known than were given.
    """
    given = arrays["train"] | arrays["val"]
    all_given = ((arrays["labels"] != UNKNOWN) == given).all()
    masks = {} if all_given else {"train": arrays["train"], "val": arrays["val"]}
    names = tuple(str(class_name) for class_name in arrays["class_names"])
    if info.get("store"):
        data = _open_store(folder, info["store"])
        graph = data.graph.with_labels(arrays["labels"], class_names=names, masks=masks)
        return graph, data.store
    n = len(arrays["labels"])
    parts = tuple(arrays[f"features_{part}"] for part in ("data", "indices", "indptr"))
    features = checked_csr(parts, arrays["features_shape"], "features")
    links = tuple(arrays[f"adjacency_{part}"] for part in ("data", "indices", "indptr"))
    graph = Graph(
        checked_csr(links, (n, n), "adjacency", MAX_ROWS),
        features.toarray() if arrays["features_dense"] else features,
        arrays["labels"],
        names,
        arrays["ids"],
        masks=masks,
        name=str(info["name"]),
        columns_weighted=info.get("encoder") is not None,
    )
    return graph, None


def _open_store(folder: Path, stored: Mapping[str, Any]) -> Input:
    """The store of a run: at its path, or at the same place relative to the run folder."""
    paths = (Path(stored["path"]), folder / stored["relative_path"])
    others = []
    for path in filter(is_store, paths):
        data = open_store(path)
        if data.store is not None and data.store.digest == stored["digest"]:
            return data
        others.append(path)
    if others:
        raise InputError(
            f"{others[0]} is not the store that {folder} was fitted on: its content differs; put "
            f"the old one back, or {fit_again()}"
        )
    raise InputError(
        f"the graph of {folder} is in the store {paths[0]}, which does not exist; put it back, or "
        f"move it to {paths[1]}, or import the tables again"
    )


def _table_of(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: np.dtype[np.void]
) -> NDArray[np.void]:
    columns = {column: arrays[f"{name}_{column}"] for column in dtype.names or ()}
    table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for column, values in columns.items():
        table[column] = values
    return table


def _read_history(path: Path) -> list[dict[str, float]]:
    with open(path, newline="", encoding="utf-8") as file:
        records = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    required = {"replica", "stage", "labeled", "cmd"}
    if not records or any(
        not required <= record.keys() or not np.isfinite(list(record.values())).all()
        for record in records
    ):
        raise ValueError(f"{path.name} does not have the columns of a history")
    return records


def _read_predictors(path: Path, count: int) -> tuple[tuple[RowModel, ...], Learned]:
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            description = json.loads((file.metadata() or {})[DESCRIPTION])
        check_finite(tensors)
        predictors, learned = restore(description, tensors)
        if not (isinstance(learned, Learned) and all(map(callable, predictors))):
            raise ValueError("its content is not a model")
        if len(predictors) != count:
            raise ValueError(f"it has {len(predictors)} models instead of {count}")
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path} is damaged ({error}); {fit_again()}") from error
    return tuple(predictors), learned


def _read_models(path: Path, configs: Sequence[Mapping[str, Any]]) -> tuple[Backbone, ...]:
    if not configs:
        return ()
    try:
        tensors = load_file(path)
        check_finite(tensors)
        networks = []
        for index, config in enumerate(configs):
            prefix = f"{index}."
            state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            networks.append(restore_network(config, state))
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path} is damaged ({error}); {fit_again()}") from error
    return tuple(networks)
