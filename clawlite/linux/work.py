"""Where tools run on Linux: in this process, in the sandbox, or on a connection (DESIGN 7 and 11; docs/adr/0018).

    functions of tools.py     level none: here (core/handlers.py); level process: a child in the sandbox
    files, memory, commands   builtin.py says where
    pins                      here, on every level: they are this program's own code, and touch nothing but declared pins

It speaks as core/handlers.py does, so that the shell knows one of them.
"""
from clawlite.core.errors import SandboxDenied
from clawlite.core.image import BUILTIN, HAS_BOARD
from clawlite.core.profile import NONE


class Work:
    """What runs, of one agent.

    handlers  ``handlers.Handlers``, what runs in this process
    profile   ``profile.Profile`` of *image*
    """

    def __init__(self, handlers, profile, image):
        self._handlers = handlers
        self._profile = profile
        self._image = image
        self._builtins = None

    @property
    def is_busy(self) -> bool:
        """Whether something goes on in this process, which has to be stepped."""
        return self._handlers.is_busy

    def start(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        """Start *tool*; return its outcome, or None when it goes on (see ``poll``)."""
        kind, name = tool.handler
        if kind == BUILTIN and not tool.flags & HAS_BOARD and self.builtins.runs_here(name):
            return self._builtins.here(name, arguments)
        if self._profile.level == NONE or tool.flags & HAS_BOARD:
            return self._handlers.start(task, tool, arguments, due_ms, now_ms)
        return False, SandboxDenied("%s: it needs a sandbox of level process, and this device has none" % tool.name,
                                    "declare level: none to run tools in the agent's own process",
                                    {"tool": tool.name, "sandbox": self._profile.name or None, "reason": "missing mechanism",
                                     "required": ["process"], "missing": ["process"], "available": ["none"]})

    @property
    def builtins(self):
        """The ``builtin.Builtins``, loaded when one is called."""
        if self._builtins is None:
            from clawlite.linux.builtin import Builtins
            from clawlite.linux.files import state_folder
            image = self._image
            self._builtins = Builtins(self._profile, image.automaton, state_folder(image.agent.name), image.workspace)
        return self._builtins

    def resume(self, task: int, outcome: tuple, now_ms: int):
        """Go on with what asked a provider."""
        self._handlers.resume(task, outcome, now_ms)

    def poll(self, now_ms: int) -> list:
        """Step what is due; return [(task, outcome), ...] of what has ended, or asks (core/handlers.py)."""
        return self._handlers.poll(now_ms)

    def cancel(self, task: int):
        """End the work of *task*, if it has any."""
        self._handlers.cancel(task)

    def close(self):
        """End all work."""
        self._handlers.close()

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None."""
        return self._handlers.deadline()
