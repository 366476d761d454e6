"""The suite ``mcp``: MCP servers of an agent."""

import importlib.util
import json
import os
import statistics
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.serve import Peer

MANY = 500  # tools of one server
COMPILED = 5  # rounds that compile: most of a second each
MCP_CALLS = 20
SERVED: dict = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "served"},
    "spec": {
        "identity": {"inline": {"name": "served", "personality": "x", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "sandbox": {"inline": {"level": "none"}},
        "policies": [
            {"inline": {"name": "p", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    },
}


def mcp(bench):
    """Yield rows: a call of an MCP server over stdio by an agent, by a bare pipe, and by the
    official client where it is installed; the three make their calls alternately.
    """
    echo = bench.script("mcp_echo.py")
    serve = [sys.executable, "-m", "clawlite", "serve", _served_image(bench, echo), "--stdio"]
    peers = [
        (Peer(serve, bench.environment(), bench.folder), _asked_agent, []),
        (Peer([sys.executable, echo], bench.environment(), bench.folder), _asked_server, []),
    ]
    try:
        if importlib.util.find_spec("mcp") is not None:
            official = [sys.executable, bench.script("mcp_official.py"), echo]
            peers.append(
                (Peer(official, bench.environment(), bench.folder), lambda number: b"hello\n", [])
            )
        peers[0][0].ask(agent.opening(), 2)
        for number in range(bench.rounds * MCP_CALLS + 1):
            for peer, asked, times in peers:
                data = asked(number)
                begin = time.perf_counter_ns()
                answer = peer.ask(data, 1)
                times.append((time.perf_counter_ns() - begin) / 1e3)
                if b"hello" not in answer:
                    raise ClawError(f"the answer was {answer[:200]!r}")
    finally:
        for peer, _, _ in peers:
            peer.end()
    ours, bare, *theirs = [times[1:] for _, _, times in peers]  # the first starts a server
    if theirs:
        yield bench.row("mcp", "a call, by an agent", "us", ours)
        yield bench.row("mcp", "a call, by the official client", "us", theirs[0])
        ratio = statistics.median(ours) / statistics.median(theirs[0])
        ratios = [one / other for one, other in zip(ours, theirs[0], strict=True)]
        note = "value: ratio of the medians, in turns"
        yield bench.row("mcp", "a call, over the official client", "ratio", ratios, ratio, note)
    else:
        note = "pip install mcp compares it with the official client"
        yield bench.row("mcp", "a call, by an agent", "us", ours, note=note)
    yield bench.row("mcp", "a call, by a pipe alone", "us", bare)


def ready(bench):
    """Yield rows: the time until READY of an agent with two pinned servers, and of one whose two
    tools are built in, in turns.
    """
    from clawlite.host.builder.build import build_beside

    echo = bench.script("mcp_echo.py")
    served = [_served("first", "echo"), _served("second", "echo")]
    own = ["claw://registry/clawlite/%s@1.0.0" % name for name in ("read-file", "edit-file")]
    images = [
        build_beside(_agent(bench, "two-servers", served, {"first": [echo], "second": [echo]})),
        build_beside(_agent(bench, "no-server", own, {})),
    ]
    times: list = [[], []]
    for _ in range(bench.rounds + 1):
        for image, found in zip(images, times, strict=True):
            begin = time.perf_counter_ns()
            words = [sys.executable, "-m", "clawlite", "serve", image, "--stdio"]
            peer = Peer(words, bench.environment(), bench.folder)
            said = peer.ask(agent.opening(), 2)
            found.append((time.perf_counter_ns() - begin) / 1e6)
            peer.end()
            if b'"READY"' not in said:
                raise ClawError("serve is not READY: %r" % said[:300])
    ours, without = [found[1:] for found in times]
    ratio = statistics.median(ours) / statistics.median(without)
    note = "value: its median over that without, in turns: no server is started before its call"
    yield bench.row("mcp", "READY, with two servers", "ms", ours, ratio, note)
    yield bench.row("mcp", "READY, with built-in tools", "ms", without)


def compiles(bench):
    """Yield a row: a build of an agent with all tools of a server that lists 500, from its lock."""
    from clawlite.host.builder.build import build_beside

    argv = [bench.script("mcp_echo.py"), str(MANY - 1)]
    folder = _agent(bench, "many", [_served("echo", None, "all")], {"echo": argv})
    times = []  # of the processor: a build waits for nothing
    for _ in range(min(bench.rounds, COMPILED) + 1):
        begin = time.process_time_ns()
        build_beside(folder)
        times.append((time.process_time_ns() - begin) / 1e6)
    took = times[1:]  # the first asks the server
    median, note = statistics.median(took), "time of the processor, with clawlite.lock"
    yield bench.row("mcp", "a build, 500 tools", "ms", took, median, note)


def _served(server: str, theirs, name: str = "") -> dict:
    """Return a Tool of *server*; *theirs* None: all of its tools."""
    source = {"uri": f"stdio://{sys.executable}#{server}"}
    if theirs is not None:
        source["tool_name"] = theirs
    return {"inline": {"name": name or server, "mcp_source": source}}


def _served_image(bench, echo: str) -> str:
    from clawlite.host.builder.build import build_beside

    return build_beside(_agent(bench, "served", [_served("echo", "echo")], {"echo": [echo]}))


def _agent(bench, name: str, tools: list, servers: dict) -> str:
    """Write an agent with *tools*; *servers*: {name: arguments}.  Return its folder."""
    folder = bench.make(name)
    manifest = {**SERVED, "spec": {**SERVED["spec"], "tools": tools}}
    sections = "".join(f"[mcp.{one}]\nargs = {json.dumps(args)}\n" for one, args in servers.items())
    for name, text in (
        ("claw.yaml", json.dumps(manifest)),
        ("reflex.toml", '[[rule]]\nwhen = "hello"\nsay = "hello"\n'),
        ("clawlite.toml", f'reflex = "reflex.toml"\n{sections}'),
    ):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    return folder


def _asked_agent(number: int) -> bytes:
    context = {"request_id": agent.UUID % number, "identity": "served"}
    called = {"name": "echo", "arguments": {"text": "hello"}, "context": context}
    return agent.line("claw.tool.call", called, number)


def _asked_server(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": "hello"}}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(request).encode() + b"\n"
