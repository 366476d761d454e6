"""Objects of tools.py that offer tools: tool providers (clawft, "Custom Tool Providers").

    TOOL_PROVIDERS = [Plants()]     in tools.py

    namespace                       str, what the names of its tools begin with
    list_tools()                    its definitions, as MCP's ``tools/list`` has them: dicts with
                                    name, description, inputSchema
    call_tool(name, arguments)      runs one; returns its result, a JSON value

1. A provider's tool is NAMESPACE__TOOL for the agent, and NAMESPACE/TOOL/PIN, the pin in hex
   (mcp_pin.py), for the runtime.
2. ``list_tools`` is called again for each call: a tool that has changed since the agent was built
   is refused.
"""

from binascii import unhexlify

from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.protocols.mcp.mcp_pin import name_changes, pin_of

LIST = "TOOL_PROVIDERS"  # its name in tools.py


def is_provided(name: str) -> bool:
    """Return whether the function *name* of a handler is a provider's tool."""
    return "/" in name


def list_tools(space: dict) -> list:
    """Return [[namespace, definitions], ...] of the providers in *space*, the global names
    of a tools.py that has run.  The caller checks the definitions.

    Raises ``ClawError`` for an object that is no tool provider.  What the maker's own code raises
    passes.
    """
    return [[provider.namespace, provider.list_tools()] for provider in _providers(space)]


def function_of(space: dict, name: str):
    """Return function(**arguments) of the provider's tool *name* (see above) in *space*.

    It raises ``InvalidRequest`` when the tool is not the one that the agent was built with.
    """
    namespace, tool, pin = name.split("/")

    def call(**arguments):
        for provider in _providers(space):
            if provider.namespace == namespace:
                _compare(provider, tool, unhexlify(pin))
                return provider.call_tool(tool, arguments)
        raise _make_refusal("tools.py has no tool provider %s any more" % namespace)

    return call


def _providers(space: dict) -> list | tuple:
    providers = space.get(LIST)
    if not isinstance(providers, (list, tuple)):
        raise ClawError("%s: expected a list of tool providers" % LIST, "write %s = [...]" % LIST)
    for index, provider in enumerate(providers):
        for field in ("namespace", "list_tools", "call_tool"):
            if not hasattr(provider, field):
                raise ClawError(
                    "%s[%d]: a %s has no %s" % (LIST, index, type(provider).__name__, field),
                    "a tool provider has namespace, list_tools() and call_tool(name, arguments)",
                )
    return providers


def _compare(provider, tool: str, pin: bytes) -> None:
    for definition in provider.list_tools():
        if definition["name"] == tool:
            parts = name_changes(pin, pin_of(definition))
            if parts:
                raise _make_refusal(
                    "the tool provider %s has changed the %s of its tool %s since this agent was "
                    "built" % (provider.namespace, parts, tool)
                )
            return
    raise _make_refusal("the tool provider %s has no tool %s any more" % (provider.namespace, tool))


def _make_refusal(message: str) -> ClawError:
    return InvalidRequest(message, "clawlite build --refresh shows the difference", {"ran": False})
