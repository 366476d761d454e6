"""The stores of a board (docs/memory.md, ADR 0040): one log in its flash, and an index of its
entries in memory.

Only the index stays in memory: six bytes for each entry, and the parts.  The code for a request is
loaded for it and dropped: storelog.py, storewrite.py, storequery.py.  A fault of the flash fails
the request that meets it, and the next request reads the log again.  The console's conversation is
made of ordinary entries (core/memory/conversation.py): a turn with an answer is in flash before the
next prompt."""

import os
from array import array

from clawlite.core.base.errors import ClawError, ParseError, QueryFailed, StoreError, wrap_error

_CAUSES = {
    28: ("the flash is full", "make room in it"),
    30: ("it cannot be written", "make the flash writable"),
    13: ("it cannot be written", "make the flash writable"),
    1: ("it cannot be written", "make the flash writable"),
}


class Stores:
    """All stores of one agent.

    agent    ``agent.Agent``
    path     of the log
    epoch_s  function -> seconds since 1970, or None while nobody has set the clock
    most     entries that all stores may have together
    codecs   (loads, dumps)
    Public, for the code of requests: ``places``, None before the log was read; ``end`` of the last
    intact record; ``room``, bytes that the log may have; ``talk``, name of the store of the
    console's conversation, or None; ``gone``, number of removed entries in the log; ``kept``, how
    many of them the last rewrite left there; ``requests``, ``marks``: offset and 16 bits of the id
    of the newest requests."""

    def __init__(self, agent, path: str, epoch_s, most: int, codecs: tuple):
        self.agent, self.path, self.epoch_s, self.most = agent, path, epoch_s, most
        self.loads, self.dumps = codecs
        self.places = self.talk = None
        self.end = self.room = self.gone = self.kept = 0
        self.requests, self.marks = array("I"), array("H")

    def methods(self):
        """Return the operator's methods (memory_methods.py)."""
        from clawlite.core.image.header import check_shape

        # loaded here and not deep in the calls that read the section
        del check_shape
        from clawlite.core.memory.memory_methods import Memories

        return Memories(self.agent)

    def lasting(self, work, history, once: bool):
        """A generator of effects around a turn's *work*: it first restores the conversation from
        before the reset, and stores the turn at its end.
        """
        if not history.is_restored:
            history.is_restored = True
            from clawlite.core.memory.conversation import restore

            yield from restore(self._place(), history, self.agent.setup.keep_bytes)
            del restore
        history.is_kept = True
        clean = yield from work
        from clawlite.core.memory.conversation import keep

        yield from keep(self._place(), history)
        return clean

    def _place(self) -> tuple:
        """Return (store, part) of the console's conversation."""
        from clawlite.core.memory.conversation import store_of
        from clawlite.core.image.memories import stores
        from unload import drop

        place = store_of(stores(self.agent.image), self.agent.image.agent.identity)
        drop("header")
        return place

    def run(self, verb: str, store, part, details) -> tuple:
        """Return the outcome of a REMEMBER effect; the verbs are those of
        linux/memory/stores.py.
        """
        try:
            now = (self.epoch_s() or 0) * 1000
            if self.places is None:
                self._load(now)
            if verb == "query":
                from storequery import query

                return True, query(self, store, part, details, now)
            from storewrite import VERBS

            return True, VERBS[verb](self, store, part, details, now)
        except ParseError as e:
            return False, QueryFailed(
                "the memory %s: %s" % (self.path, e.message),
                "copy it to a computer, and remove it to begin anew",
            )
        except ClawError as e:
            return False, e
        except OSError as e:
            self.places = None
            number = e.args[0] if e.args else 0
            what, hint = _CAUSES.get(
                number, ("it cannot be read or written (%s)" % e, "look at the flash")
            )
            return False, StoreError(
                "the memory %s: %s" % (self.path, what), hint, {"cause": number}
            )
        except KeyboardInterrupt:  # the log may have a record that is not known here
            self.places = None
            raise
        except Exception as e:  # MemoryError too
            self.places = None
            return False, wrap_error(e)

    def _load(self, now: int):
        """Read the log, and import turns that an older version kept in a log of their own."""
        from storelog import load

        try:
            load(self, now)
        except (IndexError, TypeError, ValueError) as e:  # its CRCs are right, its records are not
            self.places = None
            raise StoreError(
                "the memory %s is damaged: %s" % (self.path, e),
                "copy it to a computer, and remove it to begin anew",
                {"cause": "damaged"},
            )
        folder = self.path.rpartition("/")[0] or "."
        if self.talk and "conversation.log" in os.listdir(folder):
            from oldturns import take

            take(self, folder + "/conversation.log")
