"""The built-in tools that work on hardware here: those of pins, which every device has, and those of buses where an image declares some."""
from clawlite.core.builtin import HANDLERS
from clawlite.core.image import LOCAL


def handlers_of(image) -> dict:
    """Return {name of a tool: function} for ``handlers.Handlers``.  Raises ``ImageError`` for buses of another shape."""
    rows = image.section(LOCAL)
    if not rows or not rows[-1]:
        return HANDLERS
    from clawlite.linux.buses import Buses
    return dict(HANDLERS, **Buses(rows[-1]).handlers())
