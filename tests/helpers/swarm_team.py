"""Two agents of one swarm, a leader and a worker, whose rules look at beds and water them."""

import json
import os

import warm
from agents import ENDS_S, Agent, environment, eventually, linux

from clawlite.host.builder.build import build_beside
from clawlite.linux.swarm.bus import Bus

UUID = "c1a00000-0000-4000-8000-%012d"
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: {{ name: {name} }}
spec:
  identity: {{ inline: {{ personality: "You help.", autonomy: {autonomy} }} }}
  providers: [{{ inline: {provider} }}]
  sandbox: {{ inline: {{ level: none }} }}
  tools: {tools}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
  swarm: {{ inline: {swarm} }}
"""
RULED = {
    "protocol": "custom",
    "endpoint": "builtin:reflex",
    "model": "m",
    "auth": {"type": "none"},
}
# nobody listens there: each turn fails
FAILING = dict(RULED, protocol="openai-compatible", endpoint="http://127.0.0.1:1/v1")
FAILING["retry"] = {"max_attempts": 1}
MEMBERS = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "hand", "role": "worker", "count": 2},
]
SWARM = {
    "topology": "leader-worker",
    "agents": MEMBERS,
    "coordination": {
        "message_passing": "queue",
        "backend": "sqlite-wal",
        "concurrency": {"max_parallel": 4},
    },
    "aggregation": {"strategy": "leader-decides"},
    "failure": {"retry_per_agent": 1},
}
RULES = """\
[[rule]]
when = "look at {bed:text}"
call = "look"
arguments = { bed = "{bed}" }
then = [{ say = "Bed {result}." }]

[[rule]]
when = "water {bed:text}"
call = "water"
arguments = { bed = "{bed}" }
then = [{ say = "{result}" }]
"""
LOOK = {
    "name": "look",
    "description": "Look at a bed.",
    "input_schema": {
        "type": "object",
        "properties": {"bed": {"type": "string"}},
        "required": ["bed"],
    },
    "annotations": {"readOnlyHint": True},
}
BEDS = '''\
def look(bed: str) -> str:
    """Look at a bed."""
    yield from _wait(bed)
    return bed + " is dry"


def water(bed: str) -> str:
    """Water a bed."""
    yield from _wait(bed)
    return "Watered " + bed


'''
TOOLS = (
    "import os\n\n\n"
    + BEDS
    + '''\
def _wait(bed):
    """Until the test ends it, where the bed is a folder that has no file named go."""
    while os.path.isdir(bed) and not os.path.exists(bed + "/go"):
        open(bed + "/%d" % os.getpid(), "w").close()
        yield 10
'''
)


def project(
    tmp_path,
    name: str,
    autonomy="autonomous",
    tools=(),
    rules="",
    code=TOOLS,
    provider=RULED,
    toml="",
    spec="",
    **changes,
) -> str:
    """Build the agent *name* of the swarm, with more *tools* and *rules*; return its image.

    code     its tools.py;  toml: more of its clawlite.toml;  spec: more lines of its claw.yaml
    changes  fields of the Swarm
    """
    folder = tmp_path / name
    folder.mkdir()
    swarm = json.dumps(dict(SWARM, **changes))
    identity = CLAW.replace("inline: {{ personality", "inline: {{ name: {name}, personality")
    (folder / "claw.yaml").write_text(
        identity.format(
            name=name,
            autonomy=autonomy,
            provider=json.dumps(provider),
            tools=json.dumps([{"inline": LOOK}, *tools]),
            swarm="{ name: team, %s" % swarm[1:],
        )
        + spec
    )
    if provider is RULED:
        (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + toml)
        (folder / "reflex.toml").write_text(RULES + rules)
    elif toml:
        (folder / "clawlite.toml").write_text(toml)
    (folder / "tools.py").write_text(code)
    return build_beside(str(folder))


def start(tmp_path, image: str, **capabilities) -> Agent:
    """Return the agent of *image*, whose operator declares *capabilities*."""
    agent = Agent(linux("serve", image, "--stdio"), tmp_path)
    return agent.initialize(capabilities=capabilities)


def delegate(agent, description: str, number: int = 1, **more) -> dict:
    params = {
        "task_id": UUID % number,
        "task": {"description": description, **more},
        "context": {"request_id": UUID % (100 + number), "swarm": "team"},
    }
    return agent.call("claw.swarm.delegate", params, number)


def delegated(agent, description: str, number: int) -> bool:
    """Delegate, as soon as *agent* has noticed that the engine is there again."""

    def is_taken() -> bool:
        answer = delegate(agent, description, number)
        assert "result" in answer or "cannot be used" in answer["error"]["message"], answer
        return "result" in answer

    return eventually(is_taken)


def look_on(tmp_path, name="team") -> Bus:
    return Bus(str(tmp_path / "state/swarms" / name), lambda: 0, os.urandom)


def ended(bus, number: int = 1) -> tuple:
    """Wait for the end of a task; return (state, status of its report, its result)."""
    eventually(lambda: bus.state(UUID % number) not in (None, "waiting", "running"))
    report = bus.history(UUID % number)[1][0]
    return bus.state(UUID % number), report[2], report[3]


def statuses(agent) -> dict:
    """Return {identity: status} of the members; {} while the engine has not answered *agent*."""
    peers = agent.call("claw.swarm.discover", {}, 77).get("result", {}).get("peers", ())
    return {peer["identity"]: peer["status"] for peer in peers}


# what the commands stop and resume print
def is_stopped(there: int) -> str:
    """*there*: processes of the swarm's three that hear it at once."""
    return (
        "The swarm team is stopped: no tool with side effects begins in it until "
        "clawlite swarm resume.\n"
        "%d of 3 processes of its agents are running and know it now; the others learn of "
        "it when they start.\n" % there
    )


GOES_ON = "The swarm team is resumed: its tools with side effects may begin again.\n"


def swarm(tmp_path, *words) -> tuple:
    """Run ``clawlite swarm``; return (exit code, stdout, stderr).  Tests ask many times what a task
    has come to, so those verbs are forked.
    """
    if words and words[0] in ("status", "trace", "dead"):
        args = ["swarm", *map(str, words)]
        ended = warm.run(args, tmp_path, b"", environment(tmp_path), ENDS_S)
        if ended:
            return ended[0], ended[1].decode(), ended[2].decode()
    with Agent(linux("swarm", *map(str, words)), tmp_path) as command:
        code = command.wait()
        return code, command.text(), command.errors()
