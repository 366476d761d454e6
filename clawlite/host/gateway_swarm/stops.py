"""Whether swarms are stopped, for the devices whose images name one (``[gateway] obeys_stop_of``).

1. A process of its own, ``clawlite swarm watch`` with an agent of that swarm among the gateway's
   projects, reads the bus: this loop never waits for an engine, whichever it is.
2. While nobody knows, the swarm counts as stopped: no such agent, an engine that is away at the
   start, a process that ended.
"""

import asyncio
import json

from clawlite.core.image.image import SWARM
from clawlite.host.systems.helper import AGAIN_S, end_process, start_process
from clawlite.protocols.swarm.swarm import Swarm

_SAID = 300  # characters of what it said last
_RESUME = "resume it with: clawlite swarm resume"
_LOOK = "read the output of clawlite gateway"
_NAME = "give clawlite gateway the folder of one, too"


class Stops:
    """The stops of swarms, as far as the gateway knows them.

    images   ``images.Images``
    changed  function(name), called when ``status`` of that swarm has changed
    note     function(text) for the person who runs the gateway
    """

    def __init__(self, images, changed, note):
        self._images, self._changed, self._note = images, changed, note
        self._statuses: dict = {}  # name of a swarm -> what ``status`` returns
        self._followers: list = []

    def status(self, name: str) -> tuple:
        """Return (why no tool with side effects may begin, hint, whether that is known) of the
        swarm *name*; ("", "", True) when it goes on.
        """
        if name not in self._statuses:
            self._statuses[name] = _not_read(name)
            self._followers.append(asyncio.create_task(self._follow(name)))
        return self._statuses[name]

    def is_read(self, name: str) -> bool:
        """Return whether ``status`` of the swarm *name* says what came of reading it; ``changed``
        is called once it does.
        """
        return self.status(name) != _not_read(name)

    async def close(self) -> None:
        for follower in self._followers:
            follower.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)

    def _set(self, name: str, told: tuple) -> None:
        if told == self._statuses[name]:
            return
        self._statuses[name] = told
        why, hint, _ = told
        said = f"{why}: boards refuse tools with side effects - {hint}"
        self._note(said if why else describe_running(name))
        self._changed(name)

    def _member(self, name: str):
        """Return where an agent of the swarm is, a folder or an image, or None."""
        for path, image in self._images.places():
            if image.size_of(SWARM) and Swarm(image.section(SWARM)).name == name:
                return path
        return None

    async def _follow(self, name: str) -> None:
        while True:
            path = self._member(name)
            if path is None:
                told = _unknown(name, "no project of the gateway is an agent of it", _NAME)
            else:
                told = _unknown(name, await self._watch(name, path))
            self._set(name, told)
            await asyncio.sleep(AGAIN_S)

    async def _watch(self, name: str, path: str) -> str:
        """Follow what the process says until it ends; return why it did."""
        try:
            process = await start_process("swarm", "watch", path)
        except (OSError, NotImplementedError) as e:
            why = getattr(e, "strerror", None) or str(e) or "not on this system"
            return f"its reader cannot be started: {why}"
        said = asyncio.create_task(process.stderr.read())
        try:
            while line := await process.stdout.readline():
                self._set(name, _status_of(name, json.loads(line)["stopped"]))
            return (await said).decode("utf-8", "replace").strip()[-_SAID:] or "its reader ended"
        finally:
            said.cancel()
            await end_process(process)


def describe_running(name: str) -> str:
    return f"the swarm {name} goes on: boards may begin tools with side effects"


def _status_of(name: str, stopped) -> tuple:
    if stopped is None:
        return "", "", True
    return f"the swarm {name} was stopped by {stopped['by']} at {stopped['time']}", _RESUME, True


def _not_read(name: str) -> tuple:
    return _unknown(name, "it has not been read yet")


def _unknown(name: str, why: str, hint: str = _LOOK) -> tuple:
    return f"whether the swarm {name} is stopped cannot be known ({why})", hint, False
