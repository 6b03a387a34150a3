"""The local web server: one address with a secret token, on this machine only."""

from __future__ import annotations

import json
import math
import secrets
import select
import socket
import sys
import threading
import traceback
from base64 import b64encode
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from mercer._progress import Step, watched
from mercer.exceptions import MercerError
from mercer.explore._table import Table
from mercer.explore._views import UPLOAD, Reader, Views

_QUESTION = 64 << 10  # bytes of any other request
_SECONDS = 60  # after which a silent connection is closed
FILES = {
    "page.html": "text/html",
    "page.js": "text/javascript",
    "plot.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_QUICK = ("tables", "rows", "unload", "landscape", "witness")
_SLOW = ("fine", "ascent", "preimage", "test")  # one of each kind at a time
# The page needs nothing but its own files. Its address, which holds the token, is not passed on.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _GoneError(Exception):
    """The browser closed the connection, or the server is stopping."""


class Refused(Exception):  # noqa: N818 (an answer, not a mistake of the program)
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Server(ThreadingHTTPServer):
    """Answers requests of one page about one table."""

    daemon_threads = True  # a computation does not delay the shutdown

    def __init__(self, views: Views, port: int = 0) -> None:
        self.views, self.token = views, secrets.token_urlsafe(24)
        self.computing = {question: threading.Lock() for question in _SLOW}
        self.stopping = False
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that browsers may use for this server; others are refused (DNS rebinding)."""
        port = "" if self.server_port == 80 else f":{self.server_port}"  # browsers omit 80
        return f"127.0.0.1{port}", f"localhost{port}"

    def server_close(self) -> None:
        self.stopping = True
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a browser that closed its connection."""
        if not isinstance(sys.exception(), OSError | _GoneError):
            traceback.print_exc()


def serve(
    table: Table, read: Reader, *, port: int = 0, ready: Callable[[str], object] = print
) -> None:
    """Serve the page about a table until it is interrupted.

    Parameters
    ----------
    table : Table
    read : callable
        Turns the name and the content of a second file into a `Table`.
    port : int
        The port on 127.0.0.1; 0 for any free one.
    ready : callable
        Called with the address.
    """
    with Server(Views(table, read), port) as server:
        ready(server.address)
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"  # connections are kept, so that the slider is quick
    timeout = _SECONDS

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def log_message(self, *_: Any) -> None:
        """Log nothing: addresses hold the token."""

    def version_string(self) -> str:
        return "mercer"

    def _reply(self, answer: Callable[[str], tuple[str, bytes]]) -> None:
        """Send an answer, or a sentence that says what is wrong."""
        status = HTTPStatus.OK
        try:
            kind, body = answer(self._path())
        except _GoneError:
            self.close_connection = True
            return
        except Exception as error:  # noqa: BLE001 (every error becomes a sentence)
            if self.server.stopping:  # threads end while it computes
                self.close_connection = True
                return
            status, sentence = _explain(error)
            kind, body = "application/json", json.dumps({"error": sentence}).encode()
            self.close_connection = True  # what was sent may not have been read
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in (headers | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _path(self) -> str:
        """The path after the token; refuse requests that are not from the page."""
        hosts = self.server.hosts
        if self.headers.get("Host") not in hosts:
            raise Refused(HTTPStatus.FORBIDDEN, f"this server is {hosts[0]}, not another host")
        origin = self.headers.get("Origin")
        if origin not in (None, *(f"http://{host}" for host in hosts)):
            raise Refused(HTTPStatus.FORBIDDEN, "only the page itself may ask")
        _, token, *rest = [*self.path.partition("?")[0].split("/", 2), "", ""][:3]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(
                HTTPStatus.FORBIDDEN, "the address lacks the token; use the one that was printed"
            )
        return rest[0]

    def _get(self, path: str) -> tuple[str, bytes]:
        name = path or "page.html"
        if name not in FILES:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")
        content = files("mercer.explore").joinpath(name).read_bytes()
        return FILES[name], content

    def _post(self, path: str) -> tuple[str, bytes]:
        views = self.server.views
        if path == "load":
            query = parse_qs(self.path.partition("?")[2])
            name = query.get("name", ["second.csv"])[0]
            return _as_json(views.load(name, self._body(UPLOAD)))
        if path not in _QUICK + _SLOW:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such question")
        asked = _from_json(self._body(_QUESTION))
        if path in _QUICK:
            return _as_json(getattr(views, path)(asked))
        with self.server.computing[path], watched(self._check_wanted):
            self._check_wanted()
            return _as_json(getattr(views, path)(asked))

    def _body(self, most: int) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        size = float(length)  # int refuses thousands of digits
        if size > most:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the file is larger than {most >> 20} MB, the most that the page takes"
                if most == UPLOAD
                else "the question is too long",
            )
        try:
            body = self.rfile.read(int(size))
        except OSError as error:
            raise _GoneError from error
        if len(body) < size:
            raise _GoneError
        return body

    def _check_wanted(self, _: Step | None = None) -> None:
        """Stop a computation that nobody waits for, because the slider has moved on."""
        if self.server.stopping or _is_closed(self.connection):
            raise _GoneError


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end has closed or reset a connection."""
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


def _explain(error: Exception) -> tuple[HTTPStatus, str]:
    if isinstance(error, Refused):
        return error.status, str(error)
    if isinstance(error, MercerError):
        return HTTPStatus.BAD_REQUEST, str(error)
    if isinstance(error, MemoryError):
        return HTTPStatus.BAD_REQUEST, "not enough memory for this file"
    traceback.print_exception(error)
    return (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"unexpected {type(error).__name__}; the terminal shows where it came from",
    )


def _from_json(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "the question is not JSON") from error
    if not isinstance(asked, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "the question must be a JSON object")
    return asked


def _as_json(answer: dict[str, Any]) -> tuple[str, bytes]:
    return "application/json", json.dumps(_plain(answer), allow_nan=False).encode()


def _plain(value: Any) -> Any:
    """Arrays as base64, which is ten times quicker than digits; NaN as null."""
    if isinstance(value, np.ndarray):
        kind = "<i4" if value.dtype.kind in "iu" else "<f8"
        data = b64encode(value.astype(kind).tobytes()).decode()
        return {"type": kind[1:], "shape": value.shape, "data": data}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
