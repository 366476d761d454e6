"""Embeddings: vectors that a provider makes of texts, for semantic stores (CKP 5.6 ``embedding``).

    POST {endpoint}/embeddings {"model", "input": [text, ...], "encoding_format": "float"}
    {"data": [{"index", "embedding": [number, ...]}, ...], "usage": {"prompt_tokens"}}          the
    openai-compatible form

1. A request is one of the provider's: its limits, its meter, its secret, its attempts, its
   connection (core/providers/provider.py).
2. A provider that fails takes nothing from a store that is also searched by words: what it has to
   say is the answer's ``notice``, the entries have no vector, and words find them.  Of a store that
   is searched by vectors alone it is the request's error.
3. Once the provider answers again, entries without a vector, and summaries, are given theirs,
   MAX_TEXTS with each request to their store; those without a text never.
4. A batch that the provider refuses is divided until the text that it does not take is found.  That
   text is shortened, or left out when even its beginning is refused, and the ``notice`` names it.
   A provider that takes fewer texts at once gets fewer from then on.
5. Vectors that a caller sends are used as they are.  A request that is sent again asks again, and
   is known all the same: only what the caller sent tells one from another.
"""

from clawlite.core.base.effect import SLEEP, TELL
from clawlite.core.base.errors import ClawError, ProviderError, QuotaExceeded, TransientError
from clawlite.core.image.memories import VECTOR, ask
from clawlite.core.net.exchange import exchange, head, without
from clawlite.core.providers.provider import KEY_HEADER, NONE, Provider
from clawlite.protocols.image.features import LOCAL_API

MAX_TEXTS = 64  # of one request to the provider
# requests to a part that has all its vectors, until it is looked at again
EVERY = 64
MAX_CHARACTERS = 8000  # of a text that is sent: models read some 8,000 tokens
_SILENT = "it said nothing"  # in the message of an error: no byte came in time (exchange.py)
_REPORT = "the provider reported: "  # in that of one that stands in an answer (failure.py)
_SHORT = 64  # characters of a text that is not shortened any more
_PROBE = "a"  # a text that every model takes
_NAMED = 3  # texts that a notice names
# a server that refuses a text for its length with 500, as if it had failed, says so
_LENGTHS = ("too large", "too long", "context length", "exceeds", "batch size")
_NUMBER = 32  # bytes that one takes at most in an answer, about
_AROUND = 65536
_API = 1  # of a row of PROVIDERS


class Embeddings:
    """The providers of embeddings of one agent's stores.

    agent  ``agent.Agent``, whose shell reaches remote providers
    """

    def __init__(self, agent):
        self._agent = agent
        self._made = {}  # row -> Embedder
        # (store, part) -> requests until it is looked at again for entries without a vector
        self._whole = {}

    def work(self, verb: str, store, part: str, details: tuple):
        """A generator of effects: as ``memories.ask``, with the vectors that are missing in
        *details* of a "store" or a "query".
        """
        notice = vectors = None
        if verb == "store":
            texts = [None if vector else content for _, content, _, vector in details[1]]
            lacking = [
                number
                for number, text in enumerate(texts)
                if text is not None and (text != "" or store.search == VECTOR)
            ]
        else:
            kind, what, top, vector = details
            texts, lacking = (
                [what],
                [0] if kind == "semantic" and vector is None and what.strip() else [],
            )
        if lacking:
            try:
                made, odd = yield from self._vectors(store, [texts[number] for number in lacking])
                vectors = {number: one for number, one in zip(lacking, made) if one is not None}
                if odd and (None in made) and store.search == VECTOR:
                    raise ProviderError(odd, "store a shorter text, or another")
                notice = odd
            except ProviderError as e:
                if store.search == VECTOR:
                    raise
                notice = "%s; only words are searched" % e.message
                self._whole.pop((store.name, part), None)
            else:
                if None in made:
                    self._whole.pop((store.name, part), None)
                else:
                    yield from self._catch_up(store, part)
        if verb == "store":
            details = (*details, vectors)
        elif vectors and 0 in vectors:
            details = kind, what, top, vectors[0]
        value = yield from ask(verb, store, part, details)
        if notice:
            value["notice"] = notice
        return value

    def _catch_up(self, store, part: str):
        """Give vectors to some of the entries that have none; what fails, of a text that the
        provider does not take, EVERY requests later again.
        """
        left = self._whole.get((store.name, part), 0)
        if left:
            self._whole[store.name, part] = left - 1
            return
        self._whole[store.name, part] = EVERY
        try:
            lacking = yield from ask("lacking", store, part, MAX_TEXTS)
            if lacking:
                made, _ = yield from self._vectors(store, [text for _, text in lacking])
                yield from ask(
                    "learn",
                    store,
                    part,
                    [
                        (id, text, vector)
                        for (id, text), vector in zip(lacking, made)
                        if vector is not None
                    ],
                )
            if len(lacking) == MAX_TEXTS:
                self._whole.pop((store.name, part), None)
        except ClawError:
            pass

    def _vectors(self, store, contents: list):
        """Return (a vector or None for each of *contents*, what is odd about some or ""); a
        generator of effects.
        """
        self._agent.chain()  # the shell makes what it asks with
        row, size = store.embedding
        embedder = self._made.get(row)
        if embedder is None:
            embedder = self._made[row] = self._make(self._agent.image.provider(row))
        dumps, found = self._agent.setup.codecs[1], []
        texts = [
            (content if isinstance(content, str) else dumps(content))[:MAX_CHARACTERS]
            for content in contents
        ]
        odd = []
        while len(found) < len(texts):
            batch = texts[len(found) : len(found) + embedder.most_texts]
            found += yield from embedder.embed_each(batch, size, self._agent.setup.meter, odd)
        if len(odd) > _NAMED:
            odd[_NAMED:] = ["and %d more" % (len(odd) - _NAMED)]
        return found, "; ".join(odd)

    def _make(self, record: list):
        setup = self._agent.setup
        if record[_API] == LOCAL_API:
            return LocalEmbedder(setup.make_local(record))
        return Embedder(record, *setup.codecs, 0, setup.guard and setup.guard.learn)


class LocalEmbedder:
    """The local model, whose engine makes vectors without a network.

    model  ``linux/local/provider.LocalProvider``
    """

    most_texts = 8  # a long one takes a second

    def __init__(self, model):
        self._model = model

    def embed_each(self, texts: list, size: int, meter, odd: list):
        """As ``Embedder.embed_each``: it takes all texts, and costs nothing."""
        answer = yield from self._model.reach({"do": "embed", "texts": texts})
        data = [{"embedding": vector} for vector in answer["vectors"]]
        return _vectors_of({"data": data}, len(texts), size)


class Embedder(Provider):
    """A row of the image's PROVIDERS whose target makes embeddings."""

    most_texts = MAX_TEXTS  # that this server takes at once
    _has_worked = False

    def embed_each(self, texts: list, size: int, meter, odd: list):
        """A generator of effects that returns a vector, or None, for each of *texts*, and adds to
        *odd* a sentence for each that was shortened or left out.  Raises ``ProviderError`` when no
        text is at fault.
        """
        found, sent = [None] * len(texts), list(texts)
        waiting, largest, is_divided = [(0, len(texts))], 0, False
        error = ProviderError(
            "its answer has something else for this text", "store a shorter text, or another"
        )
        while waiting:
            first, last = waiting.pop()
            try:
                found[first:last] = yield from self.embed(sent[first:last], size, meter)
                largest = max(largest, last - first)
                self._has_worked = True
                continue
            except ProviderError as e:
                if not _is_refusal(e):
                    if _SILENT in e.message:  # so many take it too long; fewer may not
                        self.most_texts = max(1, (last - first) // 2)
                    raise
                error = e
            if not self._has_worked:  # it refuses this text, or every one
                try:
                    yield from self.embed([_PROBE], size, meter)
                except ProviderError:
                    raise error
                self._has_worked = True
            if last - first > 1:
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
                is_divided = True
            elif len(sent[first]) > _SHORT and sent[first].strip():
                sent[first] = sent[first][: len(sent[first]) // 2]
                waiting.append((first, last))
        begun = len(odd)
        for text, part, vector in zip(texts, sent, found):
            if vector is None:
                odd.append("no vector is made of %s: %s" % (_quote(text), error.message))
            elif part != text:
                odd.append(
                    "the vector of %s is that of its first %d characters: more are refused"
                    % (_quote(text), len(part))
                )
        if is_divided and len(odd) == begun:
            self.most_texts = largest
        return found

    def embed(self, texts: list, size: int, meter):
        """A generator of effects that returns a list of vectors, each of *size* numbers.  Raises
        ``ProviderError`` when its attempts are used up.
        """
        attempt = 1
        while True:
            try:
                return (yield from self._embed(texts, size, meter))
            except QuotaExceeded:
                raise
            except ProviderError as e:
                wait = self._wait(e, attempt, meter)
                if wait is None:
                    e.message = "provider %s: %s (tried %d of %d)" % (
                        self.name,
                        e.message,
                        attempt,
                        self.max_attempts,
                    )
                    raise
            yield (SLEEP, wait)
            attempt += 1

    def _embed(self, texts: list, size: int, meter):
        wait = meter.pause(self)
        if wait:
            yield (
                TELL,
                "provider %s: %d requests a minute are its limit, waiting %d s"
                % (self.name, self.per_minute, wait // 1000 + 1),
            )
            yield (SLEEP, wait)
        body = self.codec.dumps(
            {"model": self.model, "input": texts, "encoding_format": "float"}
        ).encode()
        asked = len(body) // 4
        meter.admit_request(self, asked, 0)
        last = self._token
        key = yield from self._credential(meter)
        meter.count_request(self)
        headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "clawlite"),
        ]
        if self.auth != NONE:
            headers.append(
                ("api-key", key) if self.auth == KEY_HEADER else ("Authorization", "Bearer " + key)
            )
        most = len(texts) * size * _NUMBER + _AROUND
        status, answered, data = yield from exchange(
            self.where,
            [head(self.where, headers, len(body)), body],
            most,
            lambda status, headers: None,
        )
        if status == 401 and last is not None and self._token is last:
            self._token = None  # withdrawn before its time: once more, with a new one
            return (yield from self._embed(texts, size, meter))
        if status != 200:
            raise self._refusal(status, answered, without(key, data), meter)
        answer = self.codec.parse(data)
        used = answer.get("usage")
        used = used.get("prompt_tokens") if isinstance(used, dict) else None
        yield from self._spend(
            meter, used if isinstance(used, int) and used >= 0 else None, 0, asked, 0
        )
        return _vectors_of(answer, len(texts), size)


def _is_refusal(error) -> bool:
    """Return whether the server refuses what the request holds."""
    said = error.message.lower()
    is_report = _REPORT in said and not isinstance(error, TransientError)  # inside an answer
    return (error.status in (400, 413, 422) or not error.status and is_report) or (
        error.status == 500 and any([words in said for words in _LENGTHS])
    )


def _quote(text: str) -> str:
    """Return the beginning of *text*, as a person finds it."""
    words = " ".join(text[:200].split())
    return '"%s%s"' % (words[:40], "..." if len(words) > 40 or len(text) > 200 else "")


def _vectors_of(answer: dict, count: int, size: int) -> list:
    """Return the vectors of *answer* in the order of their texts, None where it has something else
    for one of several texts (llama.cpp: numbers that are null).  Raises ``ProviderError``.
    """
    data, found = answer.get("data"), [None] * count
    places = set()
    for place, one in enumerate(data if isinstance(data, list) else ()):
        index = one.get("index", place) if isinstance(one, dict) else None
        vector = one.get("embedding") if index is not None else None
        if type(index) is not int or not 0 <= index < count or not isinstance(vector, list):
            raise ProviderError(
                "its answer holds no embeddings",
                "check endpoint and model of the embeddings in clawlite.toml",
            )
        places.add(index)
        if vector and len(vector) != size:
            raise ProviderError(
                "its vectors have %d numbers, and the store says dimensions: %d"
                % (len(vector), size),
                "name the model's own number",
            )
        is_one = any(vector) and not any(
            [type(number) not in (int, float) or not -1e18 < number < 1e18 for number in vector]
        )
        found[index] = vector if is_one else None
    if len(places) < count:
        raise ProviderError(
            "its answer holds %d vectors, and %d were asked for" % (len(places), count),
            "check endpoint and model of the embeddings in clawlite.toml",
        )
    if not any(found):
        raise ProviderError(
            "its answer holds something that is not a vector",
            "check endpoint and model of the embeddings in clawlite.toml",
        )
    return found
