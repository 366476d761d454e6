"""Why a provider cannot work as it is configured, and what to do: loaded when a provider refuses a
key or a model.

For a refused key, the hint is the command that sets it.  For an unknown model, the hint has the
models that the server lists."""

from clawlite.core.base.errors import ClawError
from clawlite.core.net.exchange import exchange, hosted
from clawlite.core.net.http1 import request

_MOST = 65536  # bytes of a list of models
_NAMED = 8  # models


def explain(provider, error, status: int, key: str):
    """Add to *error* a hint at what to do; a generator of effects.

    provider  ``provider.Provider``
    error     the ``ProviderError`` that is about to be raised
    status    400, 401, 403 or 404
    key       the key that was sent, "" for none
    """
    said = error.message.lower()
    # Google's API refuses a key with 400
    if status == 401 or status == 403 or status == 400 and "api key" in said:
        error.never = True
        error.hint = (
            "clawlite secrets set %s" % provider.secret
            if key
            else "name its key in the manifest: auth.secret_ref"
        )
    elif status == 404 or "model" in said:
        error.never = True
        names = yield from _models(provider, key)
        error.hint = "change the model, %s; " % provider.model if provider.model else ""
        error.hint += (
            "the server lists " + names if names else "check model and endpoint in the manifest"
        )


def _models(provider, key: str):
    """Return the names of the models that the server lists, "" when it lists none; a generator
    of effects.
    """
    tls, host, port, target = provider.where
    target = (
        target[: target.rfind("/chat/completions" if target.endswith("/chat/completions") else "/")]
        + "/models"
    )
    where = tls, host, port, target
    try:
        part = request("GET", target, hosted(where), provider.headers(key), None)
        status, _, body = yield from exchange(where, [part], _MOST, _keep)
        found = provider.codec.parse(body).get("data") if status == 200 else None
    except (ClawError, ValueError):
        return ""
    names = (
        [one.get("id") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    )
    names = [name for name in names if isinstance(name, str)]
    more = " and %d more" % (len(names) - _NAMED) if len(names) > _NAMED else ""
    return ", ".join([name[:60] for name in names[:_NAMED]]) + more


def _keep(status: int, headers: dict):
    """Keep the whole body."""
