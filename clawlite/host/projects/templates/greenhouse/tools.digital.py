"""The greenhouse's own tools: plain functions, read (not run) by the compiler and run on a Pi or a board.

``board`` is handed in: the pins of clawlite.toml, by name.
"""


def read_soil(board) -> dict:
    """Tell whether the soil is dry: the digital output of common soil sensors is high then."""
    return {"dry": board.read("soil") == 1}


def water(board, seconds: int) -> str:
    """Run the pump for some seconds."""
    board.write("pump", 1)
    try:
        yield seconds * 1000            # milliseconds until the next step; the agent stays awake meanwhile
    finally:
        board.write("pump", 0)          # also when the call is cancelled or runs out of time
    return "Watered for %d s." % seconds
