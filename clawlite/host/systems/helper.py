"""A process of this program that works beside a loop, and is spoken to in lines of JSON: so the
loop never waits for what that process waits for.
"""

import asyncio
import json
import os
import sys
from typing import Any

AGAIN_S = 1  # until the process is started again
GRACE_S = 5  # from the end of its input to SIGKILL
START = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "__main__.py"
)
_LIMIT = 1 << 22  # bytes of a line from the process


async def start_process(*words: str) -> Any:
    """Start ``clawlite`` with *words*, all its streams pipes.  Raises ``OSError``, and
    ``NotImplementedError`` on Windows.
    """
    return await asyncio.create_subprocess_exec(
        *[sys.executable, START, *words],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the gateway, which ends it
        limit=_LIMIT,
    )


async def end_process(process) -> None:
    """Close the input of *process*, wait until it has left in order, or kill it."""
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), GRACE_S)
    except TimeoutError:
        process.kill()
        await process.wait()


class Helper:
    """One such process, started with ``send`` or ``start`` and again whenever it ends.

    words  of its command line, after ``clawlite``
    take   function(record that it says)
    note   function(line that it writes to stderr)
    begins function(): it has been started, and was sent nothing yet
    ended  function(why)
    """

    def __init__(self, words: tuple, take, note, begins, ended):
        self._words, self._take, self._note = words, take, note
        self._begins, self._ended = begins, ended
        self._process: Any = None
        self._runs: Any = None  # what starts the process, again and again

    @property
    def is_up(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        if self._runs is None:
            self._runs = asyncio.create_task(self._run())

    def send(self, message: dict) -> None:
        """Send *message*; it is lost when the process does not run."""
        if self._process:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def close(self) -> None:
        if self._runs:
            self._runs.cancel()
            await asyncio.gather(self._runs, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._ended(await self._serve())
            await asyncio.sleep(AGAIN_S)

    async def _serve(self) -> str:
        """Start the process and take what it says until it ends; return why it did."""
        try:
            process = await start_process(*self._words)
        except (OSError, NotImplementedError) as e:
            return getattr(e, "strerror", None) or str(e) or "this system cannot start it"
        self._process = process
        said: Any = asyncio.create_task(self._collect_notes(process.stderr))
        self._begins()
        try:
            while line := await process.stdout.readline():
                self._take(json.loads(line))
            return await said or "it says nothing"
        finally:
            self._process = None
            said.cancel()
            await end_process(process)

    async def _collect_notes(self, stream) -> str:
        """Note what the process says on *stream*; return the last line."""
        last = ""
        while line := await stream.readline():
            last = line.decode("utf-8", "replace").strip()
            self._note(last)
        return last
