"""A descriptor: a service's description of itself, in JSON (docs/services.md; ADR-017 and ADR-020
of Clawdapus).

1. Version 2 has ``tools``; version 1 has none, and is read as before.
2. ``.claw-tools.json`` is the answer of an MCP server to ``tools/list``: it has only tools.
3. An unknown field may come from a newer service and is no mistake, unless its name nearly matches
   a known one.
"""

import dataclasses
import re
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.document import Place
from clawlite.host.base.problems import did_you_mean, enquote, one_of, value_text
from clawlite.host.documents.sources import Refused
from clawlite.host.models.common import Strict, Text, text_like
from clawlite.host.models.walk import convert
from clawlite.host.schema import validity
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url
from clawlite.protocols.services.service_call import CLAW_ID, placeholders

SNAPSHOT = ".claw-tools.json"  # a file of this name is what an MCP server lists
SERVER_WANTED = "expected the URL of an MCP server, https:// or http:// on this machine"
MAX_TOOLS = 500
MAX_TTL = 86400  # seconds
ANNOTATIONS = {
    "readOnly": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "openWorld": "openWorldHint",
}
_PATH = re.compile(r"/[!-~]*\Z")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}\Z")
_SECRET = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")

ToolName = Annotated[
    str, text_like(r"^[A-Za-z0-9_-]{1,64}\Z", "1 to 64 letters, digits, hyphens and underscores")
]


class HTTP(Strict):
    """How a tool is executed; a model never sees it."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: Text
    body: Literal["json", "form", "query"] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        _path(value, report)
        if value.get("method") in ("GET", "DELETE") and value.get("body") in ("json", "form"):
            report(
                ("body",),
                f"a request with {value['method']} has no body",
                hint="remove it, or put the arguments into the query",
                key=True,
            )


class Tool(Struct):
    name: ToolName
    description: Text | None = None
    inputSchema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    http: HTTP | None = None


class Feed(Struct):
    name: ToolName
    path: Text
    ttl: Annotated[int, Meta(ge=1, le=MAX_TTL)]
    description: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        names = _path(value, report)
        for name in names:
            if name != CLAW_ID:
                report(
                    ("path",),
                    f"nothing fills {{{name}}}: a feed knows only {{{CLAW_ID}}}",
                    hint="remove it from the path",
                )


class Endpoint(Struct):
    method: Text
    path: Text
    description: Text | None = None


class Auth(Struct):
    type: Literal["none", "bearer", "header"]
    env: Text | None = None
    header: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        kind = value.get("type")
        if kind in ("bearer", "header") and "env" not in value:
            report((), 'the field "env" is missing', hint="the name of the credential")
        if kind == "header" and "header" not in value:
            report((), 'the field "header" is missing', hint='such as "X-API-Key"')
        for field, form, wanted in (
            ("env", _SECRET, "1 to 128 of A-Z a-z 0-9 _ . -"),
            ("header", _HEADER, "the name of a header"),
        ):
            text = value.get(field)
            if isinstance(text, str) and text and not form.match(text):
                report((field,), "", wanted, enquote(text))


class Descriptor(Struct):
    """version  1 or 2;  skill: a markdown file beside the descriptor"""

    version: int
    description: Text | None = None
    tools: list[Tool] | None = None
    feeds: list[Feed] | None = None
    endpoints: list[Endpoint] | None = None
    skill: Text | None = None
    auth: Auth | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        version = value.get("version")
        if type(version) is int and version not in (1, 2):
            report(("version",), "", "1 or 2", str(version))
        if version == 1 and "tools" in value:
            report(
                ("tools",),
                "a descriptor of version 1 has no tools",
                hint='say "version": 2',
                key=True,
            )


@dataclasses.dataclass
class Described:
    """A descriptor that has no mistake.

    spec      Descriptor;  place: where it stands
    is_listed the tools are a snapshot of an MCP server's list
    """

    spec: Descriptor
    place: Place
    is_listed: bool


def is_server(url: str) -> bool:
    """Return whether an MCP server may be at *url*: of other machines over TLS alone."""
    try:
        scheme, host, _, _ = parse_url(url)
    except SandboxDenied:
        return False
    return scheme == "https" or host == "localhost" or is_loopback(address_of(host))


def read(name: str, sources, problems, place) -> Described | None:
    """Return the Described in the file *name*; None after its mistakes have been added to
    *problems*, those of its name at *place*.
    """
    try:
        (name,) = sources.expand(name) or (name,)
        document = sources.document(name, problems)
    except Refused as e:
        problems.add(place, (), e.message, hint=e.hint)
        return None
    except ValueError:
        problems.add(place, (), "one file stands here, not a glob", hint="name the file in full")
        return None
    if document is None:
        return None
    before, where = len(problems.found), Place(document)

    def report(path, *args, **named):
        problems.add(where, path, *args, **named)

    data, is_listed = document.data, name.rsplit("/", 1)[-1] == SNAPSHOT
    if is_listed and isinstance(data, dict):
        data = {"version": 2, "tools": data.get("tools", [])}
    if not isinstance(data, dict):
        hint = "name a descriptor of a service, or the list of tools of an MCP server"
        report((), f"expected a descriptor, found {value_text(data)}", hint=hint)
        return None
    spec = convert(data, Descriptor, report)
    _unique(data, report)
    tools = data.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict):
            _tool(tool, index, is_listed, report)
    if spec is None or len(problems.found) > before:
        return None
    return Described(spec, where, is_listed)


def _path(value: dict, report) -> list:
    """Report what is wrong with the path of *value*; return the names of its placeholders."""
    path = value.get("path")
    if not isinstance(path, str) or not path:
        return []
    if not _PATH.match(path) or "#" in path or path.startswith("//"):
        report(("path",), "", "a path that begins with one /, of printable ASCII", enquote(path))
        return []
    try:
        return placeholders(path)
    except ValueError as e:
        report(("path",), f"{e} in {enquote(path)}", hint="a placeholder is written {name}")
    return []


def _unique(data: dict, report) -> None:
    for kind in ("tools", "feeds"):
        seen = {}
        for index, one in enumerate(data[kind] if isinstance(data.get(kind), list) else ()):
            name = one.get("name") if isinstance(one, dict) else None
            if isinstance(name, str) and name in seen:
                report(
                    (kind, index, "name"),
                    f"{kind}[{seen[name]}] has the name {enquote(name)} already",
                    hint="names are unique within a descriptor",
                )
            elif isinstance(name, str):
                seen[name] = index
    if isinstance(data.get("tools"), list) and len(data["tools"]) > MAX_TOOLS:
        report(("tools",), "", f"at most {MAX_TOOLS} tools", str(len(data["tools"])))


def _tool(tool: dict, index: int, is_listed: bool, report) -> None:
    """Report what is wrong with one tool beside the types of its fields."""

    def below(path, *args, **named):
        report(("tools", index, *path), *args, **named)

    schema, http = tool.get("inputSchema"), tool.get("http")
    if isinstance(schema, dict):
        validity.check_arguments(
            schema, lambda path, *a, **named: below(("inputSchema", *path), *a, **named)
        )
    hints = tool.get("annotations")
    for name, hint in hints.items() if isinstance(hints, dict) else ():
        near = did_you_mean(name, [*ANNOTATIONS, "confirmationRequired"])
        if name in ANNOTATIONS or name in ANNOTATIONS.values() or name == "confirmationRequired":
            if not isinstance(hint, bool):
                below(("annotations", name), "", "true or false", value_text(hint))
        elif near:
            below(("annotations", name), "unknown field", hint=near, key=True)
    if is_listed:
        return
    if "http" not in tool:
        below((), "nothing says how it is executed", hint='add "http": {"method", "path"}')
        return
    path = http.get("path") if isinstance(http, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    known = sorted(properties) if isinstance(properties, dict) else []
    try:
        names = placeholders(path) if isinstance(path, str) else []
    except ValueError:
        return  # said by its own check
    for name in names:
        if name != CLAW_ID and name not in known:
            below(
                ("http", "path"),
                f"{{{name}}} is no parameter of this tool",
                hint=did_you_mean(name, known)
                or (f"its inputSchema has {one_of(known)}" if known else "add it to inputSchema"),
            )
