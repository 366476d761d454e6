"""Chat completions of OpenAI, and of the many servers that speak them (CKP 5.2)."""

from clawlite.host.providers.provider_api import ProviderApi, open_object, pack, parameters


def _wire(spec, system: str, tools: list) -> tuple:
    body = {"model": spec.model}
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
    first = pack({"role": "system", "content": system})
    return open_object(body) + b',"messages":[' + first, len(first)


API = ProviderApi("/chat/completions", _wire)
