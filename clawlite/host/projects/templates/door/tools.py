"""A door: a button, a bell and an opener, at the pins of clawlite.toml.

``board`` is handed in: the pins, by name.
"""


def ring(board) -> dict:
    """Ring the bell, and tell whether the button was held down long."""
    board.write("bell", 1)
    try:
        press = yield from board.button("button").wait(1500)
    finally:
        board.write("bell", 0)              # also when the call is cancelled
    return {"press": press or "short"}


def open_door(board) -> str:
    """Open the door for three seconds."""
    board.write("opener", 1)
    try:
        yield 3000                          # milliseconds; the agent stays awake meanwhile
    finally:
        board.write("opener", 0)
    return "The door was open for 3 s."
