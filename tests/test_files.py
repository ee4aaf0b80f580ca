"""Atomic writing: a file has its old content or its new content, never a part of it."""

from __future__ import annotations

import csv
import io
import os

import pytest

from dcgst.errors import InputError
from dcgst.files import columns_to_csv, replacing, rows_to_csv, write_bytes, write_rows, write_text


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_written_and_nothing_else(tmp_path):
    write_bytes(tmp_path / "bytes", b"\x00\xff")
    write_text(tmp_path / "text", "ä")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    assert (tmp_path / "text").read_bytes() == "ä".encode()
    assert names(tmp_path) == ["bytes", "text"]


def test_until_the_block_ends_the_target_has_its_old_content(target):
    with replacing(target) as temporary:
        temporary.write_text("first half")
        assert target.read_text() == "old"
        assert temporary.parent == target.parent  # the same file system: replacing is atomic
    assert target.read_text() == "first half"
    assert names(target.parent) == ["file"]


def test_a_new_file_does_not_exist_until_the_block_ends(tmp_path):
    with replacing(tmp_path / "new") as temporary:
        temporary.write_text("content")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new").read_text() == "content"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_if_the_block_fails_the_old_content_stays(target, error):
    def write_half():
        with replacing(target) as temporary:
            temporary.write_text("first half")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_text() == "old"
    assert names(target.parent) == ["file"]


def test_if_replacing_fails_the_old_content_stays(target, monkeypatch):
    def fail(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="file cannot be written: No space left on device"):
        write_bytes(target, b"new")
    assert target.read_text() == "old"
    assert names(target.parent) == ["file"]


def test_the_content_is_on_the_disk_before_it_replaces_the_target(target, monkeypatch):
    steps = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *paths: (steps.append("replace"), replace(*paths)))
    write_bytes(target, b"new")
    assert steps == ["sync", "replace"]


def test_the_folder_is_created(tmp_path):
    write_text(tmp_path / "a" / "b" / "file", "content")
    assert (tmp_path / "a" / "b" / "file").read_text() == "content"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "file", "content")
        assert os.umask(umask) == umask  # not changed
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_path_that_is_a_folder_is_an_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="folder cannot be written"):
        write_text(folder, "content")
    assert names(tmp_path) == ["folder"]


def test_a_path_below_a_file_is_an_error(target):
    with pytest.raises(InputError, match="file/below cannot be written"):
        write_text(target / "below", "content")
    assert target.read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=f"{tmp_path}/file cannot be written: Permission"):
            write_text(tmp_path / "file", "content")
    finally:
        tmp_path.chmod(0o700)


def test_csv_has_one_column_per_key_in_order_of_first_appearance():
    rows = [{"id": 1, "class": "x"}, {"note": "new", "id": 2}]
    assert rows_to_csv(rows) == "id,class,note\n1,x,\n2,,new\n"


@pytest.mark.parametrize("text", ["1, 2", 'say "no"', "two\nlines", "", "ä;b"])
def test_csv_values_are_quoted_so_that_they_can_be_read_again(text, tmp_path):
    rows = [{"a, b": text, "c": "plain"}]
    assert list(csv.DictReader(io.StringIO(rows_to_csv(rows)))) == rows
    write_rows(tmp_path / "table.csv", rows)
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == rows


def test_names_of_columns_are_escaped_for_spreadsheets():
    assert columns_to_csv({"=x": [1]}, spreadsheet=True) == "'=x\n1\n"
    assert columns_to_csv({"=x": [1]}) == "=x\n1\n"
