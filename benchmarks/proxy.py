"""What the mediating proxy costs (clawlite bench proxy): a request beside the same one without it,
and many streams at once.

    python benchmarks/proxy.py FOLDER ROUNDS STREAMS      # prints one JSON object

1. The provider is a server of this process: a stream of 8 events for each request.  Of STREAMS at
   once it holds all open until the last one has come, so the proxy has them all at the same time.
2. Both kinds of requests go out by turns, from bare sockets, a connection each.
"""

import asyncio
import json
import os
import subprocess
import sys
import time

EVENT = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"All is well. "},"finish_reason":null}]}\n\n'
)
EVENTS = 8
CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: desk, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are brief." } }
  providers: [ { inline: { name: remote, protocol: openai-compatible, model: m,
                 endpoint: "http://127.0.0.1:%d/v1", auth: { type: none } } } ]
"""
BODY = json.dumps(
    {"model": "m", "stream": True, "max_tokens": 99, "messages": [{"role": "user", "content": "?"}]}
).encode()


class Provider:
    """The server; ``wanted``: so many requests are held until all have come."""

    def __init__(self):
        self.wanted, self._open, self._all = 1, 0, asyncio.Event()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        return self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                await self._answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(EVENT), EVENT)
        )
        await writer.drain()
        self._open += 1
        if self._open >= self.wanted:
            self._all.set()
        await self._all.wait()
        chunk = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
        writer.write(chunk * (EVENTS - 1) + b"0\r\n\r\n")
        await writer.drain()

    def hold(self, count: int) -> None:
        self.wanted, self._open, self._all = count, 0, asyncio.Event()


async def asked(port: int, token: str) -> float:
    """Make one request; return the milliseconds until its answer has ended."""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(BODY)}\r\n\r\n"
    )
    begin = time.perf_counter_ns()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + BODY)
    said = b""
    while b"\r\n0\r\n\r\n" not in said:
        data = await reader.read(65536)
        if not data:
            raise SystemExit(f"the answer broke off: {said[-300:]!r}")
        said += data
    spent = (time.perf_counter_ns() - begin) / 1e6
    writer.close()
    if said.count(b"All is well.") != EVENTS:
        raise SystemExit(f"expected {EVENTS} events, found {said[:500]!r}")
    return spent


def peak_kib(pid: int) -> int:
    """Return the most memory that the process *pid* has had (proc(5), VmHWM)."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


async def main(folder: str, rounds: int, streams: int) -> None:
    provider = Provider()
    direct = await provider.start()
    os.makedirs(folder + "/desk")
    with open(folder + "/desk/claw.yaml", "w") as file:
        file.write(CLAW % direct)
    command = [sys.executable, "-m", "clawlite", "gateway"]
    token = subprocess.run(
        [*command, "token", "desk", "--for", "proxy"],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    gateway = await asyncio.create_subprocess_exec(
        *command,
        "desk",
        "--proxy",
        "127.0.0.1:0",
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, port = b"", 0
        while not port:
            line = await gateway.stderr.readline()
            said += line
            if not line:
                raise SystemExit(f"the gateway ended: {said.decode()}")
            if b"proxy for runners on" in line:
                port = int(line.rsplit(b":", 1)[1])
        found = {"direct_ms": [], "proxied_ms": [], "streams": streams}
        for number in range(rounds + 5):  # the first ones load what is used
            one, other = await asked(direct, token), await asked(port, token)
            if number >= 5:
                found["direct_ms"].append(one)
                found["proxied_ms"].append(other)
        found["before_kib"] = peak_kib(gateway.pid)
        provider.hold(streams)
        await asyncio.gather(*(asked(port, token) for _ in range(streams)))
        found["peak_kib"] = peak_kib(gateway.pid)
    finally:
        gateway.terminate()
        await gateway.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
