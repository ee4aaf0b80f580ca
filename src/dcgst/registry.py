"""Registries of methods, backbones, datasets and samplers, and the modules that users name."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from dcgst.errors import InputError, UnregisteredError, unknown_name

VARIABLE = "DCGST_WORKING_DIRECTORY_MODULES"
"""Folder and names of modules, for the processes that are started from this one."""


class NamedModules(MetaPathFinder):
    """Finds modules of one folder, if they were named.

    Args:
        folder: the folder.
        names: of the modules, without submodules.
    """

    def __init__(self, folder: str, names: Sequence[str] = ()) -> None:
        self.folder, self.names = folder, list(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in self.names:
            return None
        spec = PathFinder.find_spec(fullname, [self.folder])
        if spec is not None and spec.loader is not None:
            spec.loader = _WithItsFolder(spec.loader, self.folder)
        return spec


class _WithItsFolder(Loader):
    """Another loader, whose module may import others from its folder while it is executed."""

    def __init__(self, loader: Loader, folder: str) -> None:
        self.loader, self.folder = loader, folder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _in_path(self.folder):
            self.loader.exec_module(module)


@contextmanager
def _in_path(folder: str) -> Iterator[None]:
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def import_named(name: str) -> ModuleType:
    """Import a module that the user named, from the installed packages or the working directory."""
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:  # the working directory was deleted
        return importlib.import_module(name)
    finder = next((own for own in sys.meta_path if isinstance(own, NamedModules)), None)
    if finder is None or finder.folder != folder:
        finder = NamedModules(folder)
        sys.meta_path.append(finder)  # installed packages come first
    top = name.partition(".")[0]
    if top not in finder.names:
        finder.names.append(top)
        os.environ[VARIABLE] = os.pathsep.join([folder, *finder.names])
    importlib.invalidate_caches()
    return importlib.import_module(name)


def inherit() -> None:
    """In a process started by another one, find the modules that were named there."""
    folder, *names = os.environ.get(VARIABLE, "").split(os.pathsep)
    if names and not any(isinstance(own, NamedModules) for own in sys.meta_path):
        sys.meta_path.append(NamedModules(folder, names))


inherit()


T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Objects by name. Look one up with ``registry[name]``.

    A name is known if it is built in, was added with :meth:`register`, or is an entry point of an
    installed package. In place of a name, ``"package.module:Name"`` imports an object directly.

    Args:
        kind: what the objects are, for error messages.
        group: group of entry points, such as ``dcgst.methods``.
        valid: raises :class:`InputError` if an imported object cannot be used.
    """

    def __init__(self, kind: str, group: str, valid: Callable[[Any], None]) -> None:
        self.kind, self.group, self.valid = kind, group, valid
        self._items: dict[str, T] = {}

    def register(self, name: str, item: T) -> T:
        """Add an object under a name; an existing name is an error.

        Returns:
            The object itself.
        """
        if ":" in name or "," in name or not name:
            raise InputError(f"a {self.kind} name must not be empty or contain ':' or ','")
        if name in self._items:
            raise InputError(f"the {self.kind} name {name!r} is already used")
        self.valid(item)
        self._items[name] = item
        return item

    def __getitem__(self, name: str) -> T:
        if name in self._items:
            return self._items[name]
        if ":" in name:
            return self._imported(name)
        for point in _entry_points(self.group):
            if point.name == name:
                return self._checked(name, point.load)
        raise unknown_name(self.kind, name, self)

    def names(self) -> list[str]:
        """All known names: built-in ones first, then registered ones, then entry points."""
        installed = (point.name for point in _entry_points(self.group))
        return list(dict.fromkeys([*self._items, *installed]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._items or name in self.names()

    def resolve(self, item: str | T) -> T:
        """Return the object itself, or the object of that name."""
        if isinstance(item, str):
            return self[item]
        self.valid(item)
        return item

    def name_of(self, item: T) -> str:
        """The name under which an object is known, else ``package.module:Name``."""
        for name, known in self._items.items():
            if known is item:
                return name
        for point in _entry_points(self.group):
            if point.value == _path_of(item):
                return point.name
        return _path_of(item)

    def known(self, name: str) -> T:
        """Look up a name from a file, without importing a module that the file names.

        ``package.module:Name`` is accepted only if the module is imported already.
        """
        module, colon, attribute = name.partition(":")
        if colon and not hasattr(sys.modules.get(module), attribute.partition(".")[0]):
            raise UnregisteredError(
                f"the {self.kind} {name!r} is not registered; import {module} first (on the "
                f"command line: dcgst --import {module} …)"
            )
        if not colon and name not in self:
            raise UnregisteredError(
                f"the {self.kind} {name!r} is not registered; import the module that registers it "
                "first (on the command line: dcgst --import MODULE …)"
            )
        return self[name]

    def _imported(self, path: str) -> T:
        module, _, name = path.partition(":")

        def load() -> Any:
            return attrgetter(name)(import_named(module))

        return self._checked(path, load)

    def _checked(self, name: str, load: Callable[[], Any]) -> T:
        try:
            item: T = load()
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{self.kind} {name!r} cannot be imported: {error}") from error
        self.valid(item)
        return item


@cache
def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Entry points of installed packages; the search takes milliseconds, so it is done once."""
    return tuple(entry_points(group=group))


def subclass_of(base: type) -> Callable[[Any], None]:
    """Return a check that an object is a class derived from ``base``."""

    def check(item: Any) -> None:
        if not (isinstance(item, type) and issubclass(item, base)):
            raise InputError(f"{item!r} is not a subclass of {base.__module__}.{base.__name__}")

    return check


def _path_of(item: Any) -> str:
    return f"{item.__module__}:{item.__qualname__}"
