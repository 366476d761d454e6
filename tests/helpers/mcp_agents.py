"""Agents whose tools an MCP server answers (tests/helpers/mcp_server.py, or one of others)."""

import json
import os
import sys
from pathlib import Path

from clawlite.host.builder.build import build_beside

SERVER = Path(__file__).with_name("mcp_server.py")
ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("echo", "picture", "fail", "sum", "sleep", "where")
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: served }
spec:
  identity: { inline: { personality: "You ask servers.", autonomy: autonomous } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  sandbox: { inline: %s }
  tools: %s
  policies: [{ inline: { name: p, rules: %s } }]
"""  # noqa: E501
ALLOW = [{"id": "all", "action": "allow", "scope": "all"}]


def sandbox(level: str, *folders, **limits) -> dict:
    """Return a Sandbox in which the server and its Python are found; it may write to *folders*.
    Those of *limits* that are not None are its resource limits.  The level "board" is none, with
    what a gateway needs to contain the server.
    """
    if level == "none":
        return {"level": "none"}
    reads = {str(ROOT), sys.prefix, sys.base_prefix}
    mounts = [{"path": path, "permissions": "ro"} for path in sorted(reads)]
    mounts += [{"path": str(folder), "permissions": "rw"} for folder in folders]
    capabilities = {"filesystem": {"mode": "scoped", "mount_paths": mounts}}
    level = "none" if level == "board" else level
    box = {"name": "box", "level": level, "capabilities": capabilities}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return {**box, "resource_limits": given} if given else box


def folders(*writable) -> str:
    """Return ``mount_paths`` of [mcp.NAME] in which the server and its Python are found."""
    mounts = sandbox("board", *writable)["capabilities"]["filesystem"]["mount_paths"]
    each = ", ".join('{ path = "%(path)s", permissions = "%(permissions)s" }' % m for m in mounts)
    return "mount_paths = [%s]\n" % each


def reaches(*hosts) -> dict:
    """Return a Sandbox whose tools may reach *hosts*."""
    network = {"mode": "allowlist", "allowed_hosts": list(hosts)} if hosts else {"mode": "deny"}
    return {"name": "box", "level": "none", "capabilities": {"network": network}}


def remote(folder: Path, url: str, names=("echo",), hosts=("127.0.0.1",), more="", **named) -> Path:
    """Write the manifest of an agent with the tools *names* of the server at *url*."""
    tools = []
    for name in names:
        source = {"uri": url + "#t", "tool_name": name}
        tools.append({"inline": {"name": name.replace("_", "-"), "mcp_source": source, **named}})
    agent = write(folder, tools=tools, more=more)
    claw = agent / "claw.yaml"
    box = json.dumps(reaches(*hosts))
    claw.write_text(claw.read_text().replace(json.dumps(sandbox("none")), box))
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text().split("[mcp.t]")[0])
    if "echo" not in names:
        (agent / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    return agent


def tool(name: str, theirs: str = None, server: str = "t", program: str = sys.executable) -> dict:
    source = {"uri": f"stdio://{program}#{server}"}
    if theirs is not None:
        source["tool_name"] = theirs
    return {"inline": {"name": name, "mcp_source": source}}


def write(
    folder: Path,
    what=(),
    level="none",
    tools=None,
    rules=ALLOW,
    args=None,
    more="",
    **limits,
) -> Path:
    """Write the manifest of an agent with the test's server into *folder*/agent; return that.

    limits  resource limits of its Sandbox
    """
    agent, marks = folder / "agent", folder / "marks"
    agent.mkdir(exist_ok=True)
    marks.mkdir(exist_ok=True)
    marks.chmod(0o777)
    tools = [tool(name, name) for name in TOOLS] if tools is None else tools
    box = sandbox(level, marks, **limits)
    (agent / "claw.yaml").write_text(CLAW % (json.dumps(box), json.dumps(tools), json.dumps(rules)))
    args = [str(SERVER), str(marks), *what] if args is None else args
    (agent / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n%s[mcp.t]\nargs = %s\n' % (more, json.dumps(args))
    )
    (agent / "reflex.toml").write_text(
        '[[rule]]\nwhen = "say {words:text}"\ncall = "echo"\narguments = { text = "{words}" }\n'
        'then = [{ say = "{result}" }]\n'
    )
    return agent


def build(folder: Path, *args, **named) -> str:
    """Write and build such an agent; return its image."""
    return build_beside(str(write(folder, *args, **named)))


def hold(folder: Path):
    """Make the servers below *folder* that wait for ``go`` wait for it."""
    os.mkfifo(folder / "marks/go")
    os.chmod(folder / "marks/go", 0o666)  # a server may be another user's


def go(folder: Path):
    """Let a server that waits for it go on; return when it does."""
    open(folder / "marks/go", "w").close()


def methods(folder: Path) -> list:
    """Return the methods that the servers below *folder* were asked for."""
    file = folder / "marks/methods"
    return file.read_text().split() if file.exists() else []


def processes(folder: Path) -> list:
    """Return the command lines of the servers below *folder*, and of what they started, that still
    run.
    """
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", number, "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        if str(folder / "marks").encode() in words:
            found.append(words)
    return found
