"""Labels from tables: training labels and audits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst import Graph, InputError, Split
from dcgst.tables import Columns, Input, add_labels

EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])


@pytest.fixture
def data() -> Input:
    """Five nodes a … e; a is red, b is blue."""
    graph = Graph.from_edges(
        EDGES, np.eye(5), [1, 0, -1, -1, -1], ids=np.array(list("abcde")),
        class_names=("blue", "red"),
    )  # fmt: skip
    return Input(graph, columns=Columns(id="key", label="color"))


@pytest.fixture
def table(tmp_path):
    def write(name: str, **classes: str):
        path = tmp_path / f"{name}.csv"
        path.write_text("key,color\n" + "".join(f"{k},{v}\n" for k, v in classes.items()))
        return path

    return write


def names_of(graph: Graph) -> list[str]:
    return [graph.class_names[code] if code >= 0 else "" for code in graph.labels]


def test_labels_become_training_labels(data, table):
    found = add_labels(data, [table("one", c="red"), table("two", d="blue", e="")])
    assert names_of(found.graph) == ["red", "blue", "red", "blue", ""]
    assert found.graph.masks == {}
    assert Split.known_labels(found.graph).train.tolist() == [[True] * 4 + [False]]
    assert found.notes == (
        "one.csv: 1 label",
        "two.csv: 1 label, 1 without a class yet",
    )
    assert names_of(data.graph) == ["red", "blue", "", "", ""], "the input is not changed"


def test_nothing_to_add_changes_nothing(data):
    assert add_labels(data) is data


def test_labels_of_an_audit_become_validation_labels(data, table):
    found = add_labels(data, [table("more", c="red")], [table("audit", d="blue", e="red")])
    split = Split.known_labels(found.graph)
    assert split.train.tolist() == [[True, True, True, False, False]]
    assert split.val.tolist() == [[False, False, False, True, True]]
    assert found.notes[-1] == "audit.csv: 2 labels, 2 of them of randomly chosen nodes"


def test_the_column_chosen_marks_an_audit(data, tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("key,color,chosen\nc,red,suggested\nd,blue,random\ne,,random\n")
    found = add_labels(data, [path])
    assert found.graph.masks["train"].tolist() == [True, True, True, False, False]
    assert found.graph.masks["val"].tolist() == [False, False, False, True, False]


def test_an_audit_of_labeled_nodes_is_noted(data, table):
    found = add_labels(data, audit=[table("audit", a="red", d="blue")])
    assert found.graph.masks["val"].tolist() == [True, False, False, True, False]
    assert found.notes[-1].startswith("1 randomly chosen nodes of audit.csv had a label already")
    again = add_labels(found, audit=[table("audit", a="red", d="blue")])
    assert again.notes[-1] == "audit.csv: 2 labels, 2 of them of randomly chosen nodes"


def test_validation_nodes_that_are_not_random_are_no_audit(data, table):
    masks = {"train": np.array([1, 0, 0, 0, 0], bool), "val": np.array([0, 1, 0, 0, 0], bool)}
    with_masks = replace(data, graph=replace(data.graph, masks=masks))
    found = add_labels(with_masks, audit=[table("audit", d="blue")])
    assert found.graph.masks["train"].tolist() == [True, True, False, False, False]
    assert found.graph.masks["val"].tolist() == [False, False, False, True, False]
    kept = add_labels(with_masks, [table("more", d="blue")])
    assert kept.graph.masks["val"].tolist() == masks["val"].tolist()
    assert not kept.audited


def test_an_earlier_audit_stays_validation(data, table):
    first = add_labels(data, audit=[table("audit", d="blue")])
    second = add_labels(first, [table("more", c="red", d="red")])
    split = Split.known_labels(second.graph)
    assert (split.train[0].tolist(), split.val[0].tolist()) == (
        [True, True, True, False, False],
        [False, False, False, True, False],
    )
    assert second.notes[-1] == "more.csv: 2 labels; 1 replace another class (d: blue → red)"


def test_the_last_label_of_a_node_counts(data, table):
    found = add_labels(data, [table("one", a="blue", b="blue"), table("two", a="red")])
    assert names_of(found.graph)[:2] == ["red", "blue"]
    assert found.notes == (
        "one.csv: 2 labels; 1 replace another class (a: red → blue)",
        "two.csv: 1 label; 1 replace another class (a: blue → red)",
    )


def test_new_classes_are_added_in_natural_order(data, table):
    found = add_labels(data, [table("one", c="green", d="9", e="10")])
    assert found.graph.class_names == ("9", "10", "blue", "green", "red")
    assert names_of(found.graph) == ["red", "blue", "green", "9", "10"]


def test_new_classes_are_noted_and_other_letter_case_is_refused(data, table):
    found = add_labels(data, [table("one", c="blu", d="green")])
    assert found.notes[:2] == (
        "Warning: one.csv, line 2: 'blu' is a new class; did you mean 'blue'? If so, fix it and "
        "fit again",
        "one.csv, line 3: 'green' is a new class",
    )
    with pytest.raises(InputError, match=r"two\.csv, line 2: the class 'BLUE' differs from 'blue'"):
        add_labels(data, [table("two", c="BLUE")])
    with pytest.raises(InputError, match=r"three\.csv, line 3: the class 'foo' differs from 'Foo'"):
        add_labels(data, [table("three", c="Foo", d="foo")])


def test_a_misspelled_class_disappears_when_it_is_corrected(data, table):
    wrong = add_labels(data, [table("one", c="blu", d="green")])
    assert wrong.graph.class_names == ("blu", "blue", "green", "red")
    right = add_labels(wrong, [table("two", c="blue")])
    assert right.graph.class_names == ("blue", "green", "red")
    assert names_of(right.graph)[2:4] == ["blue", "green"]
    back = add_labels(data, [table("three", a="blue"), table("four", a="red")])
    assert back.graph.class_names == data.graph.class_names


def test_an_audit_alone_is_nothing_to_train_on(data, table):
    with pytest.raises(InputError, match="give some of them with labels instead of audit"):
        add_labels(data, audit=[table("one", a="red", b="blue", c="red")])


def test_a_table_that_is_not_filled_in_raises(data, table):
    with pytest.raises(InputError, match=r"one\.csv has no class yet"):
        add_labels(data, audit=[table("one", c="")])


def test_the_order_of_known_classes_is_kept(data, table):
    graph = replace(data.graph, class_names=("z", "a"))
    found = add_labels(replace(data, graph=graph), [table("one", c="z")])
    assert found.graph.class_names == ("z", "a")


def test_truth_outside_the_masks_is_no_conflict(data, table):
    graph = replace(data.graph.with_labels([1, 0, 0, 0, 1]), masks={"train": np.arange(5) < 2})
    found = add_labels(replace(data, graph=graph), [table("one", c="red")])
    assert found.graph.masks["train"].tolist() == [True, True, True, False, False]
    assert found.notes == ("one.csv: 1 label",)


def test_an_unknown_id_names_file_and_line(data, table):
    with pytest.raises(InputError, match=r"one\.csv, line 3: no node of the graph has the id 'x'"):
        add_labels(data, [table("one", c="red", x="red")])
