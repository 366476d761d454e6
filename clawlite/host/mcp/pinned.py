"""Which MCP server a Tool's ``mcp_source`` means, and what of it stands in clawlite.lock.

    mcp_source: { uri: "stdio:///usr/bin/npx#files", tool_name: read_file }

    [mcp.files]                       arguments of the server ``files``
    args = ["-y", "@modelcontextprotocol/server-filesystem", "/workspace"]

    mcp_source: { uri: "https://mcp.example.com/v1#docs" }         a server over Streamable HTTP

1. A server's name is the fragment of its URI, without one the last part of its path, or its host:
   one program may be several servers.
2. A build starts a server that clawlite.lock does not know, or whose arguments have changed, and
   pins its whole list of tools there.  All else reads the lock.
3. What is pinned does not change by itself: with ``refresh`` the server is asked again, and a
   difference is an error that shows it.  A person takes it by the server's name (``accepted``).
   Arguments that the maker changed are a new list, which is taken; its difference is shown.
"""

import dataclasses
import json
import os
import shlex
from typing import Any
from urllib.parse import unquote, urlsplit

from clawlite.core.base.errors import ClawError
from clawlite.core.net.oauth2 import percent_encode
from clawlite.host.base.problems import LinesError, enquote, one_of
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.providers.remotes import place_of

SCHEME = "stdio://"


@dataclasses.dataclass
class Server:
    """A server: its name, the URI that is its key in the lock, what starts it, or its URL; the
    variables of the agent that it gets, or the headers of requests to it; whether its tools are
    what it says at each start (``trust = "start"``), in place of what was pinned; where its tokens
    come from (``mcp_settings.MCPOAuth2``, or None); whether a gateway calls it, and for which
    devices alone.
    """

    name: str
    uri: str
    argv: list
    environment: list
    headers: list
    is_trusted: bool = False
    oauth2: Any = None
    is_mediated: bool = False
    devices: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Served:
    """What a Tool binds: a tool of *server*, with its pinned *definition*.

    authorization  where its tokens come from, as ``authorization.discover`` found it, or None
    shown  what of the definition the model sees: the Tool document does not say it itself
    """

    server: Server
    tool: str
    definition: dict
    is_handshake: bool
    authorization: dict | None
    shown: list


def server_of(uri: str, settings) -> Server:
    """Return the server that *uri* (``stdio:///PATH#NAME``, ``https://HOST/PATH#NAME``) means."""
    parts = urlsplit(uri)
    if not uri.startswith(SCHEME):
        name = unquote(parts.fragment) or parts.hostname or ""
        own = settings.mcp.get(name)
        url = uri.partition("#")[0]
        headers = sorted((own.headers or {}).items()) if own else []
        oauth2 = own.oauth2 if own else None
        return Server(
            name, f"{url}#{name}", [url], [], headers, _is_trusted(own), oauth2, *_caller(own)
        )
    path = unquote(parts.path)
    name = unquote(parts.fragment) or path.rsplit("/", 1)[-1]
    own = settings.mcp.get(name)
    return Server(
        name,
        f"{SCHEME}{path}#{name}",
        [path, *(own.args or [] if own else [])],
        own.environment or [] if own else [],
        [],
        _is_trusted(own),
        None,
        *_caller(own),
    )


def _caller(own) -> tuple[bool, list]:
    """Return whether a gateway calls the server with these settings, and for which devices."""
    return own is not None and own.mode == "mediated", own and own.devices or []


def _is_trusted(own) -> bool:
    return own is not None and own.trust == "start"


def bind(tools: list, settings, sources: Sources, problems, notes: list) -> None:
    """Set ``served`` of each Tool whose server is pinned, and give it the description and the
    input schema that its document leaves out.  One whose server is not pinned stays as it is.
    Warnings go to *notes*: [((file, line), message), ...].
    """
    wanted = [tool for tool in tools if is_served(tool)]
    if not wanted:
        return
    try:
        entries = lock.read(sources)
    except Refused as e:
        problems.add(wanted[0].place, ("mcp_source",), e.message, hint=e.hint)
        return
    listed: dict = {}  # text of an entry -> what it says: a server may have many tools
    for tool in wanted:
        server = server_of(tool.spec.mcp_source.uri, settings)
        entry = entries.get(server.uri)
        if entry is not None and is_pinned(entry, server):
            if entry.text not in listed:
                listed[entry.text] = json.loads(entry.text)
                place = tool.place.where(("mcp_source",), True)
                for note in listed[entry.text].get("notes", ()):
                    notes.append((place, f"the MCP server {server.name}: {note}"))
            _bind(tool, server, listed[entry.text], problems)


def _bind(tool, server: Server, found: dict, problems) -> None:
    spec = tool.spec
    name = spec.mcp_source.tool_name
    definition = found["tools"].get(tool.name if name is None else name)
    if definition is None:
        names = sorted(found["tools"])
        problems.add(
            tool.place,
            ("mcp_source",) if name is None else ("mcp_source", "tool_name"),
            f"the MCP server {server.name} has no tool {enquote(name or tool.name)}",
            hint=f"set tool_name to {one_of(names)}" if names else "it lists no tool at all",
            key=name is None,
        )
        return
    place = found.get("authorization")
    tool.served = Served(server, name or tool.name, definition, found["handshake"], place, [])
    for field, theirs, default in (
        ("description", "description", tool.name),
        ("input_schema", "inputSchema", {"type": "object"}),
    ):
        if getattr(spec, field) is None:
            value = definition.get(theirs)
            setattr(spec, field, value if isinstance(value, type(default)) else default)
            tool.served.shown.append(getattr(spec, field))


def pin(manifest, allowed=(), refresh: bool = False, accepted=()) -> tuple[list, list]:
    """Start the servers of *manifest* that the lock lacks, and pin their tools; return (their URIs,
    lines about what differs from what was pinned before and was taken).

    refresh   ask all of them, and compare
    accepted  names of those that are asked, and what they say is taken
    One that is trusted is always asked, and what it says is taken; the lock keeps it for checks.
    Raises ``ClawError`` for a server that does not answer, or whose tools have changed; then
    nothing is written.
    """
    servers = {}
    for tool in manifest.tools:
        if is_served(tool):
            server = server_of(tool.spec.mcp_source.uri, manifest.settings)
            servers[server.uri] = server
    _check_names(accepted, servers)
    if not servers:
        return [], []
    sources = Sources(manifest.folder, allowed)
    old = lock.read(sources)
    urls = (SCHEME, "https://", "http://")  # other keys of the lock are no servers
    entries = {uri: entry for uri, entry in old.items() if not uri.startswith(urls)}
    asked, taken = [], []
    for uri, server in servers.items():
        entry, is_accepted = old.get(uri), server.name in accepted
        asks = refresh or is_accepted or server.is_trusted
        if asks or entry is None or not is_pinned(entry, server):
            new = _ask_server(server, manifest.settings, None if refresh else entry)
            if entry and entry.sha256 != new.sha256 and not server.is_trusted:
                said = _difference(server, entry, new)
                if entry.url == new.url and not is_accepted:
                    take = f"clawlite build --accept {shlex.quote(server.name)} takes it"
                    raise LinesError(said[0], "look at what has changed; " + take, said[1:])
                taken += said
            asked.append(uri)
            entry = new
        entries[uri] = entry
    if entries != old:
        lock.write(sources, list(entries.values()))
    return asked, taken


def _check_names(accepted, servers: dict) -> None:
    names = sorted({server.name for server in servers.values()})
    for name in accepted:
        if name not in names:
            raise ClawError(
                f"--accept: the manifest has no MCP server {enquote(name)}",
                f"it has {one_of(names)}" if names else "it has none",
            )


def _difference(server: Server, old: lock.Entry, new: lock.Entry) -> list[str]:
    """Return lines about how what *server* lists differs from what was pinned."""
    from clawlite.host.mcp.differences import difference

    lines = difference(json.loads(old.text), json.loads(new.text))
    return [f"the MCP server {server.name} has changed what it lists:", *lines]


def _ask_server(server: Server, settings, known) -> lock.Entry:
    """Return what *server* says now.

    known  its entry of the lock, or None: where its tokens come from does not change by itself
    """
    # only here: they bring what speaks HTTP, a sixth of what a build loads
    from clawlite.host.mcp import listing, remote_listing, remote_token

    found: dict = {}
    if server.uri.startswith(SCHEME):
        env = {name: os.environ[name] for name in server.environment if name in os.environ}
        tools, is_handshake, notes = listing.tools_of(server.argv, env)
    else:
        url = server.argv[0]
        headers = [*server.headers, *credentials(url, settings)]
        if server.oauth2 is not None:
            place = _authorization(server, settings, headers, known)
            if place is not None:
                found["authorization"] = place
            row = image_row(server.oauth2, place, url)
            headers.append(remote_token.header(server.oauth2, row, url, settings.authorities))
        tools, is_handshake, notes = remote_listing.tools_at(url, headers, settings.authorities)
    found.update(handshake=is_handshake, tools=tools)
    if notes:
        found["notes"] = notes
    text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
    return lock.Entry(server.uri, _command(server), lock.digest(text), text)


def _authorization(server: Server, settings, headers: list, known):
    if server.oauth2.endpoint is not None:
        return None
    if known is not None and is_pinned(known, server):
        return json.loads(known.text)["authorization"]
    from clawlite.host.mcp import authorization

    return authorization.discover(server.argv[0], server.oauth2, headers, settings.authorities)


def image_row(oauth2, place, url: str) -> list:
    """Return the record of the tokens for the server at *url* (section MCP): where they come from,
    client, scope, name of the secret, resource, and for a person where they sign in and the name
    of the client's own secret, or "".

    oauth2  ``mcp_settings.MCPOAuth2``;  place: of ``authorization.discover``, or None
    """
    place = place or {"token_endpoint": oauth2.endpoint, "resource": url}
    return [
        *place_of(place["token_endpoint"]),
        percent_encode(oauth2.client_id),
        percent_encode(oauth2.scope or ""),
        oauth2.credential,
        place["resource"],
        [*place_of(place["device_authorization_endpoint"]), oauth2.client_credential or ""]
        if oauth2.flow == "device"
        else None,
    ]


def credentials(url: str, settings) -> list:
    """Return the headers that clawlite.toml's credentials give requests to *url*; here they come
    from the environment.
    """
    found = []
    for one in settings.credentials:
        if urlsplit(url).hostname in (one.hosts or ()):
            if one.name not in os.environ:
                raise ClawError(
                    f"the MCP server {url} gets the credential {one.name}, which is not known here",
                    f"set the variable {one.name} for the build, which asks it for its tools",
                )
            form = one.format or "Bearer {}"
            found.append((one.header or "Authorization", form.replace("{}", os.environ[one.name])))
    return found


def _command(server: Server) -> str:
    words, oauth2 = list(server.argv), server.oauth2
    if oauth2 is not None and oauth2.endpoint is None:  # another issuer is another server
        words += ["oauth2", oauth2.flow, oauth2.issuer or "?"]
    return shlex.join(words)


def is_pinned(entry: lock.Entry, server: Server) -> bool:
    """Return whether *entry* of the lock is what *server* listed, with its arguments of now."""
    return entry.url == _command(server)


def is_served(tool) -> bool:
    """Return whether an MCP server answers the primitive *tool*."""
    return tool.kind == "Tool" and tool.spec.mcp_source is not None
