"""Folders without data, and a server for downloads."""

from __future__ import annotations

import socket
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A machine without data: the cache is ``tmp_path / "cache"``."""
    monkeypatch.delenv("DCGST_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


@pytest.fixture
def own_data(no_data, monkeypatch):
    """A machine where ``DCGST_DATA`` is an empty folder."""
    folder = no_data / "own"
    folder.mkdir()
    monkeypatch.setenv("DCGST_DATA", str(folder))
    return folder


@pytest.fixture
def closed_url() -> str:
    """An address at which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


class Server:
    """A real HTTP server for a folder; ``requests`` lists the paths that were requested."""

    def __init__(self, folder) -> None:
        self.folder, self.requests = folder, []
        server = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=folder)

            def do_GET(self):
                server.requests.append(self.path)
                super().do_GET()

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    running = Server(folder)
    thread = threading.Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.http.shutdown()
    thread.join()
    running.http.server_close()
