"""The stop of a swarm on a board (docs/gateway.md): while a person has stopped the swarm that the
image names, no tool with side effects begins here.

1. Loaded for images that require ``stop-of-swarm`` or ``swarm``.  The gateway sends
   ``claw.gateway.stop`` after each hello, and at each change: with why, or with "" when the swarm
   goes on.
2. What was heard last holds while no gateway is there.  Whether a person has stopped the swarm is
   kept in a file (stopfile.py), so it holds after a restart too; that nobody knows it is not kept,
   and changes nothing there.
"""

from clawlite.core.base.effect import TELL
from clawlite.core.base.errors import PolicyDenied


class SwarmStop:
    """What the gateway of *device* has told of stops.  ``Image.stop`` is its ``gate``."""

    def __init__(self, device):
        from stopfile import read

        self._folder = device.folder
        self._why, self._hint = read(self._folder)
        device.net.stop = self
        device.agent.image.stop = self.gate

    def gate(self, tool):
        """A generator, see ``Image.stop``.  Raises ``PolicyDenied``: the swarm is stopped, or the
        gateway cannot know whether it is.
        """
        if self._why:
            # a model reads why, as the result of its call; this is for the person
            yield (TELL, "%s - %s" % (self._why, self._hint))
            raise PolicyDenied(
                "%s: %s, and this tool has side effects" % (tool.name, self._why),
                self._hint,
                {"tool": tool.name, "action": "deny"},
            )

    def hear(self, method: str, params: dict) -> bool:
        """Take what the gateway tells, *params* with a text; return False when it is of something
        else.  Another shape says nothing.
        """
        if method != "claw.gateway.stop":
            return False
        if isinstance(params.get("hint"), str):
            self._why, self._hint = told = params["text"], params["hint"]
            if params.get("known"):
                from stopfile import keep

                keep(self._folder, told)
        return True
