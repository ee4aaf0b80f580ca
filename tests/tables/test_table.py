"""CSV files become tables of text with the right line numbers."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest

from dcgst.errors import InputError
from dcgst.tables.table import Table, clean_cell, read_table


@pytest.fixture
def read_csv(tmp_path):
    """Return a function that writes a CSV file and reads it as a table."""

    def read(content: str | bytes, **options) -> Table:
        path = tmp_path / "nodes.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return read


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_each_delimiter_is_guessed(read_csv, delimiter):
    table = read_csv("id,size,label\na,1,x\nb,2,y\n".replace(",", delimiter))
    assert table.columns == {"id": ["a", "b"], "size": ["1", "2"], "label": ["x", "y"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_most_frequent_delimiter_of_the_header_is_used(read_csv, delimiter):
    others = "".join(mark for mark in ",;\t| " if mark != delimiter)
    table = read_csv(delimiter.join(["id", f"x{others}y", "z"]) + "\n" + delimiter.join("abc"))
    assert table.names == ["id", f"x{others}y", "z"]


def test_a_space_is_the_delimiter_only_if_there_is_no_other(read_csv):
    assert read_csv("id;first name of person\na;b\n").names == ["id", "first name of person"]
    with pytest.raises(InputError, match="has a single column, 'id', with the comma"):
        read_csv("id \na \n")


def test_the_delimiter_is_guessed_after_blank_lines(read_csv):
    assert read_csv("\n  \nid;size\na;1\n").names == ["id", "size"]


def test_rows_do_not_influence_the_guess_of_the_delimiter(read_csv):
    assert read_csv("id;text\na;one, two, three, four\n").column("text") == [
        "one, two, three, four"
    ]


def test_a_given_delimiter_is_used(read_csv):
    assert read_csv("a,b;c\n1,2;3\n", delimiter=";").columns == {"a,b": ["1,2"], "c": ["3"]}
    for tab in ("tab", "\\t", "\t"):
        assert read_csv("a,b\tc\n1,2\t3\n", delimiter=tab).columns == {"a,b": ["1,2"], "c": ["3"]}
    with pytest.raises(InputError, match="one character or 'tab', got 'comma'"):
        read_csv("a,b\n", delimiter="comma")


def test_a_byte_order_mark_is_removed(read_csv):
    assert read_csv(b"\xef\xbb\xbfid,size\na,1\n").names == ["id", "size"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8_is_reported_with_line_and_byte(read_csv, mark):
    with pytest.raises(InputError, match=r"nodes.csv, line 3 is not valid UTF-8 \(byte 0xe4\)"):
        read_csv(mark + b"id,label\na,x\n\xe4,y\n")


def test_blank_lines_at_the_start_count(read_csv):
    with pytest.raises(InputError, match=r"line 3 is not valid UTF-8"):
        read_csv(b"\n\n\xe4,label\na,x\n")
    with pytest.raises(InputError, match=r"a byte of value zero in line 3"):
        read_csv(b"\n\nid\x00,label\na,x\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_numbers_count_blank_lines_and_lines_in_quotes(read_csv, newline):
    text = '\nid,about\n\na,"one\ntwo\nthree"\nb,x\n , \n\nc,"four\n"\nd,y\n'
    table = read_csv(text.replace("\n", newline))
    assert table.header_line == 2
    assert table.column("id") == ["a", "b", "c", "d"]
    assert table.lines == [4, 7, 10, 12]
    assert table.where(3).endswith("nodes.csv, line 12")


def test_errors_after_quoted_lines_and_blank_lines_name_the_right_line(read_csv):
    start = 'id,about\n\na,"one\ntwo"\n'
    with pytest.raises(InputError, match=r"line 5 has 3 values, but the header has 2 columns"):
        read_csv(start + "b,x,y\n")
    with pytest.raises(InputError, match=r"line 5 cannot be parsed: .*; check the quotes"):
        read_csv(start + '"b,x\n')
    with pytest.raises(InputError, match=r"line 5: column 'about' must contain numbers, got 'x'"):
        read_csv('id,about\n\na,"\n1"\nb,x\n').numbers("about")


def test_the_first_line_is_line_1(read_csv):
    table = read_csv("id,size\na,1\nb,2\n")
    assert table.header_line == 1
    assert table.lines == [2, 3]


def test_spaces_around_column_names_are_removed(read_csv):
    assert read_csv(" id , first name\na,b\n").names == ["id", "first name"]


def test_cells_can_be_long(read_csv):
    text = 200_000 * "x"  # the default limit of the csv module is 131,072
    assert read_csv(f"id,text\na,{text}\n").column("text") == [text]


def test_the_limit_of_a_cell_is_valid_on_all_systems(read_csv):
    """Windows accepts at most the largest 32-bit integer."""
    read_csv("id,text\na,b\n")
    assert csv.field_size_limit() == 2_147_483_647


def test_quotes_are_removed(read_csv):
    table = read_csv('id,about\na,"one, two"\nb,"say ""hi"""\n')
    assert table.column("about") == ["one, two", 'say "hi"']


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "NA",
        "na",
        "Na",
        "N/A",
        "n/a",
        "NaN",
        "nan",
        "NULL",
        "null",
        "None",
        "NONE",
        " NA ",
    ],
)
def test_missing_values_are_recognized_in_any_letter_case(read_csv, text):
    assert clean_cell(text) == ""
    assert read_csv(f"id,size\na,{text}\nb,1\n").column("size") == ["", "1"]


@pytest.mark.parametrize("text", ["0", "-", "nancy", "n.a.", "nothing", "?", "nil"])
def test_other_values_are_not_missing(text):
    assert clean_cell(f" {text} ") == text


def test_numbers_are_parsed_and_missing_values_are_nan(read_csv):
    numbers = read_csv("id,size\na,-1.5\nb,NA\nc,1e3\nd,1e30\n").numbers("size")
    np.testing.assert_array_equal(numbers, [-1.5, np.nan, 1000, 1e30])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,5", "got '1,5'; write a decimal point instead of a decimal comma"),
        ("-12,25", "write a decimal point instead of a decimal comma"),
        ("1,234.5", "got '1,234.5'; fix the value"),
        ("red", "got 'red'; fix the value"),
        ("inf", "contain finite numbers of magnitude at most 1e.30, got 'inf'"),
        ("-1e300", "contain finite numbers of magnitude at most 1e.30, got '-1e300'"),
    ],
)
def test_values_that_are_not_finite_numbers_are_errors(read_csv, text, message):
    table = read_csv(f"id;size\na;1\nb;{text}\n")
    with pytest.raises(InputError, match=f"nodes.csv, line 3: column 'size' must .*{message}"):
        table.numbers("size")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "nodes.csv is empty; a header and at least one row are required"),
        ("  \n \n", "nodes.csv is empty"),
        (",,\n,,\n", "nodes.csv is empty"),
        ("id,label\n", "has a header but no rows"),
        ("id:label\na:x\n", "has a single column, 'id:label', with the comma as delimiter"),
        (",\n", "nodes.csv is empty"),
        ("id,id\na,x\n", "more than one column named 'id'; rename one"),
        ("id,b,a,b,a\n1,2,3,4,5\n", "more than one column named 'a'"),
    ],
)
def test_invalid_files_are_errors(read_csv, content, message):
    with pytest.raises(InputError, match=message):
        read_csv(content)


@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", "comma"), (";", "semicolon"), ("tab", "tab"), ("|", "vertical bar"), (" ", "space")],
)
def test_an_error_for_a_single_column_names_the_delimiter(read_csv, delimiter, name):
    with pytest.raises(InputError, match=f"with the {name} as delimiter; .* delimiter"):
        read_csv("id:label\na:x\n", delimiter=delimiter)


def test_columns_without_a_name_are_numbered(read_csv):
    assert read_csv("id,,label,\na,1,x,2\n").names == ["id", "column 2", "label", "column 4"]


def test_a_repeated_value_in_an_optional_header_makes_it_a_row(read_csv):
    table = read_csv("\n1,1\n2,3\n", header_required=False)
    assert table.columns == {"column 1": ["1", "2"], "column 2": ["1", "3"]}
    assert table.lines == [2, 3]
    assert read_csv("1,2\n2,3\n", header_required=False).names == ["1", "2"]


def test_an_unknown_column_is_an_error_that_lists_the_columns(read_csv):
    with pytest.raises(InputError, match=r"nodes.csv has no column 'sise'.*id, size"):
        read_csv("id,size\na,1\n").column("sise")


def test_checking_the_header_takes_linear_time(read_csv):
    names = ",".join(f"c{number}" for number in range(60_000))
    start = time.process_time()
    assert len(read_csv(f"{names}\n{names}\n").names) == 60_000
    assert time.process_time() - start < 10, "a quadratic check takes 44 s"


def test_unreadable_files_are_errors(tmp_path):
    with pytest.raises(InputError, match=r"none.csv does not exist; check the path"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder; a file is required"):
        read_table(tmp_path)


@pytest.mark.parametrize("name", ["nodes.parquet", "nodes.pq", "NODES.PARQUET"])
def test_parquet_values_become_text(tmp_path, name):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    columns = {
        "id": ["007", "8"],
        "size": [31.0, None],
        "rate": [0.5, float("nan")],
        "count": [3, 4],
        "city": ["None", " Rome "],
    }
    parquet.write_table(arrow.table(columns), path)
    table = read_table(path)
    assert table.columns == {
        "id": ["007", "8"],
        "size": ["31", ""],
        "rate": ["0.5", ""],
        "count": ["3", "4"],
        "city": ["", "Rome"],
    }
    assert table.where(1) == f"{path}, row 2"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"]}, "has 1 columns; at least two are required"),
        ({"id": [], "size": []}, "has no rows"),
        ({"id": ["a"], "size": [{"x": 1}]}, "column 'size' of .* contains values of type dict"),
    ],
)
def test_invalid_parquet_files_are_errors(tmp_path, columns, message):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), tmp_path / "nodes.parquet")
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "nodes.parquet")


def test_a_file_of_another_format_is_not_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "nodes.parquet").write_bytes(b"id,size\na,1\n")
    with pytest.raises(InputError, match=r"nodes.parquet is not a valid Parquet file"):
        read_table(tmp_path / "nodes.parquet")


def test_columns_with_several_values_in_a_cell_are_errors(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kind = arrow.map_(arrow.string(), arrow.int64())
    column = arrow.array([[("k", 1)], []], type=kind)
    path = tmp_path / "n.parquet"
    parquet.write_table(arrow.table({"id": ["a", "b"], "m": column}), path)
    with pytest.raises(InputError, match=r"column 'm' of .* has type map<"):
        read_table(path)
