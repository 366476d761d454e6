"""The console's conversation in a board's flash: it goes on after a reset (docs/memory.md, ADR 0057).  Loaded for images that declare a store for it.

1. A turn that has its answer is one record of ``conversation.log`` in the state folder, and in flash before the next prompt is shown.
2. What a turn left undone is not kept.  3. A flash that fails is said once, and the agent goes on talking.
"""
from binascii import crc32

from clawlite.core.effect import TELL


class Conversation:
    """The conversation of one agent; the agent's turns go through it from now on.

    agent   ``agent.Agent``
    store   (name, part, most entries or None, oldest in seconds or None, whether a full one is cut to its newest half)
    folder  of the state;  epoch_s: function -> seconds since 1970 or None
    Public, for turnrecord.py: ``path``, ``key`` (whose turns: a board keeps its state when it gets another agent), ``end`` and ``entries`` of
    what is on record, ``max_entries``, ``max_age_s``, ``truncates``, ``epoch_s``, ``keep_bytes`` (function -> what a provider sees again).
    """

    def __init__(self, agent, store: tuple, folder: str, epoch_s):
        self.path = folder + "/conversation.log"
        name, part, self.max_entries, self.max_age_s, self.truncates = store
        self.key = crc32(("%s\n%s\n%s" % (agent.image.agent.name, name, part)).encode())
        self.end = self.entries = 0
        self.epoch_s, self.agent = epoch_s, agent
        agent.lasting = self.lasting

    def lasting(self, work, history, once: bool):
        """A generator of effects around a turn's *work*: it begins with what was said before the reset, and keeps what is said now."""
        if not history.is_restored:
            history.is_restored = True
            from turnrecord import restore
            said = restore(self, history)
            del restore
            if said:
                yield TELL, said
        clean = yield from work
        from turnrecord import keep
        said = keep(self, history.turn)
        if said and not history.is_told:
            history.is_told = True
            yield TELL, said
        return clean
