"""The server: token, same origin, no path to files, clear errors."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from dcgst.label.server import _redirection_to
from tests.cli.helpers import dcgst
from tests.label.conftest import label_server


@pytest.fixture(scope="module")
def server(stored, tmp_path_factory):
    out = tmp_path_factory.mktemp("served") / "labels.csv"
    with label_server(stored, "-o", str(out)) as (address, _):
        yield address


def ask(server, path, body=None, *, token=True, **headers):
    """Status, headers and content of a request."""
    parts = urlsplit(server)
    own = {"x-dcgst-token": parts.query.removeprefix("token=")} if token else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{parts.netloc}{path}", data, {**own, **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def test_the_page_itself_contains_no_data_and_needs_no_token(server):
    assert urlsplit(server).hostname == "127.0.0.1"
    status, _, content = ask(server, "/", token=False)
    assert status == 200
    assert b"n001" not in content


@pytest.mark.parametrize("path", ["/api/points", "/api/labels.csv"])
def test_data_need_the_token(server, path):
    assert ask(server, path)[0] == 200
    assert ask(server, path, token=False)[0] == 403


def test_requests_of_other_origins_and_hosts_are_refused(server):
    assert ask(server, "/api/overview", {})[0] == 200
    assert ask(server, "/api/overview", {}, token=False)[0] == 403
    assert ask(server, "/api/overview", {}, Origin="https://example.org")[0] == 403
    assert ask(server, "/api/overview", {}, Host="example.org")[0] == 403
    assert ask(server, "/api/overview", {}, Origin=f"http://{urlsplit(server).netloc}")[0] == 200


def test_answers_have_a_strict_content_security_policy(server):
    _, headers, _ = ask(server, f"/?{urlsplit(server).query}")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


OTHER_FILES = ("/app.js/../../server.py", "/..%2f..%2fserver.py", "/run.json", "//etc/passwd")


@pytest.mark.parametrize("path", OTHER_FILES)
def test_no_other_file_can_be_read(server, path):
    assert ask(server, path)[0] in (404, 405)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("decide", {"nodes": [1], "kind": "paint"}, "unknown kind of decision"),
        ("decide", {"nodes": ["1"], "kind": "skip"}, "nodes must be a list of positions"),
        ("decide", {"nodes": [True], "kind": "skip"}, "nodes must be a list of positions"),
        ("decide", {"nodes": [10**9], "kind": "skip"}, "at least one node of the graph"),
        ("decide", {"nodes": [1], "kind": "label", "name": 7}, "name must be a text"),
        ("card", {"node": "1"}, "node must be a whole number"),
        ("card", {"node": -1}, "there is no node at position -1"),
        ("overview", [], "a JSON object is required"),
    ],
)
def test_bad_requests_get_an_error(server, name, body, message):
    if isinstance(body, dict):
        body = {"client": "t", **body}
    status, _, content = ask(server, f"/api/{name}", body)
    assert status == 400
    assert message in json.loads(content)["error"]


def test_unknown_addresses_and_broken_json_get_an_error(server):
    assert ask(server, "/api/nothing", {})[0] == 404
    parts = urlsplit(server)
    request = urllib.request.Request(
        f"http://{parts.netloc}/api/card", b"{", {"x-dcgst-token": parts.query[6:]}
    )
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(request, timeout=20)
    refused.value.close()


def test_a_second_server_on_the_same_labels_is_refused(stored, tmp_path):
    out = tmp_path / "labels.csv"
    with label_server(stored, "-o", str(out)):
        done = dcgst("label", stored, "--no-browser", "-o", out)
    assert done.code == 2
    assert "another dcgst label is writing" in done.err


def test_a_table_of_someone_else_is_not_replaced(stored, tmp_path):
    out = tmp_path / "audit.csv"
    out.write_text("id,kind\nn001,a\n")
    done = dcgst("label", stored, "--no-browser", "-o", out)
    assert done.code == 2
    assert "exists and is not of dcgst label" in done.err
    assert out.read_text() == "id,kind\nn001,a\n"


def test_at_the_end_labels_are_a_table_for_refit(folder, tmp_path):
    with label_server(folder) as (address, _):
        for node in (20, 50, 90):
            body = {"client": "tab", "kind": "label", "nodes": [node], "name": "b"}
            assert ask(address, "/api/decide", body)[0] == 200
    exported = folder.with_name("run-labels.csv")
    assert exported.read_text().count("\n") == 4
    done = dcgst("refit", folder, "--labels", exported, "-o", tmp_path / "second", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["given"] == 15


def send(server, content: bytes, *, chunked=False, **headers):
    """Status and content of a request with any content, for the overview."""
    parts = urlsplit(server)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    own = {"x-dcgst-token": parts.query.removeprefix("token="), **headers}
    try:
        body = iter([content]) if chunked else content
        connection.request("POST", "/api/overview", body, own, encode_chunked=chunked)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_requests_of_any_length_and_depth_are_answered(server):
    large = b"{" + b" " * 5_100_000 + b"}"
    assert send(server, large)[0] == 413
    assert send(server, large, chunked=True, **{"transfer-encoding": "chunked"})[0] == 413
    status, content = send(server, b"[" * 200_000)
    assert (status, b"Traceback" in content) == (400, False)
    assert send(server, b"\xff\xfe{}")[0] == 400
    assert send(server, b"{}")[0] == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client": ""}, "client must be a text of 1 to 100 characters"),
        ({"client": "x" * 101}, "client must be a text of 1 to 100 characters"),
        ({"name": "\ud800"}, "name is not valid Unicode"),
    ],
)
def test_invalid_texts_are_refused_before_anything_is_stored(server, change, message):
    before = json.loads(ask(server, "/api/overview", {})[2])
    body = {"client": "t", "kind": "label", "nodes": [1], "name": "a", "chosen": "selected"}
    status, _, content = ask(server, "/api/decide", {**body, **change})
    assert (status, message in json.loads(content)["error"]) == (400, True)
    assert json.loads(ask(server, "/api/overview", {})[2]) == before


def test_the_token_is_in_a_file_of_this_user_only(tmp_path):
    with _redirection_to("http://127.0.0.1:1/?token=secret", tmp_path) as page:
        assert "url=http://127.0.0.1:1/?token=secret" in page.read_text()
        assert "secret" not in page.as_uri()
        assert page.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []
