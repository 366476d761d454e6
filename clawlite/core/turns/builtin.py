"""Handlers of the built-in tools of ``claw://registry/clawlite/`` that work on pins.

Names, schemas and annotations are in ``clawlite/host/documents/registry/``; these are the functions
behind them.  ``board`` is a bank of pins, real or simulated, which raises ``SandboxDenied`` for a
pin that it does not have, or that cannot do this.  Values of an ADC and a PWM are 0..65535."""

from clawlite.core.base.errors import ClawError


def adc_read(board, pin: str) -> dict:
    value = board.read(pin)
    return {"pin": pin, "value": value, "percent": value * 100 // 65535}


def digital_read(board, pin: str) -> dict:
    return {"pin": pin, "value": bool(board.read(pin))}


def digital_write(board, pin: str, value: bool) -> dict:
    level = 1 if value else 0
    board.write(pin, level)
    found, may_be = board.settle(pin, level)
    if not may_be:
        raise ClawError(
            "pin %s was set to %d and reads %d: something holds it" % (pin, level, found),
            "look at its wires; a pin that others may hold is open_drain in clawlite.toml",
        )
    return {"pin": pin, "value": bool(found)}


def pwm_write(board, pin: str, value: int) -> dict:
    board.write(pin, value)
    return {"pin": pin, "value": board.read(pin)}


def sleep(board, milliseconds: int):
    yield milliseconds
    return {"milliseconds": milliseconds}


def board_info(board) -> dict:
    return {"simulated": board.simulated, "pins": board.describe()}


HANDLERS = {
    "adc-read": adc_read,
    "digital-read": digital_read,
    "digital-write": digital_write,
    "pwm-write": pwm_write,
    "sleep": sleep,
    "board-info": board_info,
}
