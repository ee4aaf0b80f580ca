"""Registries: lookup by name, by import path and by entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from dcgst.errors import InputError
from dcgst.nn import BACKBONES, GCNBackbone
from dcgst.registry import Registry, subclass_of


class Animal:
    pass


class Cat(Animal):
    pass


class Dog(Animal):
    pass


@pytest.fixture
def animals():
    registry = Registry("animal", "dcgst.animals", subclass_of(Animal))
    registry.register("cat", Cat)
    registry.register("dog", Dog)
    return registry


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module outside of the package: it has a class of the right type and other objects."""
    (tmp_path / "my_animals.py").write_text(
        textwrap.dedent(
            f"""
            from {__name__} import Animal

            class Fish(Animal):
                pass

            class Stone:
                pass

            fish = Fish()
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_animals"
    sys.modules.pop("my_animals", None)


def test_objects_are_found_by_name_in_order_of_registration(animals):
    assert animals["cat"] is Cat
    assert list(animals) == ["cat", "dog"]
    assert len(animals) == 2
    assert "dog" in animals
    assert "fish" not in animals
    assert dict(animals.items()) == {"cat": Cat, "dog": Dog}


def test_register_returns_the_object(animals):
    class Bird(Animal):
        pass

    assert animals.register("bird", Bird) is Bird
    assert animals["bird"] is Bird


def test_objects_are_found_by_import_path(animals, module):
    fish = animals[f"{module}:Fish"]
    assert issubclass(fish, Animal)
    assert fish is sys.modules[module].Fish
    assert f"{module}:Fish" not in list(animals)


def test_an_unknown_name_is_refused_with_all_known_names(animals):
    with pytest.raises(InputError, match="unknown animal 'cow'; choose one of: cat, dog"):
        animals["cow"]


@pytest.mark.parametrize("name", ["Stone", "fish"])
def test_an_object_of_the_wrong_type_is_refused(animals, module, name):
    with pytest.raises(InputError, match=r"is not a subclass of .*Animal"):
        animals[f"{module}:{name}"]


@pytest.mark.parametrize("path", ["my_animals:Missing", "no_such_module:Fish", ":Fish", "os:"])
def test_an_object_that_cannot_be_imported_is_refused(animals, module, path):
    with pytest.raises(InputError, match=f"animal '{path}' cannot be imported"):
        animals[path]


def test_a_name_cannot_be_registered_twice(animals):
    with pytest.raises(InputError, match="animal name 'cat' is already used"):
        animals.register("cat", Dog)
    assert animals["cat"] is Cat


@pytest.mark.parametrize("name", ["a:b", "a,b", ""])
def test_names_with_separators_are_refused(animals, name):
    with pytest.raises(InputError, match="must not be empty or contain ':' or ','"):
        animals.register(name, Cat)


@pytest.mark.parametrize("item", [int, "cat", Cat()])
def test_only_objects_of_the_right_type_can_be_registered(animals, item):
    with pytest.raises(InputError, match="is not a subclass of"):
        animals.register("new", item)
    assert "new" not in animals


def test_resolve_takes_a_name_or_an_object(animals):
    assert animals.resolve("cat") is Cat
    assert animals.resolve(Dog) is Dog
    with pytest.raises(InputError, match="is not a subclass of"):
        animals.resolve(int)


def test_the_name_of_an_object_finds_the_object_again(animals, module):
    assert animals.name_of(Cat) == "cat"
    fish = animals[f"{module}:Fish"]
    assert animals.name_of(fish) == f"{module}:Fish"
    assert animals[animals.name_of(fish)] is fish
    assert BACKBONES.name_of(GCNBackbone) == "gcn"


def test_names_from_files_import_nothing(animals, module):
    assert animals.known("cat") is Cat
    with pytest.raises(InputError, match=f"import {module} first"):
        animals.known(f"{module}:Fish")
    assert module not in sys.modules
    fish = animals[f"{module}:Fish"]
    assert animals.known(f"{module}:Fish") is fish


EXTENSION = """
    import numpy as np

    from dcgst import GCN, Dataset, synthetic
    from dcgst.nn import GCNBackbone

    class MyMethod(GCN):
        name = "mine"

    class MyBackbone(GCNBackbone):
        pass

    MY_DATASET = Dataset("my-data", lambda: synthetic(90, 3, labels_per_class=2, name="my-data"))

    def first_nodes(request):
        classes = range(request.graph.num_classes)
        nodes = [request.members(c)[: request.per_class] for c in classes]
        return [np.concatenate(nodes) for _ in request.runs]
"""
ENTRY_POINTS = """
    [dcgst.methods]
    mine = my_extension:MyMethod

    [dcgst.backbones]
    my-backbone = my_extension:MyBackbone

    [dcgst.datasets]
    my-data = my_extension:MY_DATASET

    [dcgst.samplers]
    first = my_extension:first_nodes
"""
USE = """
    import sys

    import dcgst
    from dcgst.datasets import DATASETS
    from dcgst.methods import METHODS
    from dcgst.nn import BACKBONES
    from dcgst.splits import SAMPLERS

    assert "mine" in METHODS and "my-backbone" in list(BACKBONES)
    assert "my-data" in list(DATASETS) and "first" in list(SAMPLERS)
    assert "my_extension" not in sys.modules, "names are listed without importing"

    graph = dcgst.load("my-data")
    assert graph.num_nodes == 90
    split = dcgst.sample(graph, "first", per_class=2, runs=1)
    assert split.train[0].nonzero()[0].tolist() == [0, 1, 30, 31, 60, 61]
    mine = dcgst.method("mine", epochs=2, hidden=4, backbone="my-backbone").fit(graph, split)
    assert type(mine).__name__ == "MyMethod"
    assert type(mine.models_[0]).__name__ == "MyBackbone"
    assert mine.models_[0].config()["backbone"] == "my-backbone"
    assert METHODS.name_of(type(mine)) == "mine"
    plain = dcgst.GCN(epochs=2, hidden=4, backbone="my-backbone").fit(graph, split)
    assert plain.proba_.shape == (90, 3)
    try:
        dcgst.method("yours")
    except dcgst.InputError as error:
        assert "mine" in str(error)
    else:
        raise AssertionError("an unknown method was found")
"""


def test_entry_points_of_an_installed_package_are_found_and_work(tmp_path):
    info = tmp_path / "my_extension-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS))
    (tmp_path / "my_extension.py").write_text(textwrap.dedent(EXTENSION))
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(USE)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
