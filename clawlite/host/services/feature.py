"""The section SERVICES of an image: how the tools of services are executed, without what a model
sees, and without a credential (protocols/services/service_call.py reads it).
"""

from collections import namedtuple

from clawlite.core.base.render import canonical
from clawlite.core.image.image import SERVICES
from clawlite.host.base.problems import enquote
from clawlite.host.mcp.injection_check import gives_orders
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.sandbox import sandboxes
from clawlite.host.services.descriptor import SERVER_WANTED, is_server
from clawlite.host.services.grants import NAME
from clawlite.host.tools import skill_tools
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import is_listed
from clawlite.protocols.services.service_call import BEARER, HEADER, MEDIATED, NATIVE, SERVED

MAX_ALIAS = 64  # characters of a name before a provider
_Rules = namedtuple("_Rules", "network hosts")


def compile_sections(manifest, work) -> dict:
    """Compile the rows of ``service_call.Service``; None without any."""
    work.texts.append(_describe)
    rows = []
    for service in manifest.services:
        if service.feeds or _list_requests(service):
            rows.append(
                [
                    service.name,
                    service.mode,
                    *service.url,
                    _auth(service),
                    sorted(service.devices),
                    [tool.service.row for tool in _list_requests(service)],
                    [[feed.name, feed.path, feed.ttl] for feed in service.feeds],
                ]
            )
    for server in _find_mediated(manifest):  # the section MCP has the rest of it
        devices = sorted(server.devices)
        rows.append([server.name, MEDIATED, SERVED, "", 0, "", None, devices, [], []])
    return {SERVICES: rows or None}


def _find_mediated(manifest) -> list:
    """Return the MCP servers that a gateway calls (``host.mcp.pinned.Server``), each once."""
    servers = [tool.served.server for tool in manifest.tools if tool.served]
    return list({one.name: one for one in servers if one.is_mediated}.values())


def _abilities(manifest) -> set:
    """Return what a device must have to execute the granted tools and to fetch the feeds."""
    modes = {
        service.mode for service in manifest.services if service.feeds or _list_requests(service)
    }
    modes |= {MEDIATED} if _find_mediated(manifest) else set()
    found = {"services"} if NATIVE in modes else set()
    gateway = manifest.settings.gateway
    if MEDIATED in modes and gateway:
        found |= {"gateway", "mediated" if gateway.wire == "tcp" else "mediated-line"}
        found |= {"lan"} if gateway.wire == "tcp" else set()
    return found


def _list_requests(service) -> list:
    """Return the tools of *service* that are HTTP requests: the others are an MCP server's."""
    return [tool for tool in service.tools if tool.served is None]


def _auth(service) -> list | None:
    """Return how a gateway shows the service's credential; a device has credentials of its own."""
    auth = service.spec.auth
    if service.mode == NATIVE or auth is None or auth.type == "none":
        return None
    if auth.type == "bearer":
        return [BEARER, "Authorization", auth.env]
    return [HEADER, auth.header, auth.env]


def check(manifest, at_use: bool) -> None:
    """Add a problem for each service that could not be called, and each tool of one that could not
    be offered to a model.
    """
    others = {
        skill_tools.name_of_call(tool): tool
        for tool in manifest.tools + skill_tools.as_tools(manifest)
        if not tool.service
    }
    for service in manifest.services:
        if service.tools or service.feeds:
            _reach(manifest, service, *service.url[:2])
        if any(tool.served for tool in service.tools):
            _server(manifest, service)
        if service.spec.tools is None:
            _check_texts(manifest, service)
        if service.mode == MEDIATED and not service.spec.tools and not service.spec.feeds:
            _problem(
                manifest,
                service,
                "mode",
                "a gateway would have nothing to call: the descriptor has neither tools nor feeds",
                "leave mode out, or complete the descriptor",
            )
        for tool in service.tools:
            _tool(manifest, tool)
            _refuse_alike(manifest, tool, others)
    names = [service.name for service in manifest.services]
    for tool in manifest.tools:
        if tool.served and tool.served.server.is_mediated and not tool.service:
            _check_mediated(manifest, tool, names)


def _problem(manifest, service, field: str, message: str, hint: str = "") -> None:
    manifest.problems.add(service.place, (field,), message, hint=hint)


def _reach(manifest, service, scheme: str, host: str) -> None:
    """Refuse a grant that cannot be executed."""
    if service.mode == MEDIATED:
        if manifest.settings.gateway is None:
            _problem(
                manifest,
                service,
                "mode",
                "nobody could execute its tools: this agent has no gateway",
                'add [gateway] to clawlite.toml, or set mode = "native"',
            )
        return
    can = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    mode, hosts, _ = sandboxes.network_of(can and can.network)
    if not is_listed(_Rules(mode, hosts), host):
        _problem(
            manifest,
            service,
            "url",
            f"nobody could execute its tools: the sandbox does not let them reach {host}",
            f"allow it in the Sandbox: capabilities.network with mode: allowlist and "
            f"allowed_hosts: [{host}]",
        )
    if scheme == "http" and not is_loopback(address_of(host)):
        for credential in manifest.settings.credentials:
            if host in (credential.hosts or ()):
                _problem(
                    manifest,
                    service,
                    "url",
                    f"the credential {enquote(credential.name)} would go to {host} in the clear",
                    'use https, or let a gateway call: mode = "mediated"',
                )


def _server(manifest, service) -> None:
    """Check the MCP server whose list of tools is the descriptor of *service*."""
    own = manifest.settings.services[service.name]
    if not is_server(own.url):
        said = f"{SERVER_WANTED}, found {enquote(own.url)}"
        _problem(manifest, service, "url", said, "write the URL of the server")
    for other in manifest.tools:
        server = other.served and other.served.server
        if server and server.name == service.name and server.argv != [own.url]:
            message = f"{service.name} is the name of another MCP server already"
            _problem(manifest, service, "url", message, "give the service another name")
            return


def _check_mediated(manifest, tool, services: list) -> None:
    """Add a problem for *tool* of an MCP server that no gateway could call for this agent."""
    name = tool.served.server.name
    path: tuple = ("mcp_source", "uri")
    if manifest.settings.gateway is None:
        what = f'nobody could call it: [mcp.{name}] says mode = "mediated", and there is no gateway'
        mend = 'add [gateway] to clawlite.toml, or set mode = "native"'
    elif not NAME.match(name) or name in services:
        used = "a service has this name" if name in services else "a gateway knows it by its name"
        what = f"{enquote(name)} cannot be the name of a server that a gateway calls: {used}"
        mend = "give it one of letters, digits and hyphens: stdio:///PATH#NAME, https://HOST#NAME"
    elif tool.spec.output_schema:
        what = 'a gateway hands on {"ok", "data"}, which is not what this schema describes'
        mend, path = "leave output_schema out", ("output_schema",)
    else:
        return
    manifest.problem(tool, path, what, hint=mend)


def _check_texts(manifest, service) -> None:
    """Check what a model reads of a service without tools (``_describe``)."""
    said: list = [(("description",), "itself", service.spec.description or "")]
    for index, one in enumerate(service.spec.endpoints or ()):
        about = f"{one.method} {one.path}"
        said.append((("endpoints", index), about, f"{about} {one.description or ''}"))
    for path, about, text in said:
        if gives_orders(text):
            manifest.problems.add(
                service.document,
                path,
                f"what the service says of {about[:100]} gives orders to a model",
                hint="describe what it does, and nothing else",
            )


def _refuse_alike(manifest, tool, others: dict) -> None:
    """Refuse *tool* where a provider's call of it could mean one of *others*, {name: primitive}
    (``Image.tool``).
    """
    name = skill_tools.alias(tool.name)
    other = others.get(name) or others.get(name.replace("_", "-"))
    if other:
        file, line = other.where()
        manifest.problem(
            tool,
            ("name",),
            f"a model calls {tool.name} {enquote(name)}, which already means the {other.kind} "
            f"{enquote(other.name)} ({file}:{line})",
            hint="give the service, or the other one, another name",
        )


def _tool(manifest, tool) -> None:
    name = skill_tools.alias(tool.name)
    if len(name) > MAX_ALIAS:
        manifest.problem(
            tool,
            ("name",),
            f"providers take names of {MAX_ALIAS} characters, and {name} has {len(name)}",
            hint="give the service a shorter name in clawlite.toml",
        )
    if gives_orders(canonical(tool.spec.description)) or gives_orders(
        canonical(tool.spec.input_schema)
    ):
        manifest.problem(
            tool,
            ("description",),
            f"what the service says of its tool {tool.name} gives orders to a model",
            hint="describe what it does, and nothing else",
        )


def _describe(manifest, offered: list) -> str:
    """Return what the system prompt says of services (Clawdapus ADR-020, "Tools" section): the
    granted tools if there are any, and otherwise the endpoints that a service describes.  Endpoints
    of a service that declares tools are for its operators: a model reaches it only through granted
    tools.  "" where there is nothing to say.

    offered  the Tools that the provider is told of, under the names by which they are called
    """
    names = {tool.name for tool in offered}
    tools, documents = [], []
    for service in manifest.services:
        found = [tool for tool in service.tools if skill_tools.alias(tool.name) in names]
        tools += [f"- {tool.name}: {_fold_lines(tool.spec.description)}" for tool in found]
        if service.spec.tools is None:
            documents.append(_documents(service))
    parts = []
    if tools:
        said = "Tools of services; their functions have __ where these names have the dot."
        parts.append("\n".join(["## Tools", "", said, *tools]))
    if documents:
        parts.append("\n\n".join(["## Services", *documents]))
    return "\n\n".join(parts)


def _documents(service) -> str:
    scheme, host, port, base = service.url
    lines = [f"{service.name}: {_fold_lines(service.spec.description or 'a service')}"]
    for one in service.spec.endpoints or ():
        about = f": {_fold_lines(one.description)}" if one.description else ""
        lines.append(f"- {one.method} {scheme}://{host}:{port}{base}{one.path}{about}")
    return "\n".join(lines + ([service.text.rstrip()] if service.text else []))


def _fold_lines(text: str) -> str:
    return " ".join(text.split())


def find_needs(manifest) -> list[Requirement]:
    place = manifest.settings.place
    served = [tool for tool in manifest.tools if tool.served and not tool.service]
    of_gateways = {"gateway": (place, ("gateway",)), "lan": (place, ("gateway", "wire"))}
    for tool in served[:1]:
        of_gateways.update(
            dict.fromkeys(("mediated", "mediated-line"), (tool.report_place, ("mcp_source",)))
        )
    found = []
    for ability in _abilities(manifest):
        services = [(service.place, ("mode",)) for service in manifest.services]
        found.append(Requirement(ability, *(of_gateways.get(ability) or services[0])))
    return found


FEATURE = Feature("service", check=check, compile=compile_sections, needs=find_needs)
