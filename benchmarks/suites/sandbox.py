"""Suite of the sandbox: what one command costs in each profile, beside the same command run
plainly, in turns.

A model asks for its tools one by one, so a call comes when the machine is at rest: PAUSE_S goes
before each sample, of all cases alike."""

import json
import os
import statistics
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.run import spawn
from clawlite.host.bench.serve import Peer

PROFILES = (("N", "namespaces"), ("L", "Landlock"))
PAUSE_S = 0.025  # the next supervisor is ready by then
A_ROUND = 4  # samples of each case
_CLAW = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "boxed"},
    "spec": {
        "identity": {
            "inline": {"name": "boxed", "personality": "You measure.", "autonomy": "autonomous"}
        },
        "providers": [
            {
                "inline": {
                    "name": "p",
                    "protocol": "custom",
                    "endpoint": "builtin:replay",
                    "model": "replay",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": ["claw://registry/clawlite/exec-shell@1.0.0"],
        "sandbox": {
            "inline": {
                "name": "box",
                "level": "process",
                "capabilities": {
                    "filesystem": {
                        "mode": "scoped",
                        "mount_paths": [{"path": "/workspace", "permissions": "rw"}],
                    },
                    "shell": {"mode": "full"},
                },
            }
        },
        "policies": [
            {"inline": {"name": "p", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    },
}


def call_line(number: int) -> bytes:
    """Return the call of ``exec-shell true`` with id and request number *number*, as a line for
    ``serve --stdio``.
    """
    context = {"request_id": agent.UUID % number, "identity": "boxed"}
    return agent.line(
        "claw.tool.call",
        {"name": "exec-shell", "arguments": {"command": "true"}, "context": context},
        number,
    )


def sandbox(bench):
    """Yield rows: ``true`` run plainly; ``exec-shell true`` over a pipe in each profile that
    this machine has; the agent's own part of it.
    """
    if os.geteuid() == 0:  # the tools' user has to pass it
        os.chmod(bench.folder, 0o711)
    image = _image(bench)
    peers = [
        (profile, peer)
        for profile, peer in [(one, _peer(bench, image, one[0])) for one in PROFILES]
        if peer is not None
    ]
    plain, alone, rush, number = [], [[] for _ in peers], [[] for _ in peers], 1000
    try:
        for _ in range(bench.rounds * A_ROUND):
            time.sleep(PAUSE_S)
            begin = time.perf_counter_ns()
            subprocess.run(["true"])
            plain.append((time.perf_counter_ns() - begin) / 1e6)
            for at, (_, peer) in enumerate(peers):
                time.sleep(PAUSE_S)
                for times in (alone, rush):  # the second comes at once
                    number += 1
                    begin = time.perf_counter_ns()
                    peer.ask(call_line(number), 1)
                    times[at].append((time.perf_counter_ns() - begin) / 1e6)
    finally:
        for _, peer in peers:
            peer.end()
    yield bench.row("sandbox", "plain: subprocess.run of true", "ms", plain)
    for at, ((_, name), _) in enumerate(peers):
        yield bench.row(
            "sandbox",
            "exec-shell true, " + name,
            "ms",
            alone[at],
            statistics.median(alone[at]) / statistics.median(plain),
            "value: its median over that of a plain run, in turns",
        )
        yield bench.row(
            "sandbox",
            "exec-shell true, %s, at once after one" % name,
            "ms",
            rush[at],
            note="it waits for its supervisor to be made",
        )
    found = json.loads(
        spawn(
            [sys.executable, bench.script("inprocess.py"), "sandbox", image, str(bench.rounds)],
            bench.environment(),
        )
    )
    for case, ns in found["cases"].items():
        yield bench.row(
            "sandbox",
            "in process: " + case,
            "us",
            [n / 1e3 for n in ns],
            None,
            core=found["core"],
        )


def _image(bench) -> str:
    from clawlite.host.builder.build import build_beside

    folder = bench.make("boxed")
    for name, text in (
        ("claw.json", json.dumps(_CLAW)),
        ("clawlite.toml", 'replay = "replay.jsonl"\n'),
        ("replay.jsonl", '{"user": null}\n{"say": "Done."}\n'),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(folder, "lines"), "wb") as file:
        file.write(agent.opening() + call_line(7))
    return str(build_beside(folder))


def _peer(bench, image: str, profile: str):
    """Return an agent that works in *profile*, or None where this machine has not got it."""
    command = [
        sys.executable,
        "-I",
        "-S",
        os.path.join(bench.package, "clawlite", "__main__.py"),
        "serve",
        image,
        "--stdio",
    ]
    if profile == "L":
        command = [sys.executable, bench.script("without_userns.py")] + command
    peer = Peer(command, bench.environment(), bench.folder)
    peer.ask(agent.opening(), 2)
    said = json.loads(peer.ask(call_line(1), 1))
    if "result" in said and said["result"]["isError"] is False:
        return peer
    peer.end()
    if said.get("error", {}).get("code") != -32010:
        raise ClawError("exec-shell true: %s" % json.dumps(said)[:300])
    return None
