"""The operator's memory (CKP 0.2.0, 9.3.4): claw.memory.query, store and compact; loaded at the
first of these requests.

1. Parameters are checked here and become a request.  A shell performs it (the effect REMEMBER), and
   nothing waits for its disk.
2. ``context.identity`` selects the part of a store per identity, and ``context.channel`` that of
   one per channel.  Without them it is the part of the agent's own identity, or a part that no
   channel has.
3. A store request is idempotent by ``context.request_id``: repeated, it stores nothing again and
   returns the same ids.
4. ``summarize`` asks a provider.  When none answers, the sliding window is used instead, and the
   result says so.
"""

from clawlite.core.protocol.calls import is_uuid
from clawlite.core.base.effect import ASK
from clawlite.core.base.errors import InvalidParams
from clawlite.core.image.memories import (
    CONVERSATION,
    DOES,
    GLOBAL,
    MAX_TOP,
    PER_CHANNEL,
    PER_IDENTITY,
    SCOPES,
    SEARCHED,
    SINGLE,
    SNAPSHOTS,
    STRATEGIES,
    SUMMARIZE,
    TYPES,
    VECTOR,
    WINDOW,
    Store,
    ask,
    stores,
)
from clawlite.core.protocol.rpc import error, field, result

MAX_ENTRIES = 256  # of one request
MAX_NAME = 256  # characters of an identity or a channel
MAX_KEY = 512  # characters
MAX_TEXT = 4096  # characters of a query
MAX_NUMBERS, SUMMARY_TOKENS = 4096, 512  # dimensions of a vector; the longest summary
_SUMMARIZE = (
    "Summarize these notes of an agent's memory, oldest first, in at most 150 words. Keep names, "
    "numbers, decisions and "
    "what is still open. Write only the summary.\n\n"
)


class Memories:
    """The stores of one agent, by name.

    agent  ``agent.Agent``, whose image has the section MEMORY
    embed  function(verb, store, part, details) -> a generator like ``ask``, for stores with an
           embedding; set by a shell that has such stores
    """

    def __init__(self, agent, embed=None):
        self._agent = agent
        self._embed = embed
        self.stores = stores(agent.image)

    def begin(self, id, method: str, params: dict, reply, now_ms: int):
        """Begin one of the three methods; *reply* gets its answer later.  Raises
        ``InvalidParams``.
        """
        store = self._store(field(params, "store", str, ""))
        context = field(params, "context", dict, "", method.endswith("store")) or {}
        part = self._part(store, context)
        then = None
        if method.endswith("query"):
            work = self._work("query", store, part, _query(field(params, "query", dict, ""), store))
        elif method.endswith("store"):
            request_id = field(context, "request_id", str, "context.")
            if not is_uuid(request_id):
                raise InvalidParams("context.request_id: expected a UUID, got %s" % request_id[:40])
            work = self._work("store", store, part, (request_id.lower(), _entries(params, store)))
            then = self._compact
        else:
            named = "identity" in context or "channel" in context
            work = compact(store, part if named or store.scope == GLOBAL else None)

        def finish(value, problem, at_ms):
            if then and not problem:
                value = then(store, part, value, at_ms)
            reply(error(id, problem) if problem else result(id, value))

        self._agent.begin(work, finish, now_ms)

    def _work(self, verb: str, store, part: str, details: tuple):
        return (
            self._embed(verb, store, part, details)
            if store.embedding
            else ask(verb, store, part, details)
        )

    def _compact(self, store, part: str, value: dict, now_ms: int) -> dict:
        """Begin a compaction when the store is full now, and return the caller's result."""
        if value.pop("is_full", False) and self._agent.is_ready:
            self._agent.begin(compact(store, part), _nobody, now_ms)
        return value

    def about(self) -> list:
        """Return lines for a person: the stores, and which of them keeps the conversation."""
        said = [
            "%-20s %s, %s%s%s"
            % (
                store.name,
                TYPES[store.type],
                SCOPES[store.scope],
                ", power-safe" if store.lasting else "",
                ", wear-saving" if store.saves_wear else "",
            )
            + (", encrypted" if store.secret else "")
            for store in self.stores
        ]
        for store in self.stores:
            if store.type == CONVERSATION:  # the first has it
                return said + ["%s keeps this conversation over sessions." % store.name]
        return said + [
            "No store of type conversation is declared: what is said here does not "
            "survive the session."
        ]

    def _store(self, name: str) -> Store:
        for store in self.stores:
            if store.name == name:
                return store
        raise InvalidParams(
            "store: unknown store %s" % name[:60],
            "this agent has: %s" % ", ".join([store.name for store in self.stores]),
        )

    def _part(self, store, context: dict) -> str:
        """Return the part of *store* that *context* selects, "" for the whole of a global one."""
        identity = _name(context, "identity")
        channel = _name(context, "channel")
        if store.scope == PER_IDENTITY:
            return "identity/" + (identity or self._agent.image.agent.identity)
        return "channel/" + (channel or "") if store.scope == PER_CHANNEL else ""


def _nobody(value, error, now_ms):
    """Nobody waits for a compaction that began by itself; the next request meets the same problem
    and reports it.
    """


def _name(context: dict, word: str):
    name = field(context, word, str, "context.", False)
    if name is not None and len(name) > MAX_NAME:
        raise InvalidParams(
            "context.%s: expected at most %d characters, got %d" % (word, MAX_NAME, len(name))
        )
    return name


def compact(store, part):
    """A generator of effects that compacts *part* of *store*, None for all of its parts.  It
    returns the result that 9.3.4 specifies, and the strategy.
    """
    strategy = store.compaction or WINDOW
    if strategy == SUMMARIZE:
        before = after = 0
        for one, last, texts, entries in (yield from ask("oldest", store, part, None)):
            left = yield from _summarize(store, one, last, texts, entries)
            if left is None:
                before = 0
                break
            before += entries
            after += left
        if before:
            return {
                "entries_before": before,
                "entries_after": after,
                "strategy": STRATEGIES[SUMMARIZE],
            }
        strategy = WINDOW
    before, after = yield from ask("compact", store, part, strategy)
    return {"entries_before": before, "entries_after": after, "strategy": STRATEGIES[strategy]}


def _summarize(store, part: str, last: int, texts: str, entries: int):
    """A generator of effects that replaces the older half of *entries* by a summary, piece by piece
    when it is long.  It returns how many entries are left, None without a provider.
    """
    count = entries // 2
    while True:
        said, text = yield (ASK, _SUMMARIZE + texts, SUMMARY_TOKENS, None)
        if not said or not text.strip():
            return None
        left = yield from ask("replace", store, part, (last, text.strip()))
        rest = left - entries + entries // 2
        more = (yield from ask("oldest", store, part, rest)) if 1 < rest < count else ()
        if not more:
            return left
        count = rest
        _, last, texts, _ = more[0]


def _query(query: dict, store) -> tuple:
    """Return (kind, what, most entries, vector or None), checked."""
    kind = field(query, "type", str, "query.")
    top = field(query, "top_k", int, "query.", False)
    if top is not None and not 1 <= top <= MAX_TOP:
        raise InvalidParams("query.top_k: expected 1 to %d, got %d" % (MAX_TOP, top))
    vector = None
    if kind == "semantic":
        what = _short(field(query, "text", str, "query."), MAX_TEXT, "query.text")
        vector = _vector(query, "query.")
        if store.search == VECTOR and vector is None and not store.embedding:
            raise InvalidParams(
                "query.vector: store %s is searched by vectors alone, and there "
                "is none" % store.name
            )
        top = top or store.top_k
    elif kind == "key":
        what = _short(field(query, "key", str, "query."), MAX_KEY, "query.key")
        top = top or (1 if DOES >> 4 * store.type & SINGLE else store.top_k)
    elif kind == "time-range":
        span = field(query, "time_range", dict, "query.")
        since, until = what = _time(span, "from"), _time(span, "to")
        if since > until:
            raise InvalidParams("query.time_range: from is later than to")
        top = top or MAX_TOP
    else:
        raise InvalidParams("query.type: expected semantic, key or time-range, got %s" % kind[:40])
    return kind, what, top, vector


def _time(span: dict, word: str) -> int:
    """Return ms since 1970 of an ISO 8601 text."""
    from clawlite.core.base.instant import from_iso8601

    text = field(span, word, str, "query.time_range.")
    ms = from_iso8601(text)
    if ms is None:
        raise InvalidParams(
            "query.time_range.%s: expected a time such as 2026-02-20T14:30:00Z, "
            "got %s" % (word, text[:40])
        )
    return ms


def _short(text: str, most: int, where: str) -> str:
    if len(text) > most:
        raise InvalidParams("%s: expected at most %d characters, got %d" % (where, most, len(text)))
    return text


def _entries(params: dict, store) -> list:
    """Return [(key or None, content, metadata or None, vector or None), ...], checked."""
    entries = params.get("entries")
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_ENTRIES:
        raise InvalidParams(
            "entries: expected an array of 1 to %d entries%s"
            % (MAX_ENTRIES, "" if "entries" in params else ", there is none")
        )
    found = []
    for number, entry in enumerate(entries):
        where = "entries[%d]." % number
        if not isinstance(entry, dict):
            raise InvalidParams("%s: expected an object" % where[:-1])
        content = entry.get("content")
        if not isinstance(content, (str, dict)):
            raise InvalidParams(
                "%scontent: expected a string or an object%s"
                % (where, "" if "content" in entry else ", there is none")
            )
        key = field(entry, "key", str, where, False)
        if DOES >> 4 * store.type & SNAPSHOTS:
            key = _task(content, where)
        elif DOES >> 4 * store.type & SINGLE and not key:
            raise InvalidParams("%skey: a %s store needs one" % (where, TYPES[store.type]))
        if key is not None:
            _short(key, MAX_KEY, where + "key")
        vector = _vector(entry, where)
        if vector is not None and not DOES >> 4 * store.type & SEARCHED:
            raise InvalidParams(
                "%svector: a %s store is not searched by vectors" % (where, TYPES[store.type])
            )
        found.append((key or None, content, field(entry, "metadata", dict, where, False), vector))
    return found


def _task(content, where: str) -> str:
    """Return the task of a checkpoint, which is its key (0.3.0: task_id, step_index, state_blob,
    resumable).
    """
    if not isinstance(content, dict):
        raise InvalidParams(
            "%scontent: a checkpoint is an object with task_id and step_index" % where
        )
    task = field(content, "task_id", str, where + "content.")
    if field(content, "step_index", int, where + "content.") < 0:
        raise InvalidParams("%scontent.step_index: expected 0 or more" % where)
    if not isinstance(content.get("resumable", True), bool):
        raise InvalidParams("%scontent.resumable: expected a boolean" % where)
    return task


def _vector(given: dict, where: str):
    """Return ``vector``, a list of numbers that are not all 0, or None.  An extension: the
    protocol leaves embeddings to the runtime.
    """
    vector = given.get("vector")
    if vector is None:
        return None
    if not isinstance(vector, list) or not 1 <= len(vector) <= MAX_NUMBERS:
        raise InvalidParams("%svector: expected an array of 1 to %d numbers" % (where, MAX_NUMBERS))
    size = 0
    for number in vector:
        if (
            number is True
            or number is False
            or not isinstance(number, (int, float))
            or not -1e18 < number < 1e18
        ):
            raise InvalidParams("%svector: expected numbers" % where)
        size += number * number
    if not size:
        raise InvalidParams("%svector: it has no direction: every number is 0" % where)
    return vector
