"""An agent with limits, for Linux and for boards: two calls a minute, and a tool that works at
its third attempt.
"""

import json

from agents import tool_call

from clawlite.host.builder.build import build_beside

LIMIT = "rate_limits: { tool_calls_per_minute: 2 }"
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: limited }
spec:
  identity: { inline: { personality: "You count.", autonomy: autonomous } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }]
  tools:
    - { inline: { name: flaky, description: "Fails at first", input_schema: { type: object }, annotations: { idempotentHint: true },
                  retry: { max_attempts: 3, backoff: constant } } }
  sandbox: { inline: { level: none } }
  policies:
    - inline: { name: p, rules: [{ id: all, action: audit-only, scope: all }], %s }
"""  # noqa: E501
TOOLS = '''\
import os


def echo(text: str) -> str:
    """Give it back."""
    return text


def linger() -> str:
    """Go on for ever."""
    open(os.getenv("MARKS") + "/lingers", "w").close()
    while True:
        yield 10


def flaky() -> str:
    """Fail twice, then work."""
    with open(os.getenv("MARKS") + "/tries", "a") as file:
        file.write("x")
    with open(os.getenv("MARKS") + "/tries") as file:
        tries = len(file.read())
    if tries < 3:
        raise OSError("the bus is busy")
    return "after %d" % tries
'''


def make(folder, limits: str = LIMIT) -> str:
    """Write and build the agent below *folder*; return its image."""
    folder = folder / "agent"
    folder.mkdir()
    (folder / "claw.yaml").write_text(CLAW % limits)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "say {words:text}"\ncall = "echo"\n'
        'arguments = { text = "{words}" }\nthen = [{ say = '
        '"{result}" }]\n[[rule]]\nwhen = "linger"\ncall = "linger"\n'
    )
    (folder / "tools.py").write_text(TOOLS)
    return build_beside(str(folder))


def calls(agent, *numbers):
    """Call echo once for each number; return the codes, None for one that ran."""
    codes = []
    for number in numbers:
        agent.line(json.dumps(tool_call("echo", {"text": "x"}, number)))
        codes.append(agent.message().get("error", {}).get("code"))
    return codes
