"""``board.button("door")``: a contact whose bounces are not counted.

    level = yield from button.value()           1 while it is down, once it is still
    press = yield from button.wait(5000)        "short", "long", or None after 5 s without one

Both are generators, so the agent goes on meanwhile.
"""

_STEP_MS = 5
STILL_MS = 50  # without a change for so long, it does not bounce
LONG_MS = 1000


class Button:
    def __init__(self, board, pin: str, pressed: int):
        self._board, self._pin, self._pressed = board, pin, pressed

    def is_down(self) -> bool:
        """Return what the pin says now, bounces included."""
        return self._board.read(self._pin) == self._pressed

    def value(self, still_ms: int = STILL_MS):
        """A generator: return 1 or 0 when it has not changed for *still_ms*."""
        down, still = self.is_down(), 0
        while still < still_ms:
            yield _STEP_MS
            now, still = self.is_down(), still + _STEP_MS
            if now != down:
                down, still = now, 0
        return 1 if down else 0

    def wait(self, timeout_ms: int, long_ms: int = LONG_MS, still_ms: int = STILL_MS):
        """A generator: return "short" when it was pressed and let go within *timeout_ms*, "long"
        once it is down for *long_ms*, or None.  One that is down at first must be let go.
        """
        passed = still = held = 0
        down = last = self.is_down()
        was_up = not down
        while passed < timeout_ms or was_up and down:
            yield _STEP_MS
            passed += _STEP_MS
            now = self.is_down()
            still = still + _STEP_MS if now == last else 0
            last = now
            if down and was_up:
                held += _STEP_MS
                if held >= long_ms:
                    return "long"
            if now != down and still >= still_ms:
                if down and was_up:
                    return "short"
                down, held = now, still
                was_up = was_up or not now
        return None
