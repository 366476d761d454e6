"""Remote providers (CKP 5.2): a row for the device, and the part of every request that never
changes.

What a device would only forward (model, tools with their schemas, the system prompt) is written as
JSON here, once; the device adds the conversation (core/providers/provider.py).  Tools that policy
always denies are not offered to a model."""

import dataclasses
import importlib
import re
import urllib.parse

from msgspec import structs

from clawlite.core.net.oauth2 import percent_encode
from clawlite.core.providers.provider import (
    BEARER,
    CONSTANT,
    EXPONENTIAL,
    KEY_HEADER,
    LINEAR,
    NONE,
    OAUTH2,
)
from clawlite.host.policy.folding import nano
from clawlite.protocols.image import features

ENDPOINT = "write a base URL such as https://api.example.com/v1"  # the hint for a wrong one
_NO_HTTP = "expected http://HOST/... or https://HOST/..."
_NO_BASE = "expected a base URL without ? and #"
# what Azure's older addresses of a deployment end with: requests want it behind the API's path
_API_VERSION = re.compile(r"api-version=[A-Za-z0-9.-]+")
# {what a Provider's ``protocol`` says: its ``provider_api.ProviderApi``}
APIS = {
    api.protocol: importlib.import_module("clawlite.host.providers." + api.codec).API
    for api in features.APIS
}
AUTH = {"none": NONE, "bearer": BEARER, "api-key-header": KEY_HEADER, "oauth2": OAUTH2}
BACKOFF = {"exponential": EXPONENTIAL, "linear": LINEAR, "constant": CONSTANT}
EMBEDDINGS = "/embeddings"
_SECURE = re.compile(r"https://|http://(127(\.[0-9]+){3}|\[::1\]|localhost)([:/]|\Z)")
MAX_ATTEMPTS, DELAY_MS = 3, 1000  # without a retry block


def row(provider, settings, prefix: list, bare: list) -> list:
    """Return the record of *provider* (a Provider primitive, its endpoint checked), as
    ``core.provider.Provider`` reads it.

    settings  of clawlite.toml: prices, and the server of tokens
    prefix    [offset, length, bytes at its end that a server may want otherwise] in the section
              WIRE of what every request to it begins with; bare: the same without tools
    """
    spec = provider.spec
    api = APIS[spec.protocol]
    limits, retry = spec.limits, spec.retry
    price = settings.prices.get(spec.model)
    return [
        provider.name,
        features.API_NUMBERS[spec.protocol],
        *_where(spec.endpoint, api.path),
        spec.model,
        AUTH[spec.auth.type],
        spec.auth.secret_ref or "",
        token_row(settings.oauth2[provider.name]) if spec.auth.type == "oauth2" else None,
        spec.streaming is not False,
        retry.max_attempts if retry and retry.max_attempts else MAX_ATTEMPTS,
        BACKOFF[retry.backoff or "exponential"] if retry else EXPONENTIAL,
        retry.initial_delay_ms if retry and retry.initial_delay_ms is not None else DELAY_MS,
        *[
            getattr(limits, name) if limits else None
            for name in (
                "tokens_per_day",
                "tokens_per_request",
                "requests_per_minute",
                "max_context_window",
            )
        ],
        settings.answer.first_byte_ms,
        settings.answer.total_ms,
        [-(-nano(price.input) // 1000000), -(-nano(price.output) // 1000000)] if price else [0, 0],
        prefix,
        bare,
        [list(change) for change in sorted(settings.dialect.get(provider.name, {}).items())],
    ]


def embedding_row(provider, model: str, settings) -> list:
    """Return the record of *provider* as one that makes embeddings with *model*: nothing of its
    requests is prepared.
    """
    spec = structs.replace(provider.spec, model=model)
    found = row(dataclasses.replace(provider, spec=spec), settings, [0, 0, 0], [0, 0, 0])
    found[2:6] = _where(spec.endpoint, EMBEDDINGS)
    return found


def _where(endpoint: str, path: str) -> list:
    tls, host, port, own = place_of(endpoint)
    query = urllib.parse.urlsplit(endpoint).query
    return [tls, host, port, (own.rstrip("/") + path or "/") + (query and "?" + query)]


def token_row(server) -> list:
    """Return the record that ``core/net/oauth2.py`` reads, of a ``settings.OAuth2``."""
    return [
        *place_of(server.endpoint),
        percent_encode(server.client_id),
        percent_encode(server.scope or ""),
    ]


def wire(provider, system: str, tools: list) -> tuple:
    """Return (JSON of a request up to the first message of the conversation, bytes at its end that
    a server may want otherwise).

    tools  Tool primitives that the model may call
    """
    return APIS[provider.spec.protocol].wire(provider.spec, system, tools)


def place_of(endpoint: str) -> list:
    """Return [tls, host, port, target] of the URL *endpoint*, whose path stays as it is."""
    url = urllib.parse.urlsplit(endpoint)
    tls = url.scheme == "https"
    return [tls, url.hostname, url.port or (443 if tls else 80), url.path or "/"]


def is_secure(url: str) -> bool:
    """Return whether *url* is https, or http to this machine."""
    return _SECURE.match(url) is not None


def endpoint_problem(endpoint: str, is_provider: bool = False) -> str:
    """Return what is wrong with an endpoint for HTTP, or "".

    is_provider  it may end with ``?api-version=`` and a version
    """
    try:
        url = urllib.parse.urlsplit(endpoint)
        port = url.port
    except ValueError as e:
        return str(e)
    if url.scheme not in ("http", "https") or not url.hostname:
        return _NO_HTTP
    if url.username is not None or url.password is not None:
        return "a key or password has no place in a URL; name it with auth.secret_ref"
    has_version = is_provider and _API_VERSION.fullmatch(url.query)
    if url.fragment or url.query and not has_version:
        return _NO_BASE
    if port == 0 or not (endpoint.isascii() and endpoint.isprintable()) or " " in endpoint:
        return "expected ASCII without blanks, and a port from 1 to 65535"
    return ""
