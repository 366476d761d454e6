"""``clawlite discover``: write the tools that an MCP server lists to the ``.claw-tools.json`` from
which an agent is built (Clawdapus ADR-020, "Live MCP discovery").

A build never asks the server: the agent has the tools in the file.  They change only when a person
runs this command, which shows the difference.
"""

import json
import os

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import Problems, enquote, one_of
from clawlite.host.base.without_links import Below, replace_named
from clawlite.host.documents.sources import Sources
from clawlite.host.manifest import settings
from clawlite.host.mcp import listing, pinned
from clawlite.host.services import descriptor
from clawlite.host.services.descriptor import SNAPSHOT

_MOST = 16 << 20  # bytes of a file that is read


def discover(manifest: str, names=(), is_dry: bool = False) -> list[dict]:
    """Ask the servers of the services *names* (none: all with such a file), and write their files;
    return [{"service", "file", "url", "added", "removed", "changed"}, ...].

    manifest  its file or folder: clawlite.toml lies there;  is_dry: write nothing
    Raises ``ClawError``; then nothing is written.
    """
    sources = Sources(manifest if os.path.isdir(manifest) else os.path.dirname(manifest))
    from clawlite.host.mcp import remote_listing

    problems = Problems()
    own_settings = settings.load(sources, problems)
    problems.raise_all()
    listed = {
        name: one
        for name, one in own_settings.services.items()
        if one.descriptor.rsplit("/", 1)[-1] == SNAPSHOT
    }
    for name in names:
        if name not in listed:
            raise ClawError(
                f"{enquote(name)} is no service whose descriptor is a {SNAPSHOT}",
                f"clawlite.toml has {one_of(sorted(listed))}" if listed else _example(name),
            )
    if not listed:
        raise ClawError(f"no service here has a {SNAPSHOT}", _example("NAME"))
    found = []
    for name in names or sorted(listed):
        own = listed[name]
        if not descriptor.is_server(own.url):
            raise ClawError(
                f"[services.{name}] url: {descriptor.SERVER_WANTED}, found {own.url}",
                "change url in clawlite.toml",
            )
        sources.check_place(own.descriptor, sources.find_path(own.descriptor))
        headers = pinned.credentials(own.url, own_settings)
        tools, *_ = remote_listing.tools_at(own.url, headers, own_settings.authorities)
        path = sources.find_path(own.descriptor)
        found.append((path, tools, {"service": name, "file": path, "url": own.url}))
    reports = []
    for path, tools, report in found:
        reports.append({**report, **_difference(_read(path), tools)})
        if not is_dry:
            _write(path, tools)
    return reports


def _example(name: str) -> str:
    return f'clawlite.toml: [services.{name}] descriptor = "services/{name}/{SNAPSHOT}", url'


def _read(path: str) -> dict:
    """Return {name: definition} of the file at *path*, which may not be there yet."""
    try:
        folder, name = os.path.split(path)
        tools = listing.read_json(Below(folder or ".").read(name, _MOST))["tools"]
        return {tool["name"]: tool for tool in tools}
    except FileNotFoundError:
        return {}
    except (OSError, LookupError, TypeError, ClawError) as e:
        found = e.strerror if isinstance(e, OSError) else e
        raise ClawError(
            f"{path}: expected what an MCP server answers to tools/list, found {found}",
            "remove it, and discover makes it anew",
        ) from None


def _difference(old: dict, new: dict) -> dict:
    return {
        "added": sorted(set(new) - set(old)),
        "removed": sorted(set(old) - set(new)),
        "changed": sorted(name for name in set(old) & set(new) if old[name] != new[name]),
    }


def _write(path: str, tools: dict) -> None:
    text = json.dumps({"tools": [tools[name] for name in sorted(tools)]}, indent=1, sort_keys=True)
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        replace_named(path, (text + "\n").encode())
    except OSError as e:
        raise ClawError(f"{path}: {e.strerror}", "make its folder writable") from None
