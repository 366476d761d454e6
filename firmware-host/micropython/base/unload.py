"""Free memory: modules that are used once, or rarely, are dropped after use and loaded again when
they are needed.

Nothing may keep a reference to such a module, so they are imported inside functions.
"""

import gc
import sys

_PACKAGE = "clawlite.core."
# One text for all names: short names in a list would be interned strings, which stay for ever.
# host/firmware/firmware.py puts groups of functions into it.
_OCCASIONAL = (
    " header image_signature handshake uri policy_preview approval provider_error call_journal "
    "appendlog refusal opaque stop_reasons "
    "oldturns conversation memories memory_methods instant storelog storewrite storequery words "
    "idempotency_record recorded_request commands trace violation jsonvalue cborfault "
    "jsonfault failure answer_prefix text_repair loader oom_recover parts assemble startup settime "
    "lookup secretvalues stopfile rule_commands rulestate samplehours saved_state boardrecord "
)
_STAGES = ""
# the modules that reach providers, which stay until the next turn; host/firmware/firmware.py adds
# the codecs of the APIs
REMOTE = "remote tcp limits oauth2"


def stage(name: str):
    """Return the module *name*, one stage of a turn; the other stages are dropped before it is
    loaded (host/firmware/overlays.py).
    """
    if name not in sys.modules:
        drop(_STAGES)
    return __import__(name)


def know(names: str):
    """Load the modules *names* and drop them, so that the names in them are interned.

    MicroPython keeps interned names for ever, in tables of which each is one block of memory and
    twice as long as the one before: 3.5 KB for the 301st name.  A heap in which memory ran out has
    no such block, even with 33 KB free, so a module that is loaded then must bring no new name.
    """
    for name in names.split():
        try:
            __import__(name)
        except ImportError:  # unlinked sources are in other files
            pass
    drop(names)


def drop(names: str = ""):
    """Drop those of the occasional modules, or of *names*, that are loaded, linked or not; their
    memory is free at the next collection.
    """
    before = len(sys.modules)
    # no copy of the long text is made when memory is short
    names = " %s " % names if names else _OCCASIONAL
    for full in list(sys.modules):
        package, _, name = full.rpartition(".") if full.startswith(_PACKAGE) else ("", "", full)
        if " %s " % name in names:
            sys.modules.pop(full, None)  # after a failed import the name may occur twice
            package = sys.modules.get(package)
            if package and hasattr(package, name):
                delattr(package, name)
    if len(sys.modules) < before:
        gc.collect()
