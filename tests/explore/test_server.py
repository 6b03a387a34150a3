"""The local server: who may ask, what is refused, and that old questions are dropped."""

import base64
import http.client
import json
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mercer.exceptions import InputError
from mercer.explore import Table
from mercer.explore._server import Server
from mercer.explore._views import UPLOAD, Views

ASKED = {"columns": [0, 1], "kernel": "gaussian", "bandwidth": 0.4}


def read(name, content):
    if not content:
        raise InputError(f"{name} is empty")
    return Table(name, ("x", "y"), np.arange(8.0).reshape(4, 2) ** 2)


@pytest.fixture
def server(rng):
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(6.0, 1.0, size=(40, 2))])
    with Server(Views(Table("a.csv", ("x", "y"), X), read)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def request_of(server):
    """Send a request and return status, headers and body."""

    def send(method, path, body=None, token=None, **headers):
        port = server.server_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        token = server.token if token is None else token
        connection.request(method, f"/{token}/{path}", body, headers)
        reply = connection.getresponse()
        answer = reply.read()
        connection.close()
        return reply.status, dict(reply.getheaders()), answer

    return send


@pytest.fixture
def ask(request_of):
    """Ask a question and return status and answer."""

    def send(question, asked, **options):
        status, _, body = request_of("POST", question, json.dumps(asked), **options)
        return status, json.loads(body)

    return send


def array(encoded):
    data = base64.b64decode(encoded["data"])
    return np.frombuffer(data, "<" + encoded["type"]).reshape(encoded["shape"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("", "text/html"), ("page.html", "text/html"), ("page.js", "text/javascript"),
     ("plot.js", "text/javascript"), ("page.css", "text/css"), ("icon.svg", "image/svg+xml")],
)  # fmt: skip
def test_files_of_the_page(name, kind, request_of):
    status, headers, body = request_of("GET", name)
    assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert len(body) > 100
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_nothing_is_loaded_from_elsewhere(request_of):
    for name in ("page.html", "page.js", "plot.js", "page.css"):
        body = request_of("GET", name)[2].decode()
        assert "://" not in body
        assert "innerHTML" not in body


@pytest.mark.parametrize("token", ["", "x" * 32, "%C3%A9", "../", "%2e%2e"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_answered(method, token, request_of, server):
    for wrong in (token, server.token[:-1], server.token + "a"):
        status, _, body = request_of(method, "tables", "{}" if method == "POST" else None, wrong)
        assert status == 403
        assert "token" in json.loads(body)["error"]
        assert server.token.encode() not in body


def test_the_bare_address_is_refused(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", "/")
    assert connection.getresponse().status == 403
    connection.close()


def test_tokens_differ(server, rng):
    with Server(server.views) as other:
        assert other.token != server.token
    assert len(server.token) >= 32


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{}", "127.0.0.1", "10.0.0.1:{}"])
def test_other_hosts_are_refused(host, server, ask):
    status, answer = ask("tables", {}, Host=host.format(server.server_port))
    assert (status, "not another host" in answer["error"]) == (403, True)


def test_other_pages_are_refused(server, ask):
    assert ask("tables", {}, Origin="http://evil.example")[0] == 403
    assert ask("tables", {}, Origin="null")[0] == 403
    assert ask("tables", {}, Origin=f"http://localhost:{server.server_port}")[0] == 200
    assert ask("tables", {}, Host=f"localhost:{server.server_port}")[0] == 200


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["../pyproject.toml", "..%2f_server.py", "_server.py", "/etc/passwd", "page.html/..",
             "__init__.py", "static/../page.js", "%00"],
)  # fmt: skip
def test_other_files_are_not_served(path, request_of):
    assert request_of("GET", path)[0] == 404


@pytest.mark.parametrize("question", ["_samples", "__class__", "read", "table", "load/x", "second"])
def test_only_questions_of_the_page_are_answered(question, ask):
    assert ask(question, {}) == (404, {"error": "there is no such question"})


@pytest.mark.parametrize("body", ["", "{", "[1]", "3", "[" * 60_000, "\xff"])
def test_bad_json_is_refused(body, request_of):
    status, _, answer = request_of("POST", "landscape", body.encode("latin-1"))
    assert status == 400
    assert "JSON" in json.loads(answer)["error"]


def test_bad_questions_are_answered_in_words(ask):
    status, answer = ask("landscape", {"columns": [0, 1], "kernel": "cubic", "bandwidth": 1})
    assert status == 400
    assert answer["error"].startswith("kernel must be one of gaussian")


def test_long_requests_are_refused_before_they_are_read(server, request_of):
    status, _, body = request_of("POST", "load?name=b.csv", Content_Length=str(UPLOAD + 1))
    assert (status, "larger than 64 MB" in json.loads(body)["error"]) == (413, True)
    assert request_of("POST", "landscape", Content_Length=str(1 << 20))[0] == 413


@pytest.mark.parametrize(("length", "status"), [("9" * 5000, 413), ("0" * 5000 + "2", 200)])
def test_lengths_of_many_digits(length, status, request_of):
    assert request_of("POST", "tables", "{}", Content_Length=length)[0] == status


def test_addresses_that_are_none_are_refused(server, capsys):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(f"GET http://[x HTTP/1.1\r\nHost: {server.hosts[0]}\r\n\r\n".encode())
        assert b" 403 " in connection.recv(100)
    assert capsys.readouterr().err == ""


def test_browsers_do_not_name_port_80(rng, monkeypatch):
    with Server(Views(Table("a.csv", ("x",), rng.normal(size=(9, 1))), read)) as server:
        monkeypatch.setattr(server, "server_port", 80)
        assert server.hosts == ("127.0.0.1", "localhost")


@pytest.mark.parametrize("length", ["-1", "1e3", "²", ""])
def test_requests_need_a_length(length, server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        head = f"POST /{server.token}/load HTTP/1.1\r\nHost: {server.hosts[0]}\r\n"
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode("latin-1"))
        assert b" 411 " in connection.recv(100)


def test_a_second_file(ask, request_of):
    status, _, body = request_of("POST", "load?name=b%20%3Cb%3E.csv", b"1,2")
    assert status == 200
    assert [t["name"] for t in json.loads(body)["tables"]] == ["a.csv", "b <b>.csv"]
    status, answer = ask("witness", ASKED)
    assert (status, array(answer["values"]).shape) == (200, (answer["size"] ** 2,))
    assert ask("test", ASKED)[1]["pvalue"] <= 1.0
    assert len(ask("unload", {})[1]["tables"]) == 1


def test_a_file_that_cannot_be_read(request_of):
    status, _, body = request_of("POST", "load?name=b.csv", b"")
    assert (status, json.loads(body)) == (400, {"error": "b.csv is empty"})


def test_arrays_survive(ask, server):
    status, answer = ask("landscape", ASKED)
    expected = server.views.landscape(ASKED)
    assert status == 200
    for name in ("density", "basins", "modes", "counts"):
        assert (array(answer[name]) == expected[name]).all()


def test_questions_at_the_same_time(ask):
    questions = ["landscape", "fine", "rows", "tables"] * 6
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda question: ask(question, ASKED), questions))
    assert [status for status, _ in found] == [200] * len(questions)
    for question, (_, answer) in zip(questions, found, strict=True):
        assert answer == found[questions.index(question)][1]


def test_mistakes_of_the_program_are_told_without_details(ask, server, capsys, monkeypatch):
    monkeypatch.setattr(server.views, "rows", lambda asked: 1 / 0)
    status, answer = ask("rows", ASKED)
    assert status == 500
    assert answer["error"].startswith("unexpected ZeroDivisionError")
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err


@pytest.mark.parametrize("reset", [False, True])
def test_an_answer_that_nobody_waits_for_is_not_computed(reset, server, ask, monkeypatch, capsys):
    """The browser closes or resets the connection when the slider moves on."""
    from mercer._progress import report

    steps, started, stopped = [], threading.Event(), threading.Event()

    def endless(asked):
        try:
            while len(steps) < 3000:
                steps.append(report("step"))
                started.set()
                time.sleep(0.01)
        finally:
            stopped.set()

    monkeypatch.setattr(server.views, "fine", endless)
    body = json.dumps(ASKED)
    head = f"POST /{server.token}/fine HTTP/1.1\r\nHost: {server.hosts[0]}\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert started.wait(20)
        assert ask("landscape", ASKED)[0] == 200  # others are answered meanwhile
        assert not stopped.is_set()
        if reset:
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert stopped.wait(20)
    assert len(steps) < 3000
    assert capsys.readouterr().err == ""


def test_half_a_request_is_dropped(server, ask, capsys):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        head = f"POST /{server.token}/load HTTP/1.1\r\nHost: {server.hosts[0]}\r\n"
        connection.sendall(f"{head}Content-Length: 10\r\n\r\n1,2".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert len(ask("tables", {})[1]["tables"]) == 1
    assert capsys.readouterr().err == ""
