"""What a board keeps for itself: secrets, and the networks that it may join (``clawlite secrets
--port``, ``clawlite wifi``).

    /state/secrets/NAME   one secret, its bytes and nothing else
    /wifi.json            {"country": "DE", "networks": [{"ssid": "...", "password": "..."}]}, the
                          first is tried first; "ntp": ["host", 123] in it is yours to add, and
                          stays

1. They go the way of a flash: in the raw REPL, which echoes nothing, into a file beside the old one
   that then takes its name. No code of an agent takes part, and nothing of them is in an image, in
   a log, or in what a model sees.
2. A value comes from stdin or a hidden prompt, never from an argument, and is never shown.
"""

import json
import re
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import CommandFailed
from clawlite.host.flash import flash

SECRETS = "/state/secrets"
WIFI = "/wifi.json"
MAX_VALUE = 8192  # bytes, as on Linux and as net.py reads
MAX_NETWORKS, MAX_WIFI = 8, 2048
MAX_SSID = 32  # bytes, IEEE 802.11
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COUNTRY = re.compile(r"[A-Z]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def value_of(name: str) -> str:
    """Return a secret from stdin, without one newline at its end, or from a hidden prompt.
    Raises ``ClawError``.
    """
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"{name} (it is not shown): ")
    data = sys.stdin.buffer.read(MAX_VALUE + 3)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None:  # raised outside: the exception of the codec holds the value
        raise ClawError("stdin: expected UTF-8 text", "save the text as UTF-8, and give it again")
    return text.removesuffix("\n").removesuffix("\r")


def set_secret(board, name: str, value: str) -> None:
    """Keep *value* under *name* on *board*, a target of ``flash.target``.  Raises ``ClawError``."""
    _check_name(name)
    if not value or len(value.encode()) > MAX_VALUE or _CONTROL.search(value):
        raise ClawError(
            f"secret {name}: expected 1 to {MAX_VALUE} bytes without control characters",
            "give its value alone, on one line",
        )
    for folder in ("/state", SECRETS):
        above, _, last = folder.rpartition("/")
        if last not in board.names(above):
            board.do(("mkdir", folder))
    flash.replace_file(board, f"{SECRETS}/{name}", value.encode())


def secrets(board) -> list[str]:
    """Return the names of the secrets on *board*, sorted."""
    return sorted(name for name in board.names(SECRETS) if _NAME.fullmatch(name))


def remove_secret(board, name: str) -> None:
    """Forget a secret.  Raises ``ClawError`` when there is none of this name."""
    _check_name(name)
    if name not in board.names(SECRETS):
        raise CommandFailed(
            f"{board.name}: there is no secret {name}",
            "clawlite secrets list --port PORT shows what is there",
        )
    board.do(("remove", f"{SECRETS}/{name}"))


def networks(board) -> tuple[dict, list[dict]]:
    """Return (what else stands in the file, [{ssid, password}]) that *board* may join.  Raises
    ``ClawError`` for a damaged file.
    """
    if WIFI[1:] not in board.names(""):
        return {}, []
    try:
        found = json.loads(board.read(WIFI, MAX_WIFI + 1))
        known = [
            {"ssid": one["ssid"], "password": one["password"]} for one in found.pop("networks")
        ]
        return found, known
    except (ValueError, KeyError, TypeError, AttributeError):
        found = None
    raise CommandFailed(f"{board.name}: {WIFI} is damaged", "remove it, and set the networks again")


def join(board, ssid: str, password: str, country: str = None) -> None:
    """Let *board* join *ssid*: the last to be tried, or in the place that it has already.

    password  8 to 63 characters, or "" for an open network
    country   two letters (ISO 3166-1), or None: as it is
    Raises ``ClawError``.
    """
    if not 1 <= len(ssid.encode()) <= MAX_SSID or _CONTROL.search(ssid):
        raise ClawError(
            f"the name of a network has 1 to {MAX_SSID} bytes and no control characters",
            "give the name that the access point shows",
        )
    if password and (not 8 <= len(password) <= 63 or _CONTROL.search(password)):
        raise ClawError(
            "the password of a network has 8 to 63 characters", "for a network without one: --open"
        )
    if country is not None and not _COUNTRY.fullmatch(country):
        raise ClawError(
            "--country: expected two capital letters, such as DE",
            "give the code of the country that the board is in (ISO 3166)",
        )
    rest, known = networks(board)
    place = next((one for one in known if one["ssid"] == ssid), None)
    if place is None:
        known.append(place := {"ssid": ssid})
    place["password"] = password
    _write_networks(board, {**rest, **({"country": country} if country else {})}, known)


def leave(board, ssid: str) -> None:
    """Forget the network *ssid*.  Raises ``ClawError`` when it is not there."""
    rest, known = networks(board)
    left = [one for one in known if one["ssid"] != ssid]
    if len(left) == len(known):
        raise CommandFailed(
            f"{board.name}: there is no network {ssid}",
            "clawlite wifi --port PORT shows what is there",
        )
    _write_networks(board, rest, left)


def _write_networks(board, rest: dict, known: list) -> None:
    data = json.dumps(
        {"networks": known, **rest}, ensure_ascii=False, separators=(",", ":")
    ).encode()
    if len(known) > MAX_NETWORKS or len(data) > MAX_WIFI:
        raise ClawError(
            f"{WIFI}: at most {MAX_NETWORKS} networks in {MAX_WIFI} bytes",
            "remove one: clawlite wifi SSID --remove",
        )
    flash.replace_file(board, WIFI, data)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name.strip(".") == "":
        raise ClawError(
            f"{name!r} is no name of a secret", "letters, digits, '_', '-' and '.', at most 64"
        )
