"""Chat completions of OpenAI, and of the many servers that speak them (CKP 5.2)."""

from clawlite.host.providers.provider_api import ProviderApi, open_object, packed, parameters


def _wire(spec, system: str, tools: list, goes_on: bool) -> bytes:
    body = {"model": spec.model, "stream": spec.streaming is not False}
    if body["stream"]:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.spec.description or "",
                    "parameters": parameters(tool),
                },
            }
            for tool in tools
        ]
    return open_object(body) + b',"messages":[' + packed({"role": "system", "content": system})


API = ProviderApi("/chat/completions", _wire)
