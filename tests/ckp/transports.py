"""An operator of a case over the other transports of CKP 0.2.0, 9.2, in front of a real agent.

What it is sent, and what is seen of it, is as over stdio: each line is one message.
"""

import asyncio
import json
import os
import select
import threading
import time

from agents import eventually
from ckp.process import AGENT, WAIT_S, Operator
from pages import RunningPage

from clawlite.linux.secrets import people

TAKEN_S = 0.02  # within which a page in this loop has taken a body that came whole


class _Elsewhere(Operator):
    """What is not read from the agent's stdout: subclasses put messages into ``inbox``."""

    def __init__(self, world):
        self.inbox, self._lock = [], threading.Lock()
        super().__init__(world)

    def put(self, data: bytes):
        with self._lock:
            self.inbox.append((time.monotonic(), json.loads(data)))

    def _read(self):
        """Nothing comes from the agent itself."""

    def watch(self, seconds: float, until=lambda: False) -> bool:
        end = time.monotonic() + seconds
        while True:
            self.collect()
            with self._lock:
                came, self.inbox = self.inbox, []
            self.came += came
            if until() or time.monotonic() > end or self.process.poll() is not None:
                return until()
            select.select([], [], [], 0.005)

    def collect(self):
        """Look for what has come, where nothing tells."""

    def send(self, data, *_):
        data = data.encode() if isinstance(data, str) else data
        if self.process.poll() is None:
            self.pass_on(data[:-1])


class Folder(_Elsewhere):
    """Over a folder: ``clawlite serve --folder``."""

    options = ("--folder=exchange",)

    def __init__(self, world):
        self._folder, self._number = world.folder / "exchange", 0
        super().__init__(world)

    def pass_on(self, message: bytes):
        inbox = self._folder / "inbox"
        eventually(lambda: inbox.is_dir() or self.process.poll() is not None)
        if not inbox.is_dir():
            return
        self._number += 1
        draft = inbox / ".draft"
        draft.write_bytes(message)
        os.rename(draft, inbox / ("%08d.json" % self._number))
        # files of one time are taken by their names
        eventually(lambda: not os.listdir(inbox) or self.process.poll() is not None)

    def collect(self):
        outbox = self._folder / "outbox"
        for path in sorted(outbox.glob("*.json")) if outbox.is_dir() else ():
            self.put(path.read_bytes())
            path.unlink()


class _AtPage(_Elsewhere):
    """Over a page in this process, as an admin."""

    options = ("--socket",)

    def __init__(self, world):
        token, digest = people.make_token("ada")
        people.add(str(world.state), "ada", "admin", digest)
        self._headers = {"Authorization": "Bearer " + token}
        self._world = world
        self._page = RunningPage(world.state.parent).__enter__()
        self._path = "/ckp/" + AGENT
        super().__init__(world)
        eventually(
            lambda: (world.state / "control.sock").exists() or self.process.poll() is not None
        )

    def __exit__(self, *given):
        self._page.__exit__()
        super().__exit__(*given)


class HTTP(_AtPage):
    """Over Streamable HTTP."""

    def __init__(self, world):
        self._session, self._streams = {}, []
        super().__init__(world)

    def pass_on(self, message: bytes):
        is_first = not self._session
        sent, done = threading.Event(), self._page.start(self._post(message, lambda: sent.set()))
        if is_first:  # the session's id is in the answer
            done.result(WAIT_S)
        else:  # the page has it all, and takes the next one after it
            assert sent.wait(WAIT_S)

    async def _post(self, message: bytes, tell_sent):
        async def body():
            yield message
            asyncio.get_running_loop().call_later(TAKEN_S, tell_sent)

        headers = {**self._headers, **self._session, "Content-Type": "application/json"}
        url = self._page.url + self._path
        async with self._page.http.post(url, data=body(), headers=headers) as said:
            data = await said.read()
            assert said.status in (200, 202, 413), (said.status, data)
            if "Claw-Session-Id" in said.headers:
                self._session = {"Claw-Session-Id": said.headers["Claw-Session-Id"]}
                self._page.start(self._listen())
            if data:
                self.put(data)

    async def _listen(self):
        headers = {**self._headers, **self._session, "Accept": "text/event-stream"}
        async with self._page.http.get(self._page.url + self._path, headers=headers) as said:
            assert said.status == 200, said.status
            async for line in said.content:
                if line.startswith(b"data: "):
                    self.put(line[6:])


class WebSocket(_AtPage):
    """Over WebSocket."""

    def __init__(self, world):
        self._socket = None
        super().__init__(world)

    def pass_on(self, message: bytes):
        if self._socket is None:
            ready = threading.Event()
            self._page.start(self._serve(ready))
            assert ready.wait(WAIT_S)
        self._page.do(self._send(message))

    async def _serve(self, ready):
        url = self._page.url + self._path
        async with self._page.http.ws_connect(url, headers=self._headers, max_msg_size=0) as socket:
            self._socket = socket
            ready.set()
            async for message in socket:
                self.put(message.data)

    async def _send(self, message: bytes):
        try:
            await self._socket.send_str(message.decode())
        except UnicodeDecodeError:  # no text frame carries it
            await self._socket.send_bytes(message)


OVER = {"http": HTTP, "websocket": WebSocket, "folder": Folder}
