"""The built-in tools that run in this process on every level: those of pins, which every device
has, those of buses where an image declares some, ``message``, which goes by the agent's own
channels, and ``delegate``, which goes by its swarm."""

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.image.image import PINS
from clawlite.core.image.pins import SimulatedPins
from clawlite.core.turns.builtin import HANDLERS
from clawlite.core.turns.handlers import Handlers
from clawlite.linux.io.stdio import now_ms

_BUSES = "buses"  # bustable.ABILITY
# linux/rules/lessons.py carries them out for a person's turn
TEACHES = ("add-rule", "forget-rule", "list-rules", "remind")


def _refuse_to_teach(name: str):
    """Return the handler of *name* for whoever is no person."""

    def refuse(**arguments):
        raise SandboxDenied(
            "%s: only a person's own message teaches a rule" % name,
            "let a person say it at the console or in a channel, or use claw.rule.draft",
            {"tool": name},
        )

    return refuse


def running(setup, functions: dict, place_of=None) -> Handlers:
    """Return what runs the tools of this process.

    setup      ``agent_parts.AgentParts``; functions: those of tools.py; place_of: see ``Handlers``
    Raises ``ClawError`` for pins that cannot be had.
    """
    rows, has_buses = setup.image.section(PINS), _BUSES in setup.image.requires
    if not rows and not has_buses:
        return Handlers(handlers_of(setup), functions, SimulatedPins([], now_ms), place_of)
    from clawlite.linux.hardware.pins import PinHandlers, bank_of

    board = bank_of(rows or [], now_ms)
    if has_buses:
        from clawlite.core.buses.bustable import BUSES, SIMULATED
        from clawlite.linux.hardware.buses import make_board

        image = setup.image
        board = make_board(board, image.section(BUSES), image.section(SIMULATED), now_ms)
    return PinHandlers(handlers_of(setup), functions, board, place_of)


def handlers_of(setup) -> dict:
    """Return {name of a tool: function} for ``handlers.Handlers``."""
    made = dict(HANDLERS)
    if _BUSES in setup.image.requires:
        from clawlite.core.buses.bustools import HANDLERS as OF_BUSES

        made.update(OF_BUSES)
    if "messages" in setup.image.requires:

        def message(channel: str, chat_id: str, content: str) -> dict:
            if setup.channels is None:
                raise SandboxDenied(
                    "message: this agent has no channel that carries messages", "declare one"
                )
            return setup.channels.write(channel, chat_id, content)

        made["message"] = message
    for name in TEACHES:
        made[name] = _refuse_to_teach(name)
    if "swarm" in setup.image.requires:

        def delegate(task: str, to: str = "", input=None):
            if setup.swarm is None:  # a process that joins has one
                raise SandboxDenied(
                    "delegate: this process is no member of the swarm",
                    "clawlite ask does not join a swarm: use run, serve or swarm run",
                )
            return setup.swarm.ask(task, to, input, setup.fast_path.starts)

        made["delegate"] = delegate
    return made
