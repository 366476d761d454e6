"""The lamp: a plain function is a tool; its schema comes from the annotations."""


def blink(board, times: int = 3) -> str:
    """Blink the lamp."""
    for _ in range(min(times, 20)):
        board.write("lamp", 1)
        try:
            yield 200                   # milliseconds
        finally:
            board.write("lamp", 0)
        yield 200
    return "Blinked %d times." % min(times, 20)
