"""A template's clawlite.toml, made to fit a board: ``clawlite new --board``."""

import re
import tomllib

from clawlite.core.base.errors import ClawError
from clawlite.host.boards.profile import Profile, is_in_spans, span
from clawlite.host.hardware.board_pins import able_to

_PIN = re.compile(r"^(pin|sda|scl) = (\d+)$|^\[\[(pins|buses)\]\]$", re.MULTILINE)
_CHANNEL = "[telegram]\n"
_CARRIED = """\
[gateway]                               # clawlite gateway, on a computer at its line, speaks to Telegram
roles = ["user", "admin"]

[telegram]
via = "gateway"
"""  # noqa: E501
# where a Raspberry Pi has its I2C bus, and its 1-wire bus unless its overlay says otherwise
_OF_PI = {"sda": 2, "scl": 3, "pin": 4}
_GATEWAY = """
[gateway]                               # {why}: clawlite gateway, on a computer at its line, asks the model
"""  # noqa: E501


def fit(text: str, board: Profile, endpoint) -> str:
    """Return clawlite.toml *text* with pins that *board* has, and with a gateway for a board that
    cannot ask the model itself: it has no network, or no list of certificate authorities, which
    [tls] would have to name; or whose channel it carries.

    endpoint  of the model, or False: none is asked
    Raises ``ClawError`` when the board has no pin of a kind.
    """
    kinds = iter([pin["kind"] for pin in tomllib.loads(text).get("pins", [])])
    taken, table = set(), ""

    def choose(found) -> str:
        nonlocal table
        role, number, begins = found.groups()
        if begins:
            table = begins
            return found[0]
        if table == "buses" and board.runtime != "micropython":
            pin = _OF_PI[role]
        else:
            kind = next(kinds) if table == "pins" else "output"
            pin = _choose(board, kind, int(number), taken)
        taken.add(pin)
        return f"{role} = {pin}"

    text = _PIN.sub(choose, text)
    if board.runtime == "micropython":
        text = text.replace(_CHANNEL, _CARRIED)
    why = ""
    if endpoint and not board.network.links:
        why = f"{board.name} has no network"
    elif endpoint and endpoint.startswith("https:") and board.runtime == "micropython":
        why = f"{board.name} knows no certificates without [tls] ca"
    return text + _GATEWAY.format(why=why) if why else text


def _choose(board: Profile, kind: str, wanted: int, taken: set) -> int:
    """Return *wanted*, or the first pin that the board can use if it cannot use that one.

    An output does not take a pin of the ADC, which stays free for later sensors, nor pin 0, which
    decides on ESP32s how they boot."""
    able = able_to(board, kind)
    free = [
        pin
        for first, last in map(span, able)
        for pin in range(first, last + 1)
        if pin not in taken and not (kind != "adc" and is_in_spans(board.pins.input_only, pin))
    ]
    if not free:
        raise ClawError(
            f"{board.name} has no pin of kind {kind}, and the template wants one",
            "choose another --template, or leave --board out: where there are no such "
            "pins they are simulated",
        )
    return (
        wanted
        if wanted in free
        else min(
            free,
            key=lambda pin: (pin == 0, is_in_spans(board.pins.adc, pin) and kind != "adc", pin),
        )
    )
