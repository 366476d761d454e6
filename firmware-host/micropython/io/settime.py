"""Setting the clock of a board, which loses the time without power: the time comes from the host on
the line, or by NTP (wifi.py).

    {"jsonrpc": "2.0", "method": "claw.clock"}                              the board asks
    {"jsonrpc": "2.0", "method": "claw.clock", "params": {"epoch_s": N}}    the host answers, in
                                                                            seconds since 1970

Only an unset clock is set, so that limits by days and hours do not jump while an agent runs.
Loaded once, and dropped."""

import time

from clawlite.core.base.errors import ClawError
from jsontext import loads
from osfields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, YEAR

ASKS = {"jsonrpc": "2.0", "method": "claw.clock"}
_FIRST, _LAST = 1700000000, 4102444800  # 2023, 2100
_EPOCH_2000 = 946684800


def take(device, data: bytes) -> bool:
    """Handle a record with the time; return False for another one.  A wrong time is ignored."""
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
    """Set this board's clock to *epoch_s*, seconds since 1970, unless it is set already.  On a
    board without a clock, the agent counts on from this time.
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
