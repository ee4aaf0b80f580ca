"""Import of modules that a user names: they may be in the working directory, no others.

If the working directory were in ``sys.path``, a library that looks for an optional module would
import and run a file of that name from any folder in which ``dcgst`` is used.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

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
