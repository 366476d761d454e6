"""What is written of a request when an agent is built, and what servers want of it."""

import json

import pytest
from provider_builds import build, opened, provider

from clawlite.core.image.image import WIRE
from clawlite.host.proxy.anthropic import Anthropic
from clawlite.host.proxy.dialect import Tool
from clawlite.host.proxy.openai import OpenAI

TOOLS = '''
def read() -> str:
    """Read the soil."""
    return "wet"


def water(seconds: int) -> str:
    """Water it."""
    return "done"
'''


def schemas(body: dict) -> dict:
    found = [tool.get("function", tool) for tool in body["tools"]]
    return {one["name"]: one.get("parameters", one.get("input_schema")) for one in found}


@pytest.mark.parametrize("protocol", ["openai-compatible", "anthropic-native"])
def test_a_schema_always_has_properties(tmp_path, protocol):
    """OpenAI: "object schema missing properties"."""
    image = opened(build(tmp_path, provider("m", protocol=protocol), tools=TOOLS))
    begin = bytes(image.part(WIRE, *image.provider(0)[21][:2]))
    sent = schemas(json.loads(begin + b"]}"))
    assert sent["read"]["type"] == "object" and sent["read"]["properties"] == {}
    assert sent["water"]["type"] == "object" and list(sent["water"]["properties"]) == ["seconds"]
    assert len(sent) == 2


@pytest.mark.parametrize("api", [OpenAI(), Anthropic()])
@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"anyOf": [{"required": ["a"]}]}])
def test_the_proxy_offers_schemas_with_properties(api, schema):
    tool = Tool("s.read", "s__read", "Read.", schema, "s")
    body = {"messages": [{"role": "user", "content": "hi"}]}
    (found,) = schemas(api.offer(body, [tool])).values()
    assert found["type"] == "object" and found["properties"] == {}
    assert {**(schema or {}), **found} == found
