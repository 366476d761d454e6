"""The stores of a Memory (CKP 0.2.0, 5.6), as an image has them: what the compiler writes and a
shell that has stores reads.
"""

from clawlite.core.base.effect import REMEMBER
from clawlite.core.image.image import MEMORY

# Images contain these numbers: add a new type at the end.  ``TYPES`` has their names.  Four bits
# for each type say what its stores can do.  All are in one number, which costs a board nothing:
# DOES >> 4 * store.type & FILES.
CONVERSATION, SEMANTIC, KEY_VALUE, WORKSPACE, CHECKPOINT = range(5)
TYPES = ("conversation", "semantic", "key-value", "workspace", "checkpoint")
SEARCHED = 1  # by words, and compacted
SINGLE = 2  # each entry has a key, which has one value: the newest
FILES = 4  # values are files
SNAPSHOTS = 8  # the key is the task of an entry, and may have several values
DOES = (
    SEARCHED << 4 * CONVERSATION
    | SEARCHED << 4 * SEMANTIC
    | SINGLE << 4 * KEY_VALUE
    | (SINGLE | FILES) << 4 * WORKSPACE
    | SNAPSHOTS << 4 * CHECKPOINT
)
GLOBAL, PER_IDENTITY, PER_CHANNEL = range(3)
NEVER, SUMMARIZE, TRUNCATE, WINDOW = range(4)
FTS, VECTOR, HYBRID = range(3)
RECIPROCAL, LINEAR = range(2)
SCOPES = ("global", "per-identity", "per-channel")
STRATEGIES = ("none", "summarize", "truncate", "sliding-window")

MAX_TOP = 1000  # entries in an answer

_LIMIT = [None, -(1 << 32)]
# core/image/header.py
_SHAPE = [
    (
        str,
        len(TYPES),
        3,
        _LIMIT,
        _LIMIT,
        4,
        bool,
        3,
        2,
        -(1 << 32),
        bool,
        [None, str],
        [None, 1 << 62],
        _LIMIT,
        bool,
        [None, str],
        [None, (256, -4097)],
    )
]


class Store:
    """One declared store, as the image has it.

    type  CONVERSATION .. CHECKPOINT;  scope  GLOBAL .. PER_CHANNEL;  max_age_s, max_entries  None,
          or what is older, or more, is forgotten
    compaction                             NEVER .. WINDOW;  compacts  bool, by itself when it is
                                           full
    search, fusion, top_k                  FTS .. HYBRID, RECIPROCAL or LINEAR, int
    lasting   bool, an acknowledged entry survives a power cut, not only the end of the process
    path      where its files are, with variables filled in, or None;  max_bytes  of its files, or
              None
    snapshots how many are kept for each task of a checkpoint store, or None;  saves_wear  bool,
              entries go through
    a journal
    secret    None, or the name of the key with which entries are encrypted
    embedding None, or [row of PROVIDERS, numbers of a vector]
    """

    def __init__(self, record: list):
        (
            self.name,
            self.type,
            self.scope,
            self.max_age_s,
            self.max_entries,
            self.compaction,
            self.compacts,
            self.search,
            self.fusion,
            self.top_k,
            self.lasting,
            self.path,
            self.max_bytes,
            self.snapshots,
            self.saves_wear,
            self.secret,
            self.embedding,
        ) = record


def stores(image) -> list:
    """Return the ``Store``s of *image*, which has the section MEMORY.  Raises ``ImageError``."""
    from clawlite.core.image.header import check_shape  # imported here, so that a board can drop it

    return [Store(record) for record in check_shape(image.section(MEMORY), _SHAPE, "the memory")]


def ask(verb: str, store, part, details):
    """A generator of effects that returns the answer of the shell's memory to a request.  Raises
    ``ClawError``.
    """
    done, value = yield (REMEMBER, verb, store, part, details)
    if not done:
        raise value
    return value
