"""A fetcher with the loop of a test around it, and sites that it asks."""

import os
import select
import time

import pytest
from net_servers import DEADLINE_S, head

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.linux.tools.fetch import Fetcher
from clawlite.protocols.sandbox.profile import Profile


def rules(mode=2, hosts=(), block_private=False, most=None) -> Profile:
    return Profile(
        [
            "net",
            0,
            [mode, list(hosts), block_private],
            [0, [], []],
            [0, False],
            [0, [], []],
            [None] * 5 + [most],
        ]
    )


class Loop:
    """A fetcher, and the loop of a test around it."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.ms = 1000
        self.it = Fetcher(self.writer, lambda: self.ms, environ={})

    def fetch(self, url, profile=None, injections=(), **arguments):
        """Return (True, text) or (False, error)."""
        outcome = self.it.start(
            1, profile or rules(), "web-fetch", {"url": url, **arguments}, injections=injections
        )
        return outcome or self.wait()

    def wait(self):
        ended = []
        end = time.monotonic() + DEADLINE_S
        while not ended:
            assert select.select([self.reader], [], [], max(0, end - time.monotonic()))[0], (
                "nothing came"
            )
            os.read(self.reader, 512)
            ended = self.it.poll()
        assert len(ended) == 1 and ended[0][0] == 1 and not self.it._running
        return ended[0][1]

    def text(self, *arguments, **named) -> str:
        done, value = self.fetch(*arguments, **named)
        assert done, value
        return value

    def error(self, *arguments, kind=ClawError, **named) -> str:
        done, value = self.fetch(*arguments, **named)
        assert not done and type(value) is kind, value
        assert "\n" not in value.message
        return value.message

    def denied(self, *arguments, **named) -> str:
        return self.error(*arguments, kind=SandboxDenied, **named)


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.it.close()
    os.close(made.writer)
    os.close(made.reader)


def page(body=b"hello", kind="text/plain", status=200, **headers):
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body)] + (
        ["Content-Type: " + kind] if kind else []
    )
    lines += ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def site(pages, seen=None):
    """Serve ``pages[path]``, bytes; *seen* gets the heads of requests as text."""

    def talk(connection):
        data = head(connection).decode()
        if seen is not None:
            seen.append(data)
        path = data.split(" ")[1]
        connection.sendall(pages if isinstance(pages, bytes) else pages.get(path, page(status=404)))

    return talk
