"""An agent that this process started, and the line to it: requests, and news of its tasks.

1. ``clawlite serve`` is started with the first request, and again after it has ended: its tasks lie
   on disk, and go on.
2. When it ends, whoever waits is told, with ``AgentGone``.
"""

import asyncio
import json
import signal
import sys
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.host.systems.helper import START

UPDATED = "claw.task.updated"
MAX_LINE = 16 << 20  # bytes of one answer
GRACE_S = 5  # from the end of its input to SIGTERM, and from there to SIGKILL


class AgentGone(ClawError):
    """The agent has ended, or cannot be started."""


def _make_gone() -> AgentGone:
    return AgentGone("the agent has ended", "send it again: the next request starts the agent")


class AgentRefused(ClawError):
    """The agent answered a request with an error, whose ``code`` it has."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class AgentProcess:
    """The agent of one project.

    folder  of the project;  name: of its agent
    asks    whether somebody answers what MCP servers ask a person during its tasks, and approves
            calls that belong to no task
    """

    def __init__(self, folder: str, name: str, asks: bool):
        self._asks = asks
        self._words = [sys.executable, START, "serve", folder, "--stdio"]
        if asks:
            self._words.append("--socket")  # with it come claw.approval.*
        self._name = name
        self._process: Any = None
        self._reader: asyncio.Task | None = None
        self._starting = asyncio.Lock()
        self._asked: dict = {}  # id of a request -> its Future
        self._watchers: dict = {}  # id of a task -> [Queue, ...]
        self._count = 0

    async def request(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``AgentRefused``, ``AgentGone``."""
        async with self._starting:
            if self._process is None:
                await self._start()
        return await self._ask(method, params)

    async def watch(self, task_id: str) -> asyncio.Queue:
        """Return a queue of what is told of a task from now on: params of ``claw.task.updated``;
        None when the agent has ended.  ``unwatch`` ends it.  Raises as ``request``.
        """
        queue = asyncio.Queue()
        self._watchers.setdefault(task_id, []).append(queue)
        try:
            await self.request("claw.task.subscribe", {"task_id": task_id})
        except BaseException:
            self.unwatch(task_id, queue)
            raise
        return queue

    def unwatch(self, task_id: str, queue: asyncio.Queue) -> None:
        queues = self._watchers.get(task_id, [])
        if queue in queues:
            queues.remove(queue)
        if not queues:
            self._watchers.pop(task_id, None)

    def tell(self, news: dict) -> None:
        """Tell whoever watches the task of *news*, params of ``claw.task.updated``."""
        for queue in self._watchers.get(news["task_id"], ()):
            queue.put_nowait(news)

    async def close(self) -> None:
        """End the agent."""
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return
        process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                await asyncio.wait_for(process.wait(), GRACE_S)
                break
            except TimeoutError:
                process.send_signal(number)
        await process.wait()
        await reader

    async def _start(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
                start_new_session=True,  # Ctrl-C is for the gateway, which ends it
            )
        except OSError as e:
            raise AgentGone(
                f"the agent cannot be started: {e.strerror or e}",
                "start it by hand to see why: clawlite run",
            ) from None
        self._process = process
        self._reader = asyncio.create_task(self._read(process))
        spec = {"identity": "./identity.yaml", "providers": ["./provider.yaml"]}
        root = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": self._name}, "spec": spec}
        hello = {
            "protocolVersion": "0.2.0",
            "clientInfo": {"name": "clawlite-a2a", "version": "1"},
            "capabilities": {"tools": {"asks": {}}} if self._asks else {},
            "manifest": root,
        }
        await self._ask("claw.initialize", hello)

    async def _ask(self, method: str, params: dict) -> dict:
        if self._process is None:
            raise _make_gone()
        self._count += 1
        number, answer = self._count, asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
            return await answer
        except ConnectionError:
            raise _make_gone() from None
        finally:
            self._asked.pop(number, None)

    async def _read(self, process) -> None:
        try:
            while line := await process.stdout.readline():
                self._take(line)
        except ValueError:  # a line without end
            process.kill()
        finally:
            self._process = None
            process.stdin.close()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(_make_gone())
            for queues in self._watchers.values():
                for queue in queues:
                    queue.put_nowait(None)
            await process.wait()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line.lstrip(b"\x1e"))
        except ValueError:
            return
        if message.get("method") == UPDATED:
            self.tell(message["params"])
        answer = self._asked.get(message.get("id"))
        if answer is None or answer.done() or "method" in message:
            return
        if "error" in message:
            error = message["error"]
            answer.set_exception(AgentRefused(error["code"], error["message"]))
        else:
            answer.set_result(message["result"])
