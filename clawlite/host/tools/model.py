"""Tool (CKP 5.4): a function that the agent can call."""

import re
from typing import Any, Literal

from msgspec import UNSET

from clawlite.host.base.problems import did_you_mean, enquote, value_text
from clawlite.host.models.common import Amount, Count, Need, Strict, Text
from clawlite.protocols.mcp.tool_definitions import HINTS

MCP_MEND = (
    "name a server's program on this machine, stdio:///PATH, or its address, https://HOST/PATH "
    "(docs/mcp.md), or remove mcp_source and write the tool in tools.py"
)
_TRANSPORT = re.compile(r"stdio:///.|https://.|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|\Z)")


class MCPSource(Strict):
    uri: Text
    tool_name: str | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        uri = value.get("uri")
        if not isinstance(uri, str) or _TRANSPORT.match(uri):
            return
        if uri.startswith("mcp://"):
            report(("uri",), "the mcp:// scheme is reserved and must not be used", hint=MCP_MEND)
        elif uri:
            why = "http:// is for this machine only" if uri.startswith("http://") else ""
            report(("uri",), why, "stdio:///PATH or https://HOST/...", enquote(uri), MCP_MEND)


class ToolRetry(Strict):
    max_attempts: Count | None = None
    backoff: Literal["exponential", "linear", "constant"] | None = None


class ToolSpec(Strict):
    description: Text | None = None
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    sandbox_ref: str | None = None
    policy_ref: str | None = None
    mcp_source: MCPSource | None = None
    annotations: dict[str, Any] | None = None
    timeout_ms: Amount | None = None
    retry: ToolRetry | None = None
    composite: bool = False
    skill_ref: Text | None = None
    needs = (
        Need("description", "mcp_source", UNSET, "", "add description to the tool"),
        Need("input_schema", "mcp_source", UNSET, "", "add input_schema to the tool"),
        Need(
            "skill_ref",
            "composite",
            True,
            "; a composite tool needs the skill that it wraps",
            "add skill_ref with the name of the skill",
        ),
    )

    @staticmethod
    def check_rules(value: dict, report) -> None:
        hints = value.get("annotations")
        for name, hint in hints.items() if isinstance(hints, dict) else ():
            if name in HINTS and not isinstance(hint, bool):
                report(("annotations", name), "", "true or false", value_text(hint))
            elif name not in HINTS and name.lower() in [known.lower() for known in HINTS]:
                report(
                    ("annotations", name), "unknown hint", hint=did_you_mean(name, HINTS), key=True
                )
