"""Append-only file of what was labeled: each line is on the disk before the call returns."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dcgst.errors import InputError, WriteError
from dcgst.tables.labels import RANDOM

LABEL, SKIP, UNSURE, UNDO, REDO = "label", "skip", "unsure", "undo", "redo"
DECISIONS = (LABEL, SKIP, UNSURE)
"""Kinds of events that concern nodes; the others take one back or restore it."""

ALWAYS = ("number", "kind", "client")
"""Fields that every line has."""


@dataclass(frozen=True)
class Event:
    """One line of the file.

    Attributes:
        number: position in the file, from zero.
        kind: ``label``, ``skip``, ``unsure``, ``undo`` or ``redo``.
        client: the browser tab.
        ids: the nodes.
        name: class name of a label.
        chosen: how the nodes were chosen: ``random``, ``suggested`` or ``selected``.
        of: number of the event that is undone or redone.
        time: UTC time.
    """

    number: int
    kind: str
    client: str
    ids: tuple[str, ...] = ()
    name: str = ""
    chosen: str = ""
    of: int | None = None
    time: str = ""


@dataclass
class LabelState:
    """What the events amount to.

    Attributes:
        classes: class name by node id.
        random: ids of nodes that were chosen at random.
        skipped: ids that were skipped, or about which the person was unsure.
    """

    classes: dict[str, str] = field(default_factory=dict)
    random: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


class Journal:
    """The events of a file. A last line whose writing was interrupted is removed.

    Args:
        path: the file; created with the first event.
        repair: whether such a line is removed; else it is an error.
    """

    def __init__(self, path: Path, *, repair: bool = True) -> None:
        self.path, self.repair = path, repair
        self.events: list[Event] = []
        if path.exists():
            self._read()
        self.state = fold(self.active)

    @property
    def undone(self) -> set[int]:
        """Numbers of events that are undone."""
        found: set[int] = set()
        for event in self.events:
            if event.kind == UNDO and event.of is not None:
                found.add(event.of)
            elif event.kind == REDO and event.of is not None:
                found.discard(event.of)
        return found

    @property
    def active(self) -> list[Event]:
        """Decisions that are not undone, in order."""
        undone = self.undone
        return [e for e in self.events if e.kind in DECISIONS and e.number not in undone]

    def decide(
        self, kind: str, client: str, ids: Sequence[str], name: str = "", chosen: str = ""
    ) -> Event:
        """Store a label, a skip, or that a person is unsure."""
        event = self._append(Event(len(self.events), kind, client, tuple(ids), name, chosen))
        _apply(self.state, event)
        return event

    def undo(self, client: str) -> Event | None:
        """Take back the last decision of a client; returns it, or None if there is none."""
        own = [event for event in self.active if event.client == client]
        return self._change(UNDO, client, own[-1]) if own else None

    def redo(self, client: str) -> Event | None:
        """Restore what the client took back last, unless it has decided something since."""
        own = [event for event in self.events if event.client == client]
        undone = self.undone
        for event in reversed(own):
            if event.kind in DECISIONS and event.number not in undone:
                return None
            if event.kind == UNDO and event.of in undone:
                return self._change(REDO, client, self.events[event.of])
        return None

    def _change(self, kind: str, client: str, event: Event) -> Event:
        self._append(Event(len(self.events), kind, client, of=event.number))
        self.state = fold(self.active)
        return event

    def _append(self, event: Event) -> Event:
        """Write an event and wait until it is on the disk; if that fails, nothing is written."""
        stamped = replace(event, time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        content = {
            key: value
            for key, value in asdict(stamped).items()
            if key in ALWAYS or value not in ("", None, ())
        }
        try:
            _append_line(self.path, (json.dumps(content) + "\n").encode())
        except OSError as error:
            raise WriteError(f"{self.path} cannot be written: {error.strerror}") from error
        self.events.append(stamped)
        return stamped

    def _read(self) -> None:
        content = self.path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete.split(b"\n")[:-1]):
            try:
                event = parse_event(line, number)
            except (TypeError, ValueError, RecursionError) as error:
                if number == 0 and not line.startswith(b"{"):
                    raise InputError(f"{self.path} is not a journal of labels") from error
                raise InputError(
                    f"{self.path}, line {number + 1} is damaged ({error}); restore the file, or "
                    "choose another one"
                ) from error
            self.events.append(event)
        if len(complete) < len(content):  # the writing of the last line was interrupted
            if not self.repair:
                raise InputError(
                    f"the last line of {self.path} is not complete; dcgst label repairs it"
                )
            os.truncate(self.path, len(complete))


def parse_event(line: bytes, number: int) -> Event:
    """The event of a line; raises ``TypeError`` or ``ValueError`` if it is none."""
    fields = json.loads(line)
    if not isinstance(fields, dict) or not isinstance(fields.get("ids", []), list):
        raise TypeError("it is not an event")
    event = Event(**{**fields, "ids": tuple(fields.get("ids", ()))})
    texts = (event.kind, event.client, event.name, event.chosen, event.time, *event.ids)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is missing")
    if event.kind not in (*DECISIONS, UNDO, REDO):
        raise ValueError(f"its kind is {event.kind!r}")
    if event.number != number:
        raise ValueError(f"its number is {event.number}")
    changes = event.kind in (UNDO, REDO)
    if changes and not (type(event.of) is int and 0 <= event.of < number):
        raise ValueError(f"it is about the event {event.of!r}")
    return event


def _append_line(path: Path, line: bytes) -> None:
    is_new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):
                written += os.write(handle, line[written:])
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)
    if is_new:
        _sync_folder(path.parent)


def fold(events: Iterable[Event]) -> LabelState:
    """What decisions amount to; a later one about a node replaces an earlier one."""
    state = LabelState()
    for event in events:
        _apply(state, event)
    return state


def _apply(state: LabelState, event: Event) -> None:
    for node_id in event.ids:
        if event.chosen == RANDOM:
            state.random.add(node_id)
        if event.kind == LABEL:
            state.classes[node_id] = event.name
            state.skipped.discard(node_id)
        else:
            state.classes.pop(node_id, None)
            state.skipped.add(node_id)


def _sync_folder(folder: Path) -> None:
    """Wait until a new file is in its folder on the disk; not possible on Windows."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
