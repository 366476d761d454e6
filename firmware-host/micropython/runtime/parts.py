"""The parts of clawlite that a board needs for an image: assemble.py puts them together, and a
flash copies them into a slot.

Both call the same function; the host runs this file unchanged (clawlite/host/firmware/slot.py).
The file ``parts`` of a slot lists the parts that it has.
1. Parts are numbers, not names: MicroPython keeps every name that it has seen in memory.
2. Loaded at the start, and dropped.
"""

from clawlite.core.base.errors import ImageError, ImageMismatch
from clawlite.core.image.image import (
    GATEWAY_IS_SECURE,
    GUARD,
    NETWORK,
    NETWORK_GATEWAY,
    SKILLS,
)
from clawlite.core.image.scan_config import (
    AUDIT as GUARD_AUDIT,
    AUDIT_OUTPUTS,
    INJECTION as GUARD_INJECTION,
    LEAKS as GUARD_LEAKS,
)

NAMES = (
    "oauth2 remote gateway lan limits tls pins log guard leaks injection memory skills audit "
    "secrets rules confirm buses teach reflex replay"
)  # and the codecs of APIs, which host/firmware/firmware.py enters
(
    OAUTH2,
    REMOTE,
    GATEWAY,
    LAN,
    LIMITS,
    TLS,
    PINS,
    LOG,
    GUARDS,
    LEAKS,
    INJECTION,
    MEMORY,
    SKILLED,
    AUDIT,
    SECRETS,
    RULES,
    CONFIRM,
    BUSED,
    TAUGHT,
    REFLEX,
    REPLAY,
) = range(21)  # from REFLEX on as in core/providers/provider_order.py: 1 replay, 2 and up the APIs

# The abilities that each bring a part: one text, since MicroPython keeps every short one.
_WANTED = "audit buses cron gateway guard http https lan log memory pins rules"
_CONFIRMS = 31  # the section of core/rules/table.py
_TEACH = 32  # of core/teach/draft.py
_MOST = 512  # bytes of the file
# positions in a row of PROVIDERS (clawlite/host/image/image.cddl), and a value of _AUTH
_API, _AUTH = 1, 7
_OAUTH2 = 3


def parts(image) -> set:
    """Return the numbers of the parts.  Raises ``ImageError`` when a section has another shape."""
    found, wanted = set(), image.requires
    for name, number in zip(
        _WANTED.split(),
        (AUDIT, BUSED, RULES, GATEWAY, GUARDS, REMOTE, REMOTE, LAN, LOG, MEMORY, PINS, RULES),
    ):
        if name in wanted:
            found.add(number)
    try:
        rows = image.section(GUARD) if GUARDS in found or AUDIT in found else (None, None)
        if AUDIT in found:
            found.add(SECRETS)  # they are removed from every record
            if rows[GUARD_AUDIT][AUDIT_OUTPUTS]:  # records contain what tools return
                found.add(GUARDS)
        for row, number in (
            (GUARD_INJECTION, INJECTION),
            (GUARD_LEAKS, LEAKS),
            (GUARD_LEAKS, SECRETS),
        ):
            if rows[row] and GUARDS in found:
                found.add(number)
        if REMOTE in found or image.agent.counts:
            found.add(LIMITS)
        if (
            "https" in wanted
            or LAN in found
            and image.section(NETWORK)[NETWORK_GATEWAY][GATEWAY_IS_SECURE]
        ):
            found.add(TLS)
        if RULES in found:
            found.add(REFLEX)  # it compares values
            if image.size_of(_CONFIRMS):
                found.add(CONFIRM)
            if image.size_of(_TEACH):
                found.add(TAUGHT)
        if image.size_of(SKILLS):
            found.add(SKILLED)
        for number in image.agent.providers:
            if number < 2:
                found.add(REFLEX + max(number, 0))
            elif GATEWAY not in found:
                row = image.provider(number - 2)
                found.add(REFLEX + row[_API])
                if row[_AUTH] == _OAUTH2:
                    found.add(OAUTH2)
    except (IndexError, TypeError, ValueError):
        raise ImageError("image: its parts are not what this version knows")
    return found


def compare(image, folder: str):
    """Raise ``ImageMismatch`` when the slot in *folder* lacks a part that *image* needs.  A slot
    without the file ``parts`` has all.
    """
    try:
        with open(folder + "/parts") as file:
            carried = file.read(_MOST).split()
    except OSError:
        return
    wanted = parts(image)
    missing = [
        name
        for number, name in enumerate(NAMES.split())
        if number in wanted and name not in carried
    ]
    if missing:
        raise ImageMismatch(
            "this slot was flashed without what the image needs: %s" % ", ".join(missing),
            "flash it: clawlite flash",
        )
