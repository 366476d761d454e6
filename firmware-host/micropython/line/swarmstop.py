"""The stop of a swarm on a board (docs/gateway.md): while a person has stopped the swarm that the
image names, no tool with side effects begins here.

1. Loaded for images that require ``stop-of-swarm`` or ``swarm``.  The gateway sends
   ``claw.gateway.stop`` after each hello and at each change: with the reason, or with "" when the
   swarm may go on.
2. The last message stays in force while no gateway is connected.  Whether a person has stopped the
   swarm is kept in a file (stopfile.py), so that it also holds after a restart.  A message that the
   gateway does not know the state is not written, and leaves the file as it is.
"""

from clawlite.core.base.effect import TELL
from clawlite.core.base.errors import PolicyDenied


class SwarmStop:
    """The last stop that the gateway of *device* has sent.  ``Device.stop`` is its ``gate``."""

    def __init__(self, device):
        from stopfile import read

        self._folder = device.folder
        self._why, self._hint = read(self._folder)

    def new_session(self):
        """Return None: the session is as without a swarm."""

    def gate(self, tool):
        """A generator, see ``Device.stop``.  Raises ``PolicyDenied`` when the swarm is stopped, or
        the gateway cannot know whether it is.
        """
        if self._why:
            # a model reads the reason in the result of its call; this notice is for the person
            yield (TELL, "%s - %s" % (self._why, self._hint))
            raise PolicyDenied(
                "%s: %s, and this tool has side effects" % (tool.name, self._why),
                self._hint,
                {"tool": tool.name, "action": "deny"},
            )

    def hear(self, method: str, params: dict) -> bool:
        """Handle a message of the gateway, whose *params* have a text; return False when it is
        about something else.  A stop without a hint is ignored.
        """
        if method != "claw.gateway.stop":
            return False
        if isinstance(params.get("hint"), str):
            self._why, self._hint = told = params["text"], params["hint"]
            if params.get("known"):
                from stopfile import keep

                keep(self._folder, told)
        return True
