"""Setting the clock of a board, which forgets it without power: by whoever holds the line, or by
NTP (wifi.py).

    {"jsonrpc": "2.0", "method": "claw.clock"}                              the board asks
    {"jsonrpc": "2.0", "method": "claw.clock", "params": {"epoch_s": N}}    the host tells, seconds
    since 1970

Only a clock that nobody has set is set: what counts by days and hours does not jump while an agent
runs.  Loaded once, and dropped."""

import time

from clawlite.core.base.errors import ClawError
from jsontext import loads
from osfields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, YEAR

ASKS = {"jsonrpc": "2.0", "method": "claw.clock"}
_FIRST, _LAST = 1700000000, 4102444800  # 2023, 2100
_EPOCH_2000 = 946684800


def heard(device, data: bytes) -> bool:
    """Take a record that tells the time; return False when it is none.  Nonsense sets nothing."""
    try:
        message = loads(data)
        if message["method"] != "claw.clock" or "id" in message:
            return False
        epoch_s = message["params"]["epoch_s"]
    except (ClawError, KeyError, TypeError):
        return False
    if isinstance(epoch_s, int) and _FIRST < epoch_s < _LAST:
        set_clock(device, epoch_s)
    return True


def set_clock(device, epoch_s: int):
    """Set the clock of this board to these seconds since 1970, unless it is set; where a board
    has none, the agent counts on from here.
    """
    if device.epoch_s() is not None:
        return
    try:
        from machine import RTC

        at = time.gmtime(epoch_s - (_EPOCH_2000 if time.gmtime(0)[0] == 2000 else 0))
        RTC().datetime(
            (
                at[YEAR],
                at[MONTH],
                at[DAY],
                at[WEEKDAY] + 1,
                at[HOUR],
                at[MINUTE],
                at[SECOND],
                0,
            )
        )
    except (AttributeError, ImportError, OSError):
        device.clock.begins_s = epoch_s - device.now_ms() // 1000
    if device.session:
        device.session.set_clock(epoch_s, device.now_ms())
