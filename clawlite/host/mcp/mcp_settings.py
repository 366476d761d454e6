"""[mcp.NAME] of clawlite.toml."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.core.policy.policy import normalise
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import URI, VARIABLE, Strict, Text
from clawlite.host.providers.remotes import ENDPOINT, endpoint_problem, is_secure
from clawlite.host.sandbox.model import Mount

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[!-~]([ -~]{0,1022}[!-~])?")
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")
# of requests to MCP servers: what this program says itself
_OWN_HEADERS = (
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
    "user-agent",
)


class MCPOAuth2(Strict):
    """Where the tokens for an MCP server come from: the authorization server *issuer*, whose
    metadata a build reads, or the token *endpoint* alone.  By client credentials *credential* is
    the name of the client's secret; for a person who signs in (flow "device") it is the name under
    which the agent keeps their refresh token, and *client_credential* that of the client's secret,
    if it has one.
    """

    client_id: Text
    credential: Text
    issuer: Text | None = None
    endpoint: URI | None = None
    scope: Text | None = None
    flow: Literal["client_credentials", "device"] = "client_credentials"
    client_credential: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field in ("credential", "client_credential"):
            name = value.get(field)
            if isinstance(name, str) and name and not VARIABLE.fullmatch(name):
                report((field,), "", "the name of a secret", enquote(name))
        if "client_credential" in value and value.get("flow") != "device":
            report(
                ("client_credential",),
                "with the flow client_credentials, credential names the client's secret",
                hint='remove client_credential, or use flow = "device"',
                key=True,
            )
        elif "client_credential" in value and value["client_credential"] == value.get("credential"):
            report(
                ("client_credential",),
                "credential stores the refresh token of the sign-in, which changes",
                hint="give the client's secret another name",
                key=True,
            )
        for field in ("endpoint", "issuer"):
            url = value.get(field)
            if isinstance(url, str) and url:
                wrong = endpoint_problem(url)
                if wrong:
                    report((field,), wrong, hint=ENDPOINT)
                elif not is_secure(url):
                    report((field,), "", "https://, or http:// to this machine", enquote(url))
        if "endpoint" not in value:
            return
        for field, is_odd in (
            ("issuer", "issuer" in value),
            ("flow", value.get("flow") == "device"),
        ):
            if is_odd:
                report(
                    ("endpoint",),
                    f"a build reads the metadata of the issuer; with endpoint there is no {field}",
                    hint="remove endpoint, and name the issuer",
                    key=True,
                )


def _check_folders(mounts, report) -> None:
    for index, mount in enumerate(mounts if isinstance(mounts, list) else ()):
        path = mount.get("path") if isinstance(mount, dict) else None
        if isinstance(path, str) and normalise(path, "/") != path:
            at = ("mount_paths", index, "path")
            report(at, "", "an absolute path without .., //, or / at its end", enquote(path))


class MCPServer(Strict):
    """The settings of an MCP server besides its URI.

    A program has arguments and the names of variables of the agent that it gets.  A server at a URL
    has headers for each request, and a source of its tokens.  *trust* says whether the server's
    own description of its tools is accepted at each start, instead of the pinned one; *mode*,
    whether this device calls it (native) or its gateway (mediated), then only for the named
    *devices* if there are any.  A program may reach only *hosts*, of those that the Sandbox allows.
    One that a gateway starts may have *mount_paths* of its own, in place of the Sandbox's.
    A server ends when no call has needed it for *idle_s*, *life_s* after its start, and at once
    when it has used *cpu_s* of processor time.
    """

    args: list[str] | None = None
    environment: list[Text] | None = None
    headers: dict[str, Text] | None = None
    oauth2: MCPOAuth2 | None = None
    trust: Literal["lock", "start"] | None = None
    mode: Literal["native", "mediated"] = "native"
    devices: list[Text] | None = None
    hosts: list[Text] | None = None
    mount_paths: list[Mount] | None = None
    idle_s: Annotated[int, Meta(ge=1, le=86400)] | None = None
    life_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None
    cpu_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        is_mediated = value.get("mode") == "mediated"
        for field, why in (
            ("devices", "only a gateway asks which device calls"),
            ("mount_paths", "the Sandbox says which folders a server of this device sees"),
        ):
            if field in value and not is_mediated:
                report((field,), why, hint=f"remove {field}, or let a gateway call", key=True)
        _check_folders(value.get("mount_paths"), report)
        oauth2 = value.get("oauth2")
        is_person = isinstance(oauth2, dict) and oauth2.get("flow") == "device"
        if value.get("trust") == "start" and is_person:
            report(
                ("trust",),
                "a person would have to sign in at each start: builds keep no token",
                hint='remove trust, or use flow = "client_credentials"',
                key=True,
            )
        names = value.get("environment")
        for index, text in enumerate(names if isinstance(names, list) else ()):
            if isinstance(text, str) and text and not VARIABLE.fullmatch(text):
                report(("environment", index), "", "the name of a variable", enquote(text))
        for field in ("args", "environment"):
            if "oauth2" in value and field in value:
                report(
                    (field,),
                    "a program gets it, and oauth2 is for a server at a URL",
                    hint=f"remove {field}, or oauth2",
                    key=True,
                )
        headers = value.get("headers")
        for name, text in headers.items() if isinstance(headers, dict) else ():
            path = ("headers", name)
            if name.lower() in _SECRET_HEADERS:
                report(
                    path,
                    "a credential must not be written into this file",
                    hint="name it under [[credentials]], with the server's host",
                    key=True,
                )
            elif not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
                report(path, "", "the name of a header that a request may set", enquote(name))
            elif isinstance(text, str) and not _VALUE.fullmatch(text):
                report(path, "", "printable ASCII, and no space at an end", enquote(text))
