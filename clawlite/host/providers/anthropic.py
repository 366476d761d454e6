"""Messages of Anthropic (CKP 5.2): the system prompt is a field of its own."""

from clawlite.core.providers.provider import ANTHROPIC
from clawlite.host.providers.provider_api import ProviderApi, begun, parameters


def _wire(spec, system: str, tools: list) -> bytes:
    body = {"model": spec.model, "stream": spec.streaming is not False, "system": system}
    if tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.spec.description or "",
                "input_schema": parameters(tool),
            }
            for tool in tools
        ]
    return begun(body) + b',"messages":['


API = ProviderApi("anthropic-native", ANTHROPIC, "anthropic", "/messages", _wire)
