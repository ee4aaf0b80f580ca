"""Files of datasets: search order, downloads from a real server, and errors."""

from __future__ import annotations

import gc
import hashlib
from dataclasses import dataclass, replace

import pytest

from dcgst.datasets import DATASETS, load, planetoid
from dcgst.datasets import source as files
from dcgst.datasets.source import Source, find, locate
from dcgst.errors import InputError

CONTENT = b"the expected content" * 1000


pytestmark = pytest.mark.filterwarnings("ignore:.*is not the published file")


@dataclass(frozen=True)
class KnownSource(Source):
    """A source of one file with known content."""

    def checksum(self, name: str) -> str | None:
        return hashlib.sha256(CONTENT).hexdigest() if name == "file" else None


@pytest.fixture
def source(server):
    return KnownSource("things", "somewhere", server.url)


def stored(folder):
    """All files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_download_is_stored_in_the_cache_and_not_repeated(no_data, server, source):
    (server.folder / "file").write_bytes(CONTENT)
    assert find(source, "file") is None
    path = locate(source, "file")
    assert path == no_data / "cache" / "dcgst" / "things" / "file"
    assert path.read_bytes() == CONTENT
    assert server.requests == ["/file"]
    assert locate(source, "file") == find(source, "file") == path
    assert server.requests == ["/file"]


def test_a_file_in_the_users_folder_is_not_downloaded(own_data, server, source):
    (server.folder / "file").write_bytes(CONTENT)
    (own_data / "things").mkdir()
    (own_data / "things" / "file").write_bytes(b"the user's own")
    assert locate(source, "file").read_bytes() == b"the user's own"
    assert server.requests == []


def test_downloads_go_to_the_cache_and_not_to_the_users_folder(own_data, no_data, server, source):
    (server.folder / "file").write_bytes(CONTENT)
    assert locate(source, "file").is_relative_to(no_data / "cache")
    assert stored(own_data) == []


def test_a_wrong_checksum_is_an_error_and_nothing_is_stored(no_data, server, source):
    (server.folder / "file").write_bytes(b"something else")
    with pytest.raises(InputError, match="is not the expected file") as caught:
        locate(source, "file")
    assert f"{server.url}/file" in str(caught.value)
    assert server.requests == ["/file"]
    assert stored(no_data / "cache") == []
    (server.folder / "file").write_bytes(CONTENT)  # later, the right file can be downloaded
    assert locate(source, "file").read_bytes() == CONTENT


def failed_download(source) -> str:
    """The error message; frees the response, which keeps its connection open."""
    with pytest.raises(InputError, match=r"things/file is missing and .* cannot be reached") as e:
        locate(source, "file")
    message = str(e.value)
    del e
    gc.collect()
    return message


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # pooch does not close a failed response
@pytest.mark.parametrize("problem", ["missing file", "no server"])
def test_a_failed_download_names_the_paths_for_the_file(
    own_data, no_data, source, closed_url, problem
):
    if problem == "no server":
        source = replace(source, url=closed_url)
    message = failed_download(source)
    for folder in (own_data, no_data / "cache" / "dcgst"):
        assert str(folder / "things" / "file") in message
    assert stored(no_data / "cache") == []


def test_a_file_without_checksum_is_not_downloaded(no_data, server, source):
    (server.folder / "other").write_bytes(b"anything")
    with pytest.raises(InputError, match="things/other is missing; get it from somewhere"):
        locate(source, "other")
    assert server.requests == []


def test_the_users_folder_is_searched_before_the_cache(no_data, monkeypatch):
    for place in ("own", "cache/dcgst"):
        (no_data / place / "things").mkdir(parents=True)
        (no_data / place / "things" / "f").write_text(place)
    source = Source("things", "somewhere")
    assert locate(source, "f").read_text() == "cache/dcgst"
    monkeypatch.setenv("DCGST_DATA", str(no_data / "own"))
    assert locate(source, "f").read_text() == "own"


def test_the_cache_is_in_the_home_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / ".cache" / "dcgst"


def test_checksums_of_downloadable_files_are_known():
    for name in planetoid.CLASS_NAMES:
        for part in planetoid.PARTS:
            assert len(planetoid.SOURCE.checksum(f"ind.{name}.{part}")) == 64
    for name, rates in planetoid.WHOLE.items():
        for rate in rates:
            assert len(planetoid.SEEDS.checksum(f"{name}_{rate}.p")) == 64
    assert planetoid.SOURCE.checksum("ind.cora.other") is None


@pytest.mark.parametrize("name", [n for n in DATASETS if n not in ("digits", "synthetic")])
def test_loading_without_files_or_network_says_what_to_put_where(
    name, no_data, closed_url, monkeypatch
):
    monkeypatch.setattr(planetoid, "SOURCE", replace(planetoid.SOURCE, url=closed_url))
    with pytest.raises(InputError, match=r"is missing.*put") as caught:
        load(name)
    assert str(no_data / "cache" / "dcgst") in str(caught.value)
