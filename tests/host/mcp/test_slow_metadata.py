"""A document of OAuth that comes a byte at a time."""

import itertools
import socket
import threading
from urllib.request import Request

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.mcp import authorization

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def asked(*pieces) -> bytes:
    """Return the body that a build takes of a server which sends *pieces*, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(HEAD)
                for piece in pieces:
                    try:
                        client.sendall(piece)
                    except OSError:  # who asked has gone
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            url = "http://127.0.0.1:%d/x" % listener.getsockname()[1]
            return authorization._answer(Request(url), [], [])[2]
        finally:
            thread.join()


def test_a_document_that_does_not_end_is_given_up(monkeypatch):
    """Each byte began the wait anew: a build lasted as long as the server liked."""
    times = itertools.count(0, 16)
    monkeypatch.setattr(authorization, "monotonic", lambda: next(times))
    with pytest.raises(ClawError, match="its answer was not whole within 30 s"):
        asked(*[b" "] * 60000)


def test_a_document_that_comes_in_parts_is_taken():
    assert asked(b'{"a":', b"1}") == b'{"a":1}'
    with pytest.raises(ClawError, match="more than 65536 bytes"):
        asked(b" " * 70000)
