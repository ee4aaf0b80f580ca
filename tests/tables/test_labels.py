"""Tables of node ids and classes."""

from __future__ import annotations

import pytest

from dcgst.errors import InputError
from dcgst.tables import Columns, read_label_table


@pytest.fixture
def table(tmp_path):
    def write(text: str):
        path = tmp_path / "truth.csv"
        path.write_text(text)
        return path

    return write


def test_rows_without_class_are_skipped_and_repeated_ones_are_one(table):
    found = read_label_table(table("id,note,label\na,1,red\nb,2,\nc,,blue\na,3,red\n,,NA\n"))
    assert found.classes == {"a": "red", "c": "blue"}
    assert found.rows == {"a": "line 2", "c": "line 4"}
    assert found.blank == 2


def test_columns_are_given_or_hinted_or_guessed(table):
    path = table("key,person,class,kind\n1,p1,x,u\n")
    assert read_label_table(path).classes == {"1": "x"}
    hints = Columns(id="person", label="kind")
    assert read_label_table(path, hints=hints).classes == {"p1": "u"}
    other = Columns(id="nobody", label="nothing")
    assert read_label_table(path, hints=other).classes == {"1": "x"}
    found = read_label_table(path, id_column="person", label_column="class", hints=hints)
    assert found.classes == {"p1": "x"}


def test_a_given_column_must_exist(table):
    path = table("id,label\na,x\n")
    with pytest.raises(InputError, match=r"no column 'kind'"):
        read_label_table(path, label_column="kind")
    with pytest.raises(InputError, match="cannot be both the id and the label column"):
        read_label_table(path, label_column="id")


def test_a_column_that_cannot_be_guessed_names_the_option(table):
    with pytest.raises(InputError, match=r"name it with id; the columns are: a, label"):
        read_label_table(table("a,label\n1,x\n"))
    with pytest.raises(InputError, match=r"name it with label; the columns are: id, b, c"):
        read_label_table(table("id,b,c\n1,x,y\n"))


def test_of_two_columns_one_is_the_label(table):
    assert read_label_table(table("id,b\n1,x\n")).classes == {"1": "x"}


def test_two_classes_of_one_node_raise(table):
    with pytest.raises(InputError, match=r"line 4: the node 'a' has the class 'blue', but 'red'"):
        read_label_table(table("id,label\na,red\nb,red\na,blue\n"))


def test_a_class_without_id_raises(table):
    with pytest.raises(InputError, match=r"line 3: the id in column 'id' is missing"):
        read_label_table(table("id,label\na,red\n,blue\n"))
