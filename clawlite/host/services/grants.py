"""What an agent may do with services (clawlite.toml): whom it may reach, and which of their tools
it has.  Nothing is granted by itself (Clawdapus ADR-020, "Authority and identity model").

    surfaces = ["service://trading-api"]                # whom it may reach
    tools = ["...", { service = "trading-api", allow = ["get_market_context"] }]
    feeds = [{ service = "trading-api", allow = "all" }]

    [services.trading-api]
    descriptor = "services/trading-api.json"
    url = "http://127.0.0.1:4000"
    mode = "mediated"

1. ``"..."`` stands for what ``tools_defaults`` grants.  Grants of one service are added up: all
   wins, else it is every tool that one of them names.  Without ``tools`` the defaults count, and
   ``tools = []`` grants nothing.
2. A granted tool is a Tool named SERVICE.TOOL, and a service's skill is a Skill of that name that
   uses those tools.
"""

import copy
import dataclasses
import re
from typing import Any, Literal

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.problems import ManifestErrors, did_you_mean, enquote, one_of, value_text
from clawlite.host.documents.primitives import Primitive
from clawlite.host.documents.sources import Refused
from clawlite.host.mcp.pinned import Served, Server
from clawlite.host.models.common import Strict, Text
from clawlite.host.models.walk import convert
from clawlite.host.services import descriptor, skill_text
from clawlite.host.skills.model import SkillSpec
from clawlite.host.tools.model import ToolSpec
from clawlite.protocols.net.netrules import parse_url
from clawlite.protocols.services.service_call import (
    CLAW_ID,
    FORM,
    JSON,
    MEDIATED,
    NATIVE,
    QUERY,
    placeholders,
)

SPREAD = "..."
SCHEME = "service://"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\Z")
_WHERE = {"json": JSON, "form": FORM, "query": QUERY}
_MODES = {"native": NATIVE, "mediated": MEDIATED}


class ServiceSettings(Strict):
    """Where a service is and who calls it: this device (native), or its gateway (mediated), for the
    named devices alone where there are any.
    """

    descriptor: Text
    url: Text
    mode: Literal["native", "mediated"] = "native"
    devices: list[Text] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        if "devices" in value and value.get("mode") != "mediated":
            report(
                ("devices",),
                "only a gateway asks which device calls",
                hint="remove devices, or let a gateway call",
                key=True,
            )


class Grant(Strict):
    service: Text
    allow: Any


@dataclasses.dataclass
class Tool:
    """What executes a granted tool: [name, method, path, where its arguments go, whether claw_id
    is one], of *service*; is_listed: the tool's words are an MCP server's.
    """

    service: str
    row: list
    is_listed: bool
    confirms: bool


@dataclasses.dataclass
class Service:
    """A service that the agent may reach.

    place     of its table in clawlite.toml
    mode      NATIVE or MEDIATED;  url: (scheme, host, port, path before every other)
    spec      descriptor.Descriptor
    tools     [Primitive] that are granted;  feeds: [descriptor.Feed]
    text      what of its skill belongs into the context: "" where the skill is a Skill
    document  the place of its descriptor
    """

    name: str
    place: object
    mode: int
    url: tuple
    devices: list
    spec: descriptor.Descriptor
    tools: list
    feeds: list
    document: object
    text: str = ""


def bind(settings, sources, problems, version: str) -> tuple:
    """Return ([Service], [Primitive]): the services that the agent may reach, and the Tools and
    Skills that it has of them.  Mistakes go to *problems*.
    """
    place, before = settings.place, len(problems.found)
    described, urls = {}, {}
    for name, own in settings.services.items():
        where = place.below("services", name)
        if not NAME.match(name):
            problems.add(
                where, (), "", "1 to 63 letters, digits and hyphens", enquote(name), key=True
            )
        urls[name] = _place(own.url, where.below("url"), problems)
        described[name] = descriptor.read(
            own.descriptor, sources, problems, where.below("descriptor")
        )
    reached = _surfaces(settings, described, problems)
    granted = _grant_all(
        settings.tools, settings.tools_defaults, described, reached, place, problems
    )
    fed = _feeds(settings, described, reached, problems)
    if len(problems.found) > before:
        return [], []
    services, found = [], []
    for name in reached:
        own = settings.services[name]
        service = Service(
            name,
            place.below("services", name),
            _MODES[own.mode],
            urls[name],
            own.devices or [],
            described[name].spec,
            [_tool(name, own, described[name], index, version) for index in granted.get(name, ())],
            fed.get(name, []),
            described[name].place,
        )
        services.append(service)
        found += service.tools + _skill(service, own, sources, problems, version)
    return services, found


def _place(url: str, where, problems) -> tuple:
    """Return (scheme, host, port, path before every other) of *url*, None after a problem."""
    try:
        scheme, host, port, target = parse_url(url)
    except SandboxDenied as e:
        problems.add(where, (), e.message.removeprefix("network refused: "), hint=e.hint)
        return None
    if "?" in target:
        problems.add(
            where,
            (),
            "expected a URL without a query",
            found=enquote(url),
            hint="leave out what follows the question mark",
        )
    return scheme, host, port, target.rstrip("/")


def _surfaces(settings, described: dict, problems) -> list:
    """Return the names of the services that the agent may reach, each once."""
    found = []
    for index, text in enumerate(settings.surfaces):
        where = settings.place.below("surfaces", index)
        name = text.removeprefix(SCHEME)
        if not text.startswith(SCHEME) or not name:
            problems.add(where, (), "", f"{SCHEME}NAME", enquote(text))
        elif name not in described:
            problems.add(where, (), *_unknown(name, described))
        elif name in found:
            problems.add(where, (), f"{enquote(name)} is here twice", hint="leave one of them out")
        else:
            found.append(name)
    return found


def _unknown(name: str, described: dict) -> tuple:
    """Return what ``Problems.add`` takes for a service that nobody declared."""
    hint = did_you_mean(name, described) or f"declare it: [services.{name}] in clawlite.toml"
    return f"there is no service {enquote(name)}", "", "", hint


def _grant_all(tools, defaults: list, described: dict, reached: list, place, problems) -> dict:
    """Return {service: [index of a tool in its descriptor, ...]}."""
    spread = {}
    for index, item in enumerate(defaults):
        if item == SPREAD:
            problems.add(
                place,
                ("tools_defaults", index),
                f"{enquote(SPREAD)} stands for these, in tools",
                hint=f"leave {enquote(SPREAD)} out here",
            )
        else:
            _grant(
                item,
                ("tools_defaults", index),
                "tools",
                described,
                reached,
                place,
                problems,
                spread,
            )  # noqa: E501
    if tools is None:
        return spread
    found, spreads = {}, 0
    for index, item in enumerate(tools):
        if item != SPREAD:
            _grant(item, ("tools", index), "tools", described, reached, place, problems, found)
            continue
        spreads += 1
        if not defaults:
            problems.add(
                place,
                ("tools", index),
                "there is no tools_defaults that it could stand for",
                hint="name the tools, or write tools_defaults",
            )
        elif spreads > 1:
            problems.add(
                place,
                ("tools", index),
                f"{enquote(SPREAD)} is here twice",
                hint="leave one of them out",
            )
    if spreads:
        for name, indexes in spread.items():
            found[name] = sorted({*indexes, *found.get(name, ())})
    return found


def _feeds(settings, described: dict, reached: list, problems) -> dict:
    """Return {service: [Feed, ...]}."""
    found = {}
    for index, item in enumerate(settings.feeds):
        _grant(item, ("feeds", index), "feeds", described, reached, settings.place, problems, found)
    return {
        name: [described[name].spec.feeds[index] for index in numbers]
        for name, numbers in found.items()
    }


def _grant(item, path, kind: str, described, reached, place, problems, found: dict) -> None:
    """Add what *item* of clawlite.toml grants of the *kind* "tools" or "feeds" to *found*."""

    def report(below, *args, **named):
        problems.add(place, (*path, *below), *args, **named)

    if not isinstance(item, dict):
        wanted = "{ service, allow }" + (f" or {enquote(SPREAD)}" if kind == "tools" else "")
        report((), "", wanted, value_text(item))
        return
    grant = convert(item, Grant, report)
    if grant is None:
        return
    name = grant.service
    if name not in described:
        report(("service",), *_unknown(name, described))
    elif name not in reached:
        report(
            ("service",),
            f"nobody could execute this: the agent does not reach {enquote(name)}",
            hint=f'add "{SCHEME}{name}" to surfaces',
        )
    elif described[name] is not None:
        names = [one.name for one in getattr(described[name].spec, kind) or ()]
        allowed = _find_allowed(grant.allow, names, kind, name, report)
        found[name] = sorted({*allowed, *found.get(name, ())})


def _find_allowed(allow, names: list, kind: str, service: str, report) -> list:
    """Return the indexes of *names* that *allow* means."""
    if not names:
        report(
            ("service",),
            f"the descriptor of {enquote(service)} has no {kind}",
            hint="remove this grant, or complete the descriptor",
        )
        return []
    if allow == "all":
        return list(range(len(names)))
    if not isinstance(allow, list) or not allow:
        report(("allow",), "", f'"all" or a list of {kind}', value_text(allow))
        return []
    found = []
    for index, name in enumerate(allow):
        if name not in names:
            hint = did_you_mean(name, names) or f"it has {one_of(names[:12])}"
            report(
                ("allow", index),
                f"{enquote(service)} has no {kind[:-1]} {value_text(name)}",
                hint=hint,
            )
        elif names.index(name) in found:
            report(("allow", index), f"{enquote(name)} is here twice", hint="remove one")
        else:
            found.append(names.index(name))
    return sorted(found)


def _tool(name: str, own, described, index: int, version: str) -> Primitive:
    """Return the Tool primitive of tool *index* of the service *name*."""
    tool = described.spec.tools[index]
    schema = copy.deepcopy(tool.inputSchema or {"type": "object"})
    # an MCP server is called as it lists: nobody there fills claw_id
    has_id = not described.is_listed and _without_id(schema)
    hints, confirms = _hints(tool.annotations or {}, described.is_listed)
    if tool.http is None:
        row = None
    else:
        where = tool.http.body or ("query" if tool.http.method in ("GET", "DELETE") else "json")
        says_id = has_id and CLAW_ID not in placeholders(tool.http.path)
        row = [tool.name, tool.http.method, tool.http.path, _WHERE[where], says_id]
    return Primitive(
        "Tool",
        f"{name}.{tool.name}",
        version,
        {"category": "network", "service": name},
        {},
        ToolSpec(description=tool.description or tool.name, input_schema=schema, annotations=hints),
        f"claw://local/tool/{name}.{tool.name}",
        "service",
        described.place.below("tools", index),
        service=Tool(name, row, described.is_listed, confirms),
        served=_make_handler(name, own, tool) if described.is_listed else None,
    )


def _make_handler(name: str, own, tool) -> Served:
    """Return the handler that calls *tool* of the MCP server with the settings *own*.  The tool's
    pin is its description in the file.
    """
    definition = {"description": tool.description, "inputSchema": tool.inputSchema}
    uri = f"{own.url}#{name}"
    server = Server(name, uri, [own.url], [], [])
    server.is_mediated, server.devices = own.mode == "mediated", own.devices or []
    return Served(server, tool.name, definition, False, None, [])


def _without_id(schema: dict) -> bool:
    """Take claw_id out of *schema*: a caller is known, and not asked who it is.  Return whether it
    was there.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict) or CLAW_ID not in properties:
        return False
    del properties[CLAW_ID]
    if isinstance(schema.get("required"), list):
        schema["required"] = [one for one in schema["required"] if one != CLAW_ID]
        if not schema["required"]:
            del schema["required"]
    return True


def _hints(annotations: dict, is_listed: bool) -> tuple:
    """Return (CKP's annotations, whether a person is asked first).  What a server lists by itself
    makes nothing more permissive.
    """
    hints = {}
    for name, value in annotations.items():
        name = descriptor.ANNOTATIONS.get(name, name)
        if name in descriptor.ANNOTATIONS.values():
            if not (is_listed and value and name in ("readOnlyHint", "idempotentHint")):
                hints[name] = value
    return hints, annotations.get("confirmationRequired") is True


def _skill(service: Service, own, sources, problems, version: str) -> list:
    """Return the Skill that the descriptor of *service* brings, in a list; without granted tools
    its text goes into the context.
    """
    if service.spec.skill is None:
        return []
    folder = own.descriptor.rpartition("/")[0]
    name = f"{folder}/{service.spec.skill}" if folder else service.spec.skill
    where = service.place.below("descriptor")
    try:
        text = sources.read(name, skill_text.MAX_TEXT).decode()
        about, body = skill_text.description_and_body(text, sources.find_path(name))
    except Refused as e:
        problems.add(where, (), e.message, hint=e.hint)
        return []
    except UnicodeDecodeError:
        problems.add(where, (), f"{enquote(name)} is not UTF-8", hint="save it as UTF-8")
        return []
    except ManifestErrors as e:
        problems.extend(e)
        return []
    if not service.tools:
        service.text = body
        return []
    return [
        Primitive(
            "Skill",
            service.name,
            version,
            {},
            {},
            SkillSpec(
                description=about or service.spec.description or f"How to use {service.name}.",
                tools_required=[tool.name for tool in service.tools],
                instruction=body,
            ),
            f"claw://local/skill/{service.name}",
            "service",
            where,
        )
    ]
