"""Fitted models and results as tensors and JSON, to be stored without pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from dcgst.errors import InputError
from dcgst.features.columns import ColumnWeights
from dcgst.features.graph_features import Learned
from dcgst.features.smoothing import Basis, Propagation, ViewBases
from dcgst.nn.backbones import Backbone
from dcgst.train.checkpoint import Checkpoint, Tensors

Kind = TypeVar("Kind", bound=type)
Value = TypeVar("Value")

DESCRIPTION = "description"
"""Name of the tensor with the bytes of the JSON text, in a checkpoint."""

MOST_PRODUCTS = 64
"""A network has at least one parameter for so many products of replicas, hidden units, classes."""

_kinds: dict[str, type] = {}

RESULTS = "results"
"""Name of the checkpoint step with the results of a chunk."""


def storable(kind: Kind) -> Kind:
    """Register a dataclass, so that its objects can be stored; a class decorator."""
    _kinds[kind.__name__] = kind
    return kind


for _kind in (Basis, ColumnWeights, Learned, Propagation, ViewBases):
    storable(_kind)


def dump(value: Any) -> tuple[Any, Tensors]:
    """A value as JSON and tensors.

    Tensors, arrays, networks, dataclasses marked by :func:`storable`, sequences, mappings with
    string keys, numbers, text and None can be stored. Equal tensors are stored once.

    Returns:
        a description that JSON can represent, and the tensors that it refers to by name.
    """
    tensors: Tensors = {}
    names: dict[bytes, str] = {}

    def add(tensor: Tensor) -> str:
        tensor = tensor.detach().cpu().contiguous()
        hashed = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            hashed.update(tensor.flatten().view(torch.uint8).numpy().data)
        digest = hashed.digest()
        if digest not in names:
            names[digest] = f"t{len(names)}"
            tensors[names[digest]] = tensor
        return names[digest]

    def describe(own: Any) -> Any:
        if own is None or isinstance(own, bool | int | float | str):
            return own
        if isinstance(own, np.generic):
            return describe(own.item())
        if isinstance(own, Tensor):
            return {"tensor": add(own)}
        if isinstance(own, np.ndarray):
            columns = own.dtype.names
            if columns is None:
                return {"array": add(torch.from_numpy(np.array(own)))}
            dtype = [[name, own.dtype[name].str] for name in columns]
            content = {name: describe(np.array(own[name])) for name in columns}
            return {"table": content, "dtype": dtype}
        if isinstance(own, Backbone):
            state = {name: add(tensor) for name, tensor in own.state_dict().items()}
            return {"network": own.config(), "state": state}
        if isinstance(own, Mapping):
            return {"mapping": {str(key): describe(part) for key, part in own.items()}}
        if isinstance(own, tuple):
            return {"tuple": [describe(part) for part in own]}
        if isinstance(own, list):
            return [describe(part) for part in own]
        if _kinds.get(type(own).__name__) is not type(own):
            raise InputError(
                f"{type(own).__name__} cannot be stored in a run folder; make it a dataclass "
                "and mark it with dcgst.methods.storage.storable"
            )
        fields = dataclasses.fields(own)  # type: ignore[arg-type]
        parts = {field.name: describe(getattr(own, field.name)) for field in fields}
        return {"kind": type(own).__name__, "parts": parts}

    return describe(value), tensors


def restore(
    description: Any, tensors: Mapping[str, Tensor], device: torch.device | str = "cpu"
) -> Any:
    """What :func:`dump` was given.

    Args:
        description: of :func:`dump`.
        tensors: likewise.
        device: of the tensors of models; arrays stay where they are.

    Raises:
        KeyError, TypeError, ValueError: if the description is not valid.
    """

    def inner(part: Any) -> Any:
        return restore(part, tensors, device)

    if description is None or isinstance(description, bool | int | float | str):
        return description
    if isinstance(description, list):
        return [inner(part) for part in description]
    if "tuple" in description:
        return tuple(inner(part) for part in description["tuple"])
    if "tensor" in description:
        return tensors[description["tensor"]].to(device)
    if "array" in description:
        return tensors[description["array"]].numpy(force=True)
    if "table" in description:
        columns = {name: inner(own) for name, own in description["table"].items()}
        dtype = np.dtype([(str(name), str(kind)) for name, kind in description["dtype"]])
        if any(dtype[name].kind not in "biuf" for name in dtype.names or ()):
            raise ValueError("a table has columns that are not numbers")
        table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
        for name, values in columns.items():
            table[name] = values
        return table
    if "network" in description:
        state = {name: tensors[key] for name, key in description["state"].items()}
        return restore_network(description["network"], state).to(device)
    if "mapping" in description:
        return {key: inner(part) for key, part in description["mapping"].items()}
    kind = _kinds[description["kind"]]
    return kind(**{name: inner(own) for name, own in description["parts"].items()})


def restore_network(config: Mapping[str, Any], state: Mapping[str, Tensor]) -> Backbone:
    """A network from its configuration and parameters."""
    check_sizes(config, state)
    network = Backbone.from_config(config)
    network.load_state_dict(dict(state))
    return network


def check_sizes(config: Mapping[str, Any], state: Mapping[str, Tensor]) -> None:
    """Raise ``ValueError`` if a network of this configuration is larger than its parameters."""
    most = max([1, *(tensor.numel() for tensor in state.values())])
    for name in ("replicas", "num_features", "hidden", "num_classes"):
        size = config[name]
        if not isinstance(size, int) or not 0 < size <= most:
            raise ValueError(f"a network has {name} {size!r}, but its parameters are smaller")
    total = sum(tensor.numel() for tensor in state.values())
    products = config["replicas"] * config["hidden"] * config["num_classes"]
    if products > MOST_PRODUCTS * max(1, total):
        raise ValueError("a network is much larger than its parameters")
    rate = config["dropout"]
    if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
        raise ValueError(f"a network has dropout {rate!r}")


def stored(
    checkpoint: Checkpoint,
    name: str,
    compute: Callable[[], Value],
    device: torch.device | str,
    *,
    reuse: bool = True,
) -> Value:
    """Return a stored value, or compute and store it, as a step of a checkpoint.

    Args:
        checkpoint: where; if it has no folder, the value is computed and returned as it is.
        name: of the step.
        compute: returns a value that can be stored.
        device: of the tensors of a stored value.
        reuse: whether a stored value is valid.
    """
    computed: list[Value] = []

    def step() -> Tensors:
        computed.append(compute())
        if checkpoint.folder is None:
            return {}
        description, tensors = dump(computed[0])
        text = json.dumps(description).encode()
        return {**tensors, DESCRIPTION: torch.tensor(list(text), dtype=torch.uint8)}

    tensors = checkpoint.step(name, step, reuse=reuse)
    if computed:
        return computed[0]
    try:
        description = json.loads(bytes(tensors.pop(DESCRIPTION).tolist()))
        # Copies: those in the file are not aligned, which changes the rounding of products.
        copies = {key: own.clone() for key, own in tensors.items()}
        found: Value = restore(description, copies, device)
    except (KeyError, TypeError, ValueError):  # of another version, or an unknown network
        return compute()
    return found
