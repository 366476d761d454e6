"""Which names a driver may have.

1. A driver is a module, ``NAME.py``, or a package, ``NAME/...``, in the folder ``drivers``.
2. It replaces no module of clawlite, and none that MicroPython itself has.  A library that only
   some boards have (``LIBRARIES``) may be added for the others.
"""

import keyword

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import enquote
from clawlite.host.documents.lock import IS_MODULE
from clawlite.host.firmware import firmware, foreign_names

# libraries in Python that the firmware of some boards has: ports/*/boards/manifest.py,
# bundle-networking, and variants/standard/manifest.py of the unix port, as of MicroPython 1.28
LIBRARIES = frozenset(
    "aioble aioespnow argparse dht ds18x20 mip neopixel ntptime onewire requests umqtt upysh "
    "urequests webrepl webrepl_setup".split()
)
_OURS = ("clawlite", "tools", "boot", "main", "drivers", "claw")


def is_builtin(name: str) -> bool:
    """Return whether the module *name* belongs to MicroPython itself, on any board."""
    return name in foreign_names.importable() and name not in LIBRARIES


def check_file(name: str, whose: str) -> None:
    """Raise ``ClawError`` unless *name*, which the package *whose* brings, is that of a module."""
    stem, _, end = name.rpartition(".")
    if end == "mpy":
        raise ClawError(
            f"{whose}: {enquote(name)} is compiled already, for one version of MicroPython",
            "name its source, a file .py: a driver is compiled for the board that it goes to",
        )
    parts = stem.split("/")
    if not IS_MODULE.match(name) or parts[0] == "__init__":
        raise ClawError(
            f"{whose}: expected the name of a Python module, such as bme280.py, found "
            f"{enquote(name)}",
            "ask who publishes it, or name one file of it",
        )
    word = next((part for part in parts if keyword.iskeyword(part)), "")
    if word:
        raise ClawError(
            f"{whose}: Python has the word {enquote(word)}", "give the file another name"
        )
    stem = parts[0]
    owner = (
        "clawlite"
        if stem in _OURS or stem in firmware.sources()
        else "MicroPython"
        if is_builtin(stem)
        else ""
    )
    if owner:
        raise ClawError(
            f"{whose}: {owner} has a module {enquote(stem)}, which {name} would replace",
            "give the file another name",
        )
