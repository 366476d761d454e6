"""What ``clawlite inspect`` shows of an image's pins."""

from clawlite.core.image import pins
from clawlite.core.image.image import PINS


def show(image) -> tuple:
    """Return ([{"name", "pin", "kind", "safe": None but of outputs}], lines of them)."""
    found = [_pin(row) for row in image.section(PINS) or ()]
    return found, [
        f"{one['name']:20} {one['pin']}, {one['kind']}"
        f"{'' if one['safe'] is None else ', safe: ' + str(one['safe'])}"
        for one in found
    ]


def _pin(row: list) -> dict:
    name, number, kind, _, _, _, _, safe, _ = row
    return {
        "name": name,
        "pin": number,
        "kind": pins.KINDS[kind],
        "safe": safe if pins.KINDS[kind] in ("output", "pwm") else None,
    }
