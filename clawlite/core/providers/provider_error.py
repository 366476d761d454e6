"""What a person can do about a provider's failure, or about a request that its server has cut:
loaded when no other attempt follows.

1. Status and codes decide (core/providers/failure.py); words do only beside a status that several
   faults share, and never one alone.
2. Each hint names the address or the setting that it is about.
3. The models that a server lists say whether an address or a model's name is wrong, and how much
   one that is loaded can read.
"""

from clawlite.core.base.errors import ClawError, TransientError
from clawlite.core.net.exchange import exchange, host_of
from clawlite.core.net.http1 import request
from clawlite.core.policy.meter import MAX_TOKENS
from clawlite.core.providers.failure import QUOTA

_MOST = 65536  # bytes of a list of models
_NAMED = 8  # models
_LIST_MS = 5000  # time until the first byte of a list
_LEAST_WINDOW = 256  # tokens
_AROUND = 4  # tokens by which counts of one prompt differ
_KEY = (
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "invalid_authentication_error",
    "unauthenticated",
)
_MODEL = ("model_not_found", "model_not_exist", "invalid_model", "model_not_available")
_REGION = ("unsupported_country_region_territory", "unsupported_country", "region_not_supported")
_REGION_WORDS = ("location is not supported", "available in your region", "available in your count")
_TOOL_WORDS = ("not support", "support tool", "unsupported", "tool-call-parser", "--jinja")
# where the APIs of model servers begin, for an endpoint that is too short
_BASES = ("/v1", "/api/v1", "/openai/v1")


def explain(provider, error, key: str):
    """Add to *error* a hint at what to do; a generator of effects.

    provider  ``provider.Provider``
    error     the ``ProviderError`` that is about to be raised
    key       the key that was sent, "" for none
    """
    status = error.status
    address = _address(provider.where)
    hint = ""
    is_key = _has(error, _KEY) or status == 400 and "api key not valid" in error.message.lower()
    if status == 401 or status == 403 or is_key:
        error.never = True
        if _is_elsewhere(error):
            hint = "%s does not serve this country: use another provider" % address
        elif key:
            hint = "set a key that %s takes: clawlite secrets set %s" % (address, provider.secret)
        else:
            hint = "name the key for %s in the manifest: auth.secret_ref" % address
    elif status:
        hint = _find_hint(provider, error, address)
        error.never = error.never or hint != "" and not isinstance(error, TransientError)
        if not hint and not isinstance(error, TransientError):
            hint = yield from _by_lists(provider, error, key, address)
    error.hint = hint or _other(error, address)


def advise(provider, error) -> str:
    """Return the hint at what to do about *error* that needs no question to the server."""
    address = _address(provider.where)
    return _find_hint(provider, error, address) or _other(error, address)


def _find_hint(provider, error, address: str) -> str:
    """Return the hint for a failure that status and codes tell, "" for another."""
    status, said = error.status, error.message.lower()
    if error.is_loading:
        return "%s still loads its model: ask again later, or raise [answer] total_ms" % address
    if status == 402 or _has(error, QUOTA):
        return "the account at %s is used up: add credit there, or use another provider" % address
    if _is_elsewhere(error):
        return "%s does not serve this country: use another provider" % address
    if status in (400, 404, 422, 500, 501) and "tool" in said:
        for words in _TOOL_WORDS:
            if words in said:
                return (
                    "%s takes no tools for the model %s: use a model that calls tools, or start "
                    "the server with its tool calls turned on" % (address, provider.model)
                )
    if status == 429:
        return "wait, or ask less often: the limit is that of the account at %s" % address
    return ""


def _by_lists(provider, error, key: str, address: str):
    """Return the hint for a request that the server at *address* did not take, by the models that
    it lists; a generator of effects.
    """
    status = error.status
    target = provider.where[3]
    is_azure = ".azure.com" in provider.where[1] or "/openai/deployments/" in target
    if is_azure and (status == 404 or "api-version" in error.message):
        error.never = True
        if "api-version=" not in target:
            return (
                "end the endpoint with ?api-version= and a version, or use Azure's address "
                "https://NAME.openai.azure.com/openai/v1, instead of %s" % address
            )
        return "check the deployment in %s, and its api-version" % address
    is_model = _has(error, _MODEL) or "model" in error.codes
    is_named = _names(error.message, provider.model)
    if status not in (404, 405) and not is_model and not is_named:
        return ""
    error.never = status in (404, 405) or is_model
    base = _base(target)
    names = yield from _models(provider, base, key)
    if names and (is_model or provider.model not in names):
        error.never = True
        return "change the model, %s; %s lists %s" % (provider.model, address, _some(names))
    if is_model or status not in (404, 405):
        return "check the model, %s, at %s" % (provider.model, address) if is_model else ""
    if names:
        return "check the provider's protocol: %s lists the model %s, but does not take this" % (
            _at(provider, base),
            provider.model,
        )
    if not _is_base(base):
        for other in [base + "/v1"] + [other for other in _BASES if other != base + "/v1"]:
            if (yield from _models(provider, other, key)):
                right = _at(provider, other)
                return "write %s as the endpoint, instead of %s" % (right, _at(provider, base))
        return "check the endpoint, %s: most servers want %s/v1" % (
            _at(provider, base),
            _at(provider, base),
        )
    return "check the endpoint, %s, and the model, %s" % (_at(provider, base), provider.model)


def _other(error, address: str) -> str:
    """Return the hint for a failure without a reason that this module knows."""
    if error.message.startswith("it said nothing") and not isinstance(error, TransientError):
        return (
            "wait longer for the first word of %s: raise [answer] first_byte_ms in clawlite.toml, "
            "or use a smaller model" % address
        )
    if isinstance(error, TransientError):
        return "wait, check that the network and %s are up, and send it again" % address
    if error.message.startswith("certificate"):
        return "check the certificate of %s and the clock; [tls] names authorities" % address
    if error.status:
        return "check what %s takes: the provider's protocol, model and limits" % address
    return "check that the provider's protocol is that of %s" % address


def _has(error, names: tuple) -> bool:
    for code in error.codes:
        if code in names:
            return True
    return False


def _names(message: str, model: str) -> bool:
    """Return whether *message* has the name *model* as a word of its own."""
    for word in message.split():
        word = word.strip("`'\".,;:()[]")
        if model and (word == model or word.endswith("/" + model)):
            return True
    return False


def _is_elsewhere(error) -> bool:
    """Return whether the server refuses the place that the request came from."""
    if error.status == 451 or _has(error, _REGION):
        return True
    said = error.message.lower()
    for words in _REGION_WORDS:
        if error.status in (400, 403) and words in said:
            return True
    return False


def _is_base(base: str) -> bool:
    for one in _BASES:
        if base.endswith(one):
            return True
    return False


def _base(target: str) -> str:
    """Return the path of *target* without what the API's requests add to it."""
    path = target.split("?")[0]
    for end in ("/chat/completions", "/messages"):
        if path.endswith(end):
            return path[: -len(end)]
    return path


def _at(provider, base: str) -> str:
    return _address(provider.where[:3] + (base,))


def _address(where: tuple) -> str:
    """Return the URL of *where*, without its query."""
    return "%s://%s%s" % ("https" if where[0] else "http", host_of(where), where[3].split("?")[0])


def _some(names: list) -> str:
    more = " and %d more" % (len(names) - _NAMED) if len(names) > _NAMED else ""
    return ", ".join([name[:60] for name in names[:_NAMED]]) + more


def _models(provider, base: str, key: str):
    """Return the names of the models that the server lists below *base*, none when it lists none;
    a generator of effects.
    """
    found = yield from _get(provider, base + "/models", key, "data")
    return [one["id"] for one in found if isinstance(one.get("id"), str)]


def _get(provider, target: str, key: str, field: str):
    """Return the objects in the list *field* of what the server says of *target*, none when it has
    no such list; a generator of effects.
    """
    where = provider.where[:3] + (target,)
    try:
        part = request("GET", target, host_of(where), provider.headers(key), None)
        status, _, body = yield from exchange(where, [part], _MOST, _keep, _LIST_MS)
        found = provider.codec.parse(body).get(field) if status == 200 else None
    except (ClawError, ValueError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def explain_cut(provider, told: int, sent: int, key: str):
    """Return what a person is told when the server has read only a part of a request, "" when it
    has read all of it; a generator of effects.  Later requests get the length that it can read.

    told  tokens that it says to have read, few of them for *sent* characters
    Source  Ollama, which says nothing itself: what is longer than its context loses its oldest
            messages, and what is still longer is cut to the half of the context (four tokens of
            its beginning, and the end), in older versions to all of it.  GET /api/ps tells how
            long the context is.  Its API for other clients takes no num_ctx.
    """
    base = _base(provider.where[3])
    base = base[:-3] if base.endswith("/v1") else base
    window = 0
    for one in (yield from _get(provider, base + "/api/ps", key, "models")):
        if one.get("name") in (provider.model, provider.model + ":latest"):
            window = one.get("context_length")
    if not isinstance(window, int) or window < told or window < _LEAST_WINDOW:
        return ""
    is_cut = abs(told - window // 2 - 2) <= _AROUND or told >= window - 4 * _AROUND
    if not is_cut and sent <= 4 * window or not is_cut and sent <= 8 * told:
        return ""
    if provider.window is None or window < provider.window:
        provider.learn("max_context_window", "%d" % window, False)
    return (
        "it read %d tokens of about %d: its context has %d, and it cuts what is longer without a "
        "word. Start it with OLLAMA_CONTEXT_LENGTH=%d, or give the model PARAMETER num_ctx in its "
        "Modelfile, and set limits.max_context_window of the provider %s in the manifest to the "
        "same number. Until then the oldest turns are left out"
        % (told, sent // 4, window, _round(sent // 3 + MAX_TOKENS), provider.name)
    )


def _round(tokens: int) -> int:
    """Return the power of two from *tokens* on, which is what people give a context."""
    size = 4096
    while size < tokens:
        size *= 2
    return size


def _keep(status: int, headers: dict):
    """Keep the whole body."""
