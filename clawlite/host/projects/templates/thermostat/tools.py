"""A thermostat: a DS18B20 on the 1-wire bus "room", and the relay of a heater.

``board`` is handed in, with the pins and buses of clawlite.toml, by name.
"""


def read_room(board) -> dict:
    """Measure how warm the room is, in degrees Celsius."""
    millidegrees = yield from board.onewire("room").temperature_mc()
    return {"celsius": (millidegrees + 50) // 100 / 10}


def heat(board, minutes: int) -> dict:
    """Heat until the room has 21 degrees, for some minutes at most."""
    return (yield from _heat(board, 21, minutes))


def boost(board, minutes: int) -> dict:
    """Heat until the room has 24 degrees, for some minutes at most."""
    return (yield from _heat(board, 24, minutes))


def _heat(board, until: int, minutes: int):
    room, celsius = board.onewire("room"), 0.0
    board.write("heater", 1)
    try:
        for _ in range(2 * minutes):
            yield 29000                     # milliseconds; the agent stays awake meanwhile
            millidegrees = yield from room.temperature_mc()
            celsius = (millidegrees + 50) // 100 / 10
            if celsius >= until:
                break
    finally:
        board.write("heater", 0)            # also when the thermometer fails, or the call ends
    return {"reached": celsius, "warm": celsius >= until}
