"""Setup: boards at USB and new projects, for admins who have just logged in.

A job runs in a process of its own (host/cli/setup.py), by the functions of the commands, so that
the page stays small and answers meanwhile.  It goes on when who asked has gone: a flash that was
begun is brought to its end.  What it says is passed on line by line.
"""

import asyncio
import contextlib
import json
import sys

from clawlite.host.page import agent_line
from clawlite.host.page.guard import HEADERS

FRESH_S = 300  # after a login, as of core/protocol/rights.py
_MOST_JOB = 4096  # bytes
_MOST_LINE = 1 << 20
_ENDS_S = 1800
_MOST_JOBS = 4  # at once


class Setup:
    """The jobs of one page."""

    def __init__(self, environment: dict):
        self._environment = environment
        self._jobs: set = set()

    async def answer(self, request, login):
        """Answer a POST: do a job.  Raises an error of HTTP."""
        from aiohttp import web

        if all(person.role != "admin" for person in login.places.values()):
            raise web.HTTPForbidden(text="only an admin sets boards up\n")
        if agent_line.now_s() - login.at_s > FRESH_S:
            raise web.HTTPForbidden(
                text="it takes a login of the last 5 minutes: log in again, and try it then\n"
            )
        if (request.content_length or _MOST_JOB + 1) > _MOST_JOB:
            raise web.HTTPRequestEntityTooLarge(_MOST_JOB, text="expected a job\n")
        body = await request.content.read(_MOST_JOB)
        if len(self._jobs) >= _MOST_JOBS:
            raise web.HTTPTooManyRequests(text="other jobs are under way: try it again later\n")
        lines: asyncio.Queue = asyncio.Queue()
        job = asyncio.get_running_loop().create_task(self._run(body, lines))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        stream = web.StreamResponse(
            headers={**HEADERS, "Content-Type": "application/x-ndjson", "X-Accel-Buffering": "no"}
        )
        await stream.prepare(request)
        while (line := await lines.get()) is not None:
            await stream.write(line)
        return stream

    async def _run(self, body: bytes, lines: asyncio.Queue) -> None:
        """Run one job to its end; *lines* gets what it says, and None at last."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "clawlite.host.cli.setup",
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MOST_LINE,
            env=self._environment,
        )
        is_told = False
        assert process.stdin and process.stdout  # they are pipes
        try:
            async with asyncio.timeout(_ENDS_S):
                process.stdin.write(body)
                process.stdin.close()
                async for line in process.stdout:
                    is_told = not line.startswith(b'{"progress"')
                    lines.put_nowait(line)
                await process.wait()
        except (TimeoutError, ConnectionError, ValueError):
            is_told = False
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            if not is_told:
                ended = {"error": "the job has ended without a word", "hint": "try it again"}
                lines.put_nowait(json.dumps(ended).encode() + b"\n")
            lines.put_nowait(None)

    async def close(self) -> None:
        """End the jobs that are under way."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
