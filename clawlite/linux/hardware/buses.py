"""The buses of an agent on Linux: ``[[buses]]`` of clawlite.toml, real or simulated.

1. A transfer of a built-in tool may block for a quarter of a second, so it runs in a thread, and
   its tool yields until it is done (``bus_io.Port``).  Each bus runs one transfer at a time.
2. A bus with ``simulate`` is real only on a Raspberry Pi, and simulated on any other machine: the
   buses of a laptop have its monitor and its battery on them.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.buses.busboard import BusBoard
from clawlite.core.buses.simulator import Simulator

_MODEL = "/proc/device-tree/model"


def make_board(bank, section: list, simulated, now_ms, is_pi: bool = None) -> BusBoard:
    """Return *bank*, pins, with the buses of the image's section BUSES.

    simulated  the image's section SIMULATED
    Raises ``ImageError`` for a section of another shape.
    """
    from clawlite.linux.hardware.bus_io import open_port

    is_pi = is_raspberry_pi() if is_pi is None else is_pi
    simulator = None if is_pi else Simulator(simulated, bank, now_ms)
    made = BusBoard if bank.simulated else _RealBoard
    return made(bank, section, simulator, open_port, _drive)


class _RealBoard(BusBoard):
    """The board of a Raspberry Pi, whose kernel notes edges of pins (edges.py)."""

    def lines(self, names: list) -> dict:
        """As ``Pins`` does."""
        return self._bank.lines(names)


def _drive(bank, pin: str, hertz: int, duty: int):
    """Drive a PWM pin of *bank* with *hertz*."""
    if bank.simulated:
        bank.write(pin, duty)
        return
    try:
        bank.drive(pin, hertz, duty)
    except OSError as e:
        raise ClawError("pin %s: %s" % (pin, e.strerror or e), "clawlite doctor says more")


def is_raspberry_pi() -> bool:
    """Return whether this machine is a Raspberry Pi."""
    try:
        with open(_MODEL, "rb") as file:
            return file.read(64).startswith(b"Raspberry Pi")
    except OSError:
        return False
