"""Requests to the providers of an agent, in their order (CKP 0.2.0, 5.2).

    limits -> key -> request -> the head of its answer       an attempt
    a failure that may pass -> wait -> the next attempt      at most ``max_attempts``
    any failure but the runner's own -> the next provider

Once an answer has begun, it is the answer: nothing is asked again.  Hosts, keys and limits are
those of the image; redirects are not followed, and no proxy of the environment is used.
"""

import asyncio
import time

from clawlite.core.base.errors import (
    ClawError,
    ProviderError,
    QuotaExceeded,
    TransientError,
)
from clawlite.core.net.exchange import CONNECT_MS, SILENCE_MS, error_of, without
from clawlite.core.policy.ledger import COST, DAY_COST
from clawlite.core.policy.meter import HOUR_TOKENS, Meter
from clawlite.core.providers import refusal
from clawlite.core.providers.failure import outside
from clawlite.core.providers.provider import OAUTH2
from clawlite.core.providers.provider_error import advise
from clawlite.host.base.problems import network_reason
from clawlite.host.proxy.amounts import amount
from clawlite.host.proxy.dialect import for_reader, json_text

MAX_ANSWER = 8 << 20  # bytes of an answer that is read here
MAX_REFUSAL = 65536  # bytes of one that is no answer
_OWN = (400, 413, 422)  # statuses that say what is wrong with the runner's request
_KEY = (401, 403)  # of the gateway's key, which is none of the runner's
_KEY_S = 30  # a key is looked up again after so long
_IDLE_S = 15  # that a connection stays open: servers close theirs earlier than they say
# of a runner's request; what else it says is between the runner and the proxy
_HEADERS = ("accept", "anthropic-version", "anthropic-beta", "openai-beta")


class Failed(ProviderError):
    """No provider answered.

    status  of HTTP, for the runner;  body: bytes of the provider's own refusal, or None
    """

    def __init__(self, e: ClawError, status: int, body=None, after_ms=None):
        super().__init__(e.message, e.hint)
        self.status, self.body, self.after_ms = status, body, after_ms


class RunnerMeter(Meter):
    """The meter of a runner.  Requests under way hold what they may come to, so that of the limits
    of a day and of an hour others have what is left.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self._held: dict = {}  # request -> (provider, tokens read, tokens written)

    @property
    def counts_money(self) -> bool:
        return self._cost is not None or bool(self._rates & COST)

    def hold(self, request, provider, read: int, written: int) -> None:
        """Let *request* hold so many tokens of *provider*, until ``release``."""
        self._held[request] = provider, read, written

    def release(self, request) -> None:
        """What *request* held is counted now, or was not used."""
        self._held.pop(request, None)

    def read_use(self, key: str, seconds: int) -> int:
        """Return what is used of *key* in the period of *seconds*, and held."""
        held = 0
        for provider, read, written in self._held.values():
            if key == DAY_COST:
                held += read * provider.prices[0] + written * provider.prices[1]
            elif key in (HOUR_TOKENS, provider.name):
                held += read + written
        return super().read_use(key, seconds) + held


class Outgoing:
    """A request as a runner made it.

    providers  list of ``Provider``, the one it asks first
    raw        bytes of its body, sent as they are where nothing must change; or None
    body       dict; headers: as the runner sent them, by lower-case name; query: str
    meter      ``meter.Meter``
    """

    def __init__(self, providers: list, raw, body: dict, headers, query: str, meter):
        self.providers, self.raw, self.body = providers, raw, body
        self.headers, self.query, self.meter = headers, query, meter

    def data(self, provider, allowed) -> bytes:
        """Return the body for *provider*; *allowed*: tokens that each of its answers may have at
        most, or None.
        """
        if self.raw is not None and allowed is None and self.body["model"] == provider.model:
            return self.raw
        body = {**self.body, "model": provider.model}
        body["messages"] = for_reader(body.get("messages"), provider.key)
        name = provider.codec.change("max_tokens")
        if allowed is not None and name != "":
            body[name or "max_tokens"] = allowed
        return json_text(body).encode("utf-8", "replace")


class _Asking(refusal.Asking):
    """One question to a provider whose request a runner wrote: only the field that says how many
    tokens an answer may have can be another one, because the proxy added it.
    """

    def adapt_limit(self, said: bytes, allowed: int):
        """Return a line for who runs the gateway when the question is to be asked again, else
        None.

        said  the refusal;  allowed: tokens that the answer could have
        """
        self._allowed, self._is_limited = allowed, True
        said, limit = said[: refusal.MAX_SAID].lower(), self._limit()
        if refusal.find_word(said, limit) < 0 or refusal.has_any(said, refusal.FULL):
            return None
        line = self._lower_limit(said, limit)
        if line is None and refusal.has_any(said, refusal.UNKNOWN):
            line = self._rename_limit(said, limit)
        return line


class Upstream:
    """Connections to providers.

    secret  function(agent, name) -> value; may block; raises ``ClawError``
    note    function(text) for who runs the gateway
    """

    def __init__(self, secret, note):
        self._secret, self._note = secret, note
        self._keys = {}  # (agent, name) -> (value, monotonic s of its end)
        self._session = None

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def ask(self, agent: str, outgoing: Outgoing, take) -> tuple:
        """Return (provider, what *take* made of its answer).  Raises ``Failed``.

        take  coroutine function(response of aiohttp), whose head has come and says 2xx; what it
              raises is a failure of the attempt.  It closes the response, or its result does.
        """
        last = None
        for provider in outgoing.providers:
            due_ms = outgoing.meter.now_ms() + provider.whole_ms
            attempt, loadings = 1, 0
            while True:
                try:
                    return provider, await self._attempt(agent, provider, outgoing, take)
                except Failed:
                    raise
                except QuotaExceeded as e:
                    self._note(e.message)
                    e.hint = e.hint or "raise that limit, or wait until its hour or day is over"
                    last = Failed(e, 429)
                    break
                except ProviderError as e:
                    # one rule for all who ask
                    wait, said = provider.plan_next(e, attempt, loadings, due_ms, outgoing.meter)
                    hint = e.hint or advise(provider, e)
                    is_told = wait is None and provider is not outgoing.providers[-1]
                    self._note(said + ")" + (f" - {hint}" if is_told else ""))
                    last = Failed(
                        ProviderError(said.rpartition(" (tried ")[0], hint),
                        getattr(e, "runners_status", 502),
                        getattr(e, "body", None),
                        getattr(e, "wait_ms", None),
                    )
                    if wait is None:
                        break
                    loadings += e.is_loading
                    attempt += not e.is_loading
                    await asyncio.sleep(wait / 1000)
        raise last

    async def _attempt(self, agent: str, provider, outgoing: Outgoing, take, again=None):
        """Return what *take* makes of an answer; *again*: ``_Asking`` of a request that was
        refused.
        """
        meter = outgoing.meter
        key = await self._key(agent, provider)
        while wait := meter.pause(provider):
            await asyncio.sleep(wait / 1000)
        allowed = self._reserve(provider, outgoing)
        meter.count_request(provider)
        response = await self._post(provider, outgoing, key, allowed)
        try:
            await self._check(agent, provider, response, key, meter)
            return await take(response)
        except Failed as e:
            response.close()
            again = again or _Asking(provider)
            said = e.body or e.message.encode()
            line = None if allowed is None else again.adapt_limit(said, allowed)
            if line is None:
                raise
            self._note(f"provider {provider.name}: {line}")
        except BaseException:
            response.close()
            raise
        return await self._attempt(agent, provider, outgoing, take, again)

    def _reserve(self, provider, outgoing: Outgoing):
        """Return how many tokens each answer may have, None where that is as the runner says; the
        meter holds them, and those of the request.  Raises ``QuotaExceeded``.
        """
        asked = len(outgoing.raw or json_text(outgoing.body)) // 4
        wanted = amount(outgoing.body)
        outgoing.meter.release(outgoing)  # it may be another attempt
        allowed = outgoing.meter.admit_request(provider, asked, wanted.most, wanted.least)
        outgoing.meter.hold(outgoing, provider, asked, allowed)
        if wanted.length is not None or allowed == wanted.most:
            return None
        allowed = (allowed - wanted.beside) // wanted.choices
        return refusal.limit(provider, allowed, 0) if provider.changes else allowed

    async def _post(self, provider, outgoing: Outgoing, key: str, allowed):
        import aiohttp
        import yarl

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_MS / 1000, sock_read=SILENCE_MS / 1000
                ),
            )
        tls, host, port, target = provider.where
        place = f"[{host}]" if ":" in host else host
        url = f"http{'s' * tls}://{place}:{port}{target}"
        headers = dict(provider.headers(key))
        headers["Accept"] = "application/json"
        for name in _HEADERS:
            if name in outgoing.headers:
                headers = {k: v for k, v in headers.items() if k.lower() != name}
                headers[name] = outgoing.headers[name]
        headers["Content-Type"] = "application/json"
        url = yarl.URL(url + (f"?{outgoing.query}" if outgoing.query else ""), encoded=True)
        first_ms = provider.first_ms if outgoing.body.get("stream") else provider.whole_ms
        try:
            async with asyncio.timeout(first_ms / 1000):
                return await self._session.post(
                    url,
                    data=outgoing.data(provider, allowed),
                    headers=headers,
                    allow_redirects=False,
                )
        except TimeoutError:
            raise ProviderError(f"it said nothing for {first_ms // 1000} s") from None
        except aiohttp.ClientConnectorCertificateError as e:
            raise ProviderError(f"certificate of {host}: {e.certificate_error}") from None
        except aiohttp.ClientConnectorError as e:
            raise TransientError(f"no connection to {host}: {network_reason(e)}") from None
        except aiohttp.ClientResponseError as e:
            raise ProviderError(f"its answer is no HTTP: {e.message[:200]}") from None
        except (aiohttp.ClientError, OSError) as e:
            raise TransientError(f"the connection broke: {e}") from None
        except ValueError:  # of a header
            raise ProviderError("its key has characters that no header can carry") from None

    async def _check(self, agent: str, provider, response, key: str, meter) -> None:
        """Raise ``ClawError`` unless *response* is an answer."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        kind = headers.get("content-type", "application/json")
        is_ok = 200 <= response.status < 300
        encoding = headers.get("content-encoding", "identity")
        if is_ok and encoding != "identity":
            raise ProviderError(
                f"the answer is compressed ({encoding[:40]}), which nobody asked for"
            )
        if is_ok and ("json" in kind or "event-stream" in kind):
            return
        body = without(key, await read(response, MAX_REFUSAL, is_cut=True))
        message = provider.codec.error(response.status, body)
        if is_ok:
            raise ProviderError(f"expected JSON, found {message.partition(': ')[2]}")
        if response.status in _KEY:
            self._keys.pop((agent, provider.secret), None)
            raise ProviderError(
                f"it refuses the gateway's key: {message}",
                f"clawlite secrets set {provider.secret}, where the gateway runs",
            )
        e = error_of(response.status, headers, message, meter.now_s())
        e = outside(e, response.status, provider.codec.parse_report(body), message)
        if "json" in kind and encoding == "identity" and response.status >= 400:
            e.runners_status, e.body = response.status, body
        if response.status in _OWN and not isinstance(e, TransientError):
            raise Failed(e, response.status, getattr(e, "body", None))
        raise e

    async def _key(self, agent: str, provider) -> str:
        """Return the key of *provider*, "" when it wants none."""
        if provider.auth == OAUTH2:
            raise ProviderError(
                "the proxy does not sign in with oauth2",
                "give this provider auth of type bearer, or ask it from a device",
            )
        if not provider.auth:
            return ""
        place = agent, provider.secret
        value, end_s = self._keys.get(place, ("", 0))
        if time.monotonic() >= end_s:
            loop = asyncio.get_running_loop()
            try:
                value = await loop.run_in_executor(None, self._secret, *place)
            except ClawError as e:
                self._note(f"{e.message} - {e.hint}")
                raise ProviderError(
                    f"the gateway has no secret {provider.secret} that it can use",
                    "see the output of clawlite gateway",
                ) from None
            self._keys[place] = value, time.monotonic() + _KEY_S
        return value


async def first_piece(response) -> bytes:
    """Return the first bytes of the body of *response*.  Raises ``TransientError``."""
    import aiohttp

    try:
        return await response.content.readany()
    except (aiohttp.ClientError, TimeoutError, OSError) as e:
        raise TransientError(f"the connection broke: {e or type(e).__name__}") from None


async def read(response, most: int, is_cut: bool = False) -> bytes:
    """Return the body of *response*, of at most *most* bytes: a longer one is cut, or raises
    ``ProviderError``; one that breaks off has ``received``, the bytes that came.
    """
    import aiohttp

    body = bytearray()
    try:
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > most:
                if is_cut:
                    return bytes(body[:most])
                raise ProviderError(f"the answer is longer than {most} bytes")
    except (aiohttp.ClientError, TimeoutError, OSError) as e:
        if not is_cut:
            error = TransientError(f"the connection broke: {e or type(e).__name__}")
            error.received = len(body)
            raise error from None
    return bytes(body)
