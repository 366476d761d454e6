"""Give memory back: modules that work once, or once in a while, are forgotten after use and loaded
again when needed.

Nothing may hold on to one of them: they are imported inside functions.
"""

import gc
import sys

_PACKAGE = "clawlite.core."
# One text each: a short name in a list of them would be a string that stays for ever.
# host/firmware/firmware.py enters groups of functions.
_OCCASIONAL = (
    " header image_signature handshake uri policy_preview approval misfit journal appendlog "
    "oldturns conversation memories memory_methods instant storelog storewrite storequery words "
    "idempotency_record idempotency_journal commands trace violation jsonvalue cborfault "
    "jsonfault loader oom_recover parts assemble begin settime lookup secretvalues stopfile "
)
_STAGES = ""
# what reaches providers, until the next turn; host/firmware/firmware.py enters the codecs of their
# APIs
REMOTE = "remote tcp limits oauth2"


def stage(name: str):
    """Return the module *name*, one stage of a turn; the others are forgotten before it is
    loaded (host/firmware/overlays.py).
    """
    if name not in sys.modules:
        drop(_STAGES)
    return __import__(name)


def know(names: str):
    """Load the modules *names* and forget them: the names in them are known from then on.

    MicroPython keeps names for ever, in tables of which each is one piece and twice as long as the
    one before: 3.5 KB for the 301st name.  A heap in which memory ran out has no such piece, even
    with 33 KB free, so what is loaded then must bring no new name.
    """
    for name in names.split():
        try:
            __import__(name)
        except ImportError:  # the sources, unlinked, lie in other files
            pass
    drop(names)


def drop(names: str = ""):
    """Forget the occasional modules, or *names*, that are loaded, linked or not; their memory is
    free at the next collection.
    """
    before = len(sys.modules)
    # as long a text is not made where memory is short
    names = " %s " % names if names else _OCCASIONAL
    for full in list(sys.modules):
        package, _, name = full.rpartition(".") if full.startswith(_PACKAGE) else ("", "", full)
        if " %s " % name in names:
            sys.modules.pop(full, None)  # an import that failed may have left it there twice
            package = sys.modules.get(package)
            if package and hasattr(package, name):
                delattr(package, name)
    if len(sys.modules) < before:
        gc.collect()
