"""Features of CKP that this version does not have yet.  A build refuses them, with field, line and
a way out.

``check`` refuses them, too, although they are valid CKP; none is ever dropped silently.  An entry
is removed when its feature is built.  An operator's agent (``serve`` over a manifest) is built
anyway when an error at use can report the lack: methods of a swarm that is not built answer -32601,
and built-in tools that lack what they need answer -32010."""

from clawlite.host.boards import boards
from clawlite.host.channels import channels
from clawlite.host.documents import registry
from clawlite.host.mcp import image_section
from clawlite.host.memory import memories
from clawlite.host.providers import local_model, remotes
from clawlite.host.providers.provider_order import ENDPOINTS
from clawlite.host.services import image_section as service_section
from clawlite.host.swarm import swarms
from clawlite.host.telemetry import telemetries
from clawlite.host.tools import sandboxes, tool_providers, world_models
from clawlite.protocols.sandbox.profile import NONE

LATER = "not supported by this version of clawlite"

MENDS = (
    "use a sandbox of level process, let it yield between its steps (yield MILLISECONDS), or "
    "remove this"
)


def refuse(manifest, at_use: bool = False) -> None:
    """Add a problem for every part of *manifest* that this version cannot honour.

    at_use  but for those of which an answer at use says it
    """
    for provider in manifest.providers:
        _provider(manifest, provider)
    for tool in manifest.tools:
        _tool(manifest, tool)
        if tool.origin == "registry" and not at_use:
            _builtin(manifest, tool)
    if manifest.telemetry:
        telemetries.refuse(manifest)
    if manifest.sandbox:
        _sandbox(manifest, manifest.sandbox)
    _pins(manifest)
    memories.refuse(manifest)
    image_section.refuse(manifest)
    sandboxes.refuse_rules(manifest)
    tool_providers.refuse(manifest)
    service_section.refuse(manifest)
    world_models.refuse(manifest)
    if manifest.swarm and not at_use:
        swarms.refuse(manifest)


def _provider(manifest, provider) -> None:
    spec = provider.spec
    builtin = spec.endpoint.startswith("builtin:")
    if spec.protocol == "custom" and spec.endpoint not in ENDPOINTS:
        manifest.problem(
            provider,
            ("endpoint",),
            f"other custom providers are {LATER}",
            '"builtin:reflex", "builtin:replay" or "builtin:local"',
            f'"{spec.endpoint}"',
        )
    elif spec.protocol != "custom" and builtin:
        manifest.problem(
            provider,
            ("protocol",),
            "",
            'protocol "custom" for a built-in provider',
            f'"{spec.protocol}"',
        )
    elif spec.endpoint == local_model.ENDPOINT and spec.model != local_model.MODEL:
        manifest.problem(provider, ("model",), "", f'"{local_model.MODEL}"', f'"{spec.model}"')
    elif not builtin:
        wrong = remotes.endpoint_problem(spec.endpoint, True)
        if wrong:
            manifest.problem(provider, ("endpoint",), wrong, hint=remotes.ENDPOINT)
    if builtin and spec.auth.type != "none":
        manifest.problem(
            provider,
            ("auth", "type"),
            "a built-in provider needs no key",
            '"none"',
            f'"{spec.auth.type}"',
        )
    if spec.auth.type == "oauth2" and provider.name not in manifest.settings.oauth2:
        manifest.problem(
            provider,
            ("auth", "type"),
            "nothing says where its tokens come from",
            hint=f"add [oauth2.{provider.name}] with endpoint and client_id to clawlite.toml",
        )
    if spec.transport != "http":
        manifest.problem(
            provider, ("transport",), f'transport "{spec.transport}" is {LATER}', '"http"'
        )
    for index, modality in enumerate(spec.capabilities or ()):
        if modality != "text":
            manifest.problem(
                provider, ("capabilities", index), f'"{modality}" is {LATER}', '"text"'
            )


def _tool(manifest, tool) -> None:
    spec = tool.spec
    if spec.timeout_ms and not can_end(manifest, tool):
        manifest.problem(
            tool,
            ("timeout_ms",),
            f"{tool.function.name} in tools.py runs in one piece, so nothing could stop it in time",
            hint=MENDS,
            key=True,
        )


def _builtin(manifest, tool) -> None:
    """A built-in tool that would refuse every call: -32010 at use."""
    if tool.name == "message":
        channels.check_message(manifest, tool)
    if tool.name == "delegate" and not swarms.is_built(manifest):
        manifest.problem(
            tool,
            (),
            "this agent is in no swarm that could do what delegate asks",
            hint="add a Swarm",
        )
    if tool.name == "web-search" and manifest.settings.search is None:
        manifest.problem(
            tool,
            (),
            "nothing says where web-search searches",
            hint="add [search] with endpoint to clawlite.toml",
        )
    if registry.ability(tool.name) == "shell" and sandboxes.level(manifest) == NONE:
        manifest.problem(
            tool,
            (),
            f"{tool.name} needs a sandbox of level process: at level none "
            f"nothing would contain what it runs",
            hint="declare a Sandbox of level process with capabilities.shell",
        )


def _pins(manifest) -> None:
    """Refuse functions that take ``board`` where they run in another process than the agent."""
    tools = [tool for tool in manifest.tools if tool.function and tool.function.has_board]
    if not tools or sandboxes.level(manifest) == NONE:
        return
    names = [f"{tool.function.function} (tools.py:{tool.function.line})" for tool in tools[:3]]
    more = f" and {len(tools) - 3} more" if len(tools) > 3 else ""
    said = (
        f"{', '.join(names)}{more} needs board, and at level process functions of tools.py run in "
        "a process of their own, which reaches no pin"
    )
    manifest.problem(
        manifest.sandbox or tools[0],
        ("level",) if manifest.sandbox else (),
        said,
        hint="use level: none for the Sandbox, or built-in tools for the pins",
    )


def can_end(manifest, tool) -> bool:
    """Return whether something can end *tool* in time: what runs in one piece in the agent's own
    process cannot be ended.
    """
    return not tool.function or tool.function.is_generator or sandboxes.level(manifest) != NONE


def _sandbox(manifest, sandbox) -> None:
    spec = sandbox.spec
    if spec.level not in ("none", "process"):
        able = [board.name for board in boards.load_all() if "process" in board.sandbox.levels]
        manifest.problem(
            sandbox,
            ("level",),
            f'level "{spec.level}" is {LATER}',
            '"none" or "process"',
            hint=f"process works on {', '.join(able)}, none on every board",
        )
    elif spec.runtime != "native":
        manifest.problem(
            sandbox,
            ("runtime",),
            f'runtime "{spec.runtime}" at level {spec.level} is {LATER}',
            '"native"',
            hint="leave it out",
        )
    limits = spec.resource_limits
    for field in sandboxes.LIMITS if limits is not None else ():
        if getattr(limits, field) == 0:
            manifest.problem(
                sandbox,
                ("resource_limits", field),
                "",
                "a limit of at least 1",
                "0",
                hint="leave it out for no limit",
                key=True,
            )
    if spec.level != "none":
        return
    if spec.capabilities is not None and any(tool.function for tool in manifest.tools):
        manifest.problem(
            sandbox,
            ("capabilities",),
            "at level none the functions of tools.py run "
            "in the agent's own process: these cannot be "
            "kept there",
            hint="use level: process, or remove them",
            key=True,
        )
    for field in sandboxes.LIMITS[:-1]:
        if limits is not None and getattr(limits, field):
            manifest.problem(
                sandbox,
                ("resource_limits", field),
                "at level none this limit cannot be kept",
                hint="use level: process"
                if field != "timeout_ms"
                else "set timeout_ms on the tools that need one",
                key=True,
            )
