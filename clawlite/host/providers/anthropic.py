"""Messages of Anthropic (CKP 5.2): the system prompt is a separate field, and a request marks
the parts that the provider is to cache (the reference's "Prompt caching")."""

from clawlite.core.providers.refusal import CACHED
from clawlite.host.providers.provider_api import ProviderApi, open_object, parameters

_CACHED = {"type": "ephemeral"}


def _wire(spec, system: str, tools: list) -> tuple:
    body = {"model": spec.model}
    if tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.spec.description or "",
                "input_schema": parameters(tool),
            }
            for tool in tools
        ]
    # Two marks: the API keeps the conversation as far as it goes (core/providers/anthropic.py), and
    # what stands before it by itself, for the request in which older turns are left out.
    if system:  # the API refuses a mark at an empty text
        body["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
    return open_object(body) + b',"messages":[', len(CACHED) if system else 0


API = ProviderApi("/messages", _wire)
