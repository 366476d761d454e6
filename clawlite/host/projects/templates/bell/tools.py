"""A door bell: a button and a chime, at the pins of clawlite.toml.

``board`` is handed in: the pins, by name.
"""


def look(board) -> dict:
    """Tell whether somebody is pressing the button."""
    return {"pressed": board.read("button") == 0}


def ring(board) -> dict:
    """Ring the chime twice."""
    for _ in range(2):
        board.write("chime", 1)
        try:
            yield 300                   # milliseconds; the agent stays awake meanwhile
        finally:
            board.write("chime", 0)     # also when the call is cancelled
        yield 200
    return {"times": 2}
