"""A freezer: a DS18B20 on the 1-wire bus "inside", and a beeper at the pin "beeper".

``board`` is handed in, with the pins and buses of clawlite.toml, by name.
"""


def read_freezer(board) -> dict:
    """Measure how cold it is inside, in degrees Celsius."""
    millidegrees = yield from board.onewire("inside").temperature_mc()
    return {"celsius": (millidegrees + 50) // 100 / 10}


def sound_alarm(board, times: int = 5) -> str:
    """Beep some times."""
    for _ in range(times):
        board.write("beeper", 1)
        try:
            yield 300                       # milliseconds until the next step
        finally:
            board.write("beeper", 0)        # also when the call is cancelled
        yield 200
    return "Beeped %d times." % times


def test_beeper(board) -> str:
    """Beep for three seconds: so loud that a person is asked first."""
    board.write("beeper", 1)
    try:
        yield 3000
    finally:
        board.write("beeper", 0)
    return "Did you hear it?"
