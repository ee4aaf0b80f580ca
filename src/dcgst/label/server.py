"""The web server of the labeling page: bound to this machine, with a secret token."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dcgst.errors import InputError, WriteError, option
from dcgst.files import rows_to_csv
from dcgst.label.journal import DECISIONS
from dcgst.label.session import Session

HOST = "127.0.0.1"
TOKEN = "x-dcgst-token"
"""Header with the token."""

MOST_BYTES = 5_000_000
"""Largest request."""

LONGEST_CLIENT = 100

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript"),
    "/app.css": ("app.css", "text/css"),
    "/licenses.txt": ("licenses.txt", "text/plain; charset=utf-8"),
}
"""Address, file and type of the parts of the page."""

SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Answer = Callable[[Session, dict[str, Any]], Any]


def overview(session: Session, _: dict[str, Any]) -> Any:
    return session.overview()


def next_card(session: Session, body: dict[str, Any]) -> Any:
    resume = bool(body.get("resume"))
    return session.next_card(_client(body), _text(body, "mode"), resume=resume)


def card(session: Session, body: dict[str, Any]) -> Any:
    return session.card(_client(body), _number(body, "node"))


def search(session: Session, body: dict[str, Any]) -> Any:
    return session.search(_text(body, "text"))


def decide(session: Session, body: dict[str, Any]) -> Any:
    nodes = body.get("nodes")
    if not isinstance(nodes, list) or not all(type(node) is int for node in nodes):
        raise InputError("nodes must be a list of positions")
    kind = _text(body, "kind")
    if kind not in DECISIONS:
        raise InputError(f"unknown kind of decision {kind!r}")
    client = _client(body)
    session.decide(client, kind, nodes, _text(body, "name"), _text(body, "chosen"))
    card = session.next_card(client, _text(body, "mode"))
    return {"card": card, "overview": session.overview()}


def undo(session: Session, body: dict[str, Any]) -> Any:
    found = session.undo(_client(body), again=bool(body.get("again")))
    return {**found, "overview": session.overview()}


def refit(session: Session, _: dict[str, Any]) -> Any:
    session.start_refit()
    return session.overview()


ANSWERS: dict[str, Answer] = {
    "overview": overview,
    "next": next_card,
    "card": card,
    "search": search,
    "decide": decide,
    "undo": undo,
    "refit": refit,
}
"""Functions by the name in their path; every one takes and returns JSON."""


def create_app(session: Session, token: str, port: int) -> Starlette:
    """The application; only requests with the token from a page of this server are answered."""
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    def allowed(request: Request) -> bool:
        given = request.headers.get(TOKEN, "")
        origin = request.headers.get("origin")
        return (
            request.headers.get("host") in hosts
            and (origin is None or origin.removeprefix("http://") in hosts)
            and hmac.compare_digest(given.encode(), token.encode())
        )

    async def static(request: Request) -> Response:
        """Files without data; the token in the address is for the script of the page."""
        name, kind = FILES[request.url.path]
        return Response(_file(name), media_type=kind, headers=SECURITY)

    async def api(request: Request) -> Response:
        if not allowed(request):
            return _error("the token is missing or wrong; open the address printed by dcgst", 403)
        answer = ANSWERS.get(request.path_params["name"])
        if answer is None:
            return _error("unknown address", 404)
        content = bytearray()
        async for part in request.stream():  # whatever length its header claims
            content += part
            if len(content) > MOST_BYTES:
                return _error("the request is too large", 413)
        try:
            body = _object(bytes(content))
            return JSONResponse(await run_in_threadpool(answer, session, body), headers=SECURITY)
        except WriteError as error:
            return _error(str(error), 507)
        except (InputError, ValueError) as error:
            return _error(str(error), 400)

    async def points(request: Request) -> Response:
        if not allowed(request):
            return _error("the token is missing or wrong", 403)
        content = await run_in_threadpool(session.points)
        return Response(content, media_type="application/octet-stream", headers=SECURITY)

    async def export(request: Request) -> Response:
        if not allowed(request):
            return _error("the token is missing or wrong", 403)
        rows = await run_in_threadpool(session.label_rows)
        return Response(rows_to_csv(rows), media_type="text/csv", headers=SECURITY)

    pages: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/api/points": points,
        "/api/labels.csv": export,
        **dict.fromkeys(FILES, static),
    }
    routes = [Route(path, page) for path, page in pages.items()]
    return Starlette(routes=[*routes, Route("/api/{name}", api, methods=["POST"])])


def serve(
    session: Session,
    *,
    port: int = 0,
    browser: bool = True,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until interrupted.

    Args:
        session: the session.
        port: port to listen on; 0 for any free one.
        browser: open the page in a browser.
        ready: called with the address when the page can be opened.
    """
    import uvicorn

    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} is in use; choose another with {option('port')}"
            ) from error
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{port}/?token={token}"
        threading.Thread(target=session.prepare, daemon=True).start()
        config = uvicorn.Config(
            create_app(session, token, port), log_level="error", access_log=False, lifespan="off"
        )
        listener.listen(64)
        ready(address)
        with _redirection_to(address, session.export.absolute().parent) as page:
            if browser:
                webbrowser.open(page.as_uri())
            _server(config).run(sockets=[listener])


@contextlib.contextmanager
def _redirection_to(address: str, folder: Path) -> Iterator[Path]:
    """A page that only this user can read and that leads to the address.

    Its path may be seen in the list of processes, the token in the address not. It is in the folder
    of the labels, because some browsers cannot read temporary folders.
    """
    handle, name = tempfile.mkstemp(".html", "dcgst-label-", folder)  # of mode 0600
    page = Path(name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f'<meta http-equiv="refresh" content="0; url={address}">')
        yield page
    finally:
        page.unlink(missing_ok=True)


def _server(config: Any) -> Any:
    """A server that ends at SIGINT and SIGTERM and then returns, so that labels are exported."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            names = (signal.SIGINT, signal.SIGTERM)
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {name: signal.signal(name, self.handle_exit) for name in names}
            try:
                yield
            finally:
                for name, handler in before.items():
                    signal.signal(name, handler)

    return Server(config)


def _file(name: str) -> bytes:
    return resources.files("dcgst.label").joinpath("static", name).read_bytes()


def _error(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status, headers=SECURITY)


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except RecursionError as error:
        raise InputError("the JSON is nested too deeply") from error
    if not isinstance(body, dict):
        raise InputError("a JSON object is required")
    return body


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key, "")
    if not isinstance(value, str):
        raise InputError(f"{key} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{key} is not valid Unicode") from error
    return value


def _client(body: dict[str, Any]) -> str:
    """The name that a browser tab gives itself."""
    value = _text(body, "client")
    if not 0 < len(value) <= LONGEST_CLIENT:
        raise InputError(f"client must be a text of 1 to {LONGEST_CLIENT} characters")
    return value


def _number(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if type(value) is not int:
        raise InputError(f"{key} must be a whole number")
    return value
