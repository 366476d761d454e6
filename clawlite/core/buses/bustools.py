"""Handlers of the built-in tools of buses, of ``claw://registry/clawlite/``; on every device.

``board`` is a ``BusBoard``.  A port with ``aside`` may block, and is waited for in steps.
"""

from clawlite.core.base.errors import ClawError


def i2c_transfer(board, bus: str, address: int, write: list = (), read: int = 0):
    """Write bytes, then read some, with a repeated start between."""
    one = board.i2c(bus)
    if not write and not read:
        raise ClawError("nothing to write and nothing to read", "give write, read or both")
    outcome = []
    for wait_ms in _steps(one, lambda: one.exchange(address, bytes(write), read), outcome):
        yield wait_ms
    return {"bus": bus, "address": address, "data": list(outcome[0])}


def spi_transfer(board, bus: str, data: list):
    """Exchange bytes."""
    one, outcome = board.spi(bus), []
    for wait_ms in _steps(one, lambda: one.transfer(bytes(data)), outcome):
        yield wait_ms
    return {"bus": bus, "data": list(outcome[0])}


def one_wire_read(board, bus: str, device: str = None):
    """Read a thermometer, or list the declared devices that are there."""
    one, outcome = board.onewire(bus), []
    if device is None:
        for wait_ms in _steps(one, one.scan, outcome):
            yield wait_ms
        return {"bus": bus, "devices": outcome[0]}
    going = one.temperature_mc(device)
    while True:
        try:
            wait_ms = next(going)
        except StopIteration as e:
            return {"bus": bus, "device": device, "temperature_mc": e.value}
        yield wait_ms


def _steps(bus, function, outcome: list):
    """A generator that puts what *function* returns into *outcome*."""
    if bus.port.aside is None:
        outcome.append(function())
        return
    for wait_ms in bus.port.aside(function, outcome):
        yield wait_ms


HANDLERS = {
    "i2c-transfer": i2c_transfer,
    "spi-transfer": spi_transfer,
    "one-wire-read": one_wire_read,
}
