"""The description of services in the system prompt (Clawdapus ADR-020, "Tools" section): the
granted tools if there are any, and otherwise the endpoints that a service describes.

Endpoints of a service that declares tools are for its operators: a model reaches such a service
only through granted tools.
"""

from clawlite.host.skills.skills import alias


def text(manifest, offered: list) -> str:
    """Return the sections, "" where there is nothing to say.

    offered  the Tools that the provider is told of, under the names by which they are called
    """
    names = {tool.name for tool in offered}
    tools, documents = [], []
    for service in manifest.services:
        found = [tool for tool in service.tools if alias(tool.name) in names]
        tools += [f"- {tool.name}: {_line(tool.spec.description)}" for tool in found]
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
    lines = [f"{service.name}: {_line(service.spec.description or 'a service')}"]
    for one in service.spec.endpoints or ():
        about = f": {_line(one.description)}" if one.description else ""
        lines.append(f"- {one.method} {scheme}://{host}:{port}{base}{one.path}{about}")
    return "\n".join(lines + ([service.text.rstrip()] if service.text else []))


def _line(text: str) -> str:
    return " ".join(text.split())
