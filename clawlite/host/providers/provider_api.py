"""What a provider API declares to the compiler: one module of this room for each, which ends with a
``ProviderApi``.  Its row in protocols/image/features.py names the module.
"""

import dataclasses
import json
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class ProviderApi:
    """One HTTP API of remote models.

    path      what follows the endpoint in the target of a request
    wire      function(spec, system: str, tools: list of Tool primitives) -> (bytes, int): the JSON
              of a request up to the first message of the conversation, and how many bytes at its
              end a server may want otherwise (``Codec.begin``)
    """

    path: str
    wire: Callable


def pack(value: object) -> bytes:
    """Return *value* as the shortest JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def open_object(body: dict) -> bytes:
    """Return *body* as JSON without its last brace: more fields follow."""
    return pack(body)[:-1]


def parameters(tool) -> dict:
    """Return the JSON Schema of what a *tool* takes.  Servers refuse one that is not an object with
    ``properties``, also for a tool that takes nothing.
    """
    return {"properties": {}, **(tool.spec.input_schema or {}), "type": "object"}
