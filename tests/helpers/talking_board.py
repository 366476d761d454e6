"""A board whose agent asks a remote provider and keeps its conversation: its project, and what a
provider is shown of it.
"""

from llm_server import calls, say

from clawlite.host.builder import build

CLAW = """claw: "0.3.0"
kind: Claw
metadata: {{ name: {name}, version: "{version}" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: remote, protocol: {protocol}, endpoint: "{endpoint}", model: test-model, streaming: true, auth: {{ type: none }},
                retry: {{ max_attempts: 1 }} }}
  sandbox: {{ inline: {{ level: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
  memory: {{ inline: {{ stores: [{{ name: talk, type: conversation{store} }}] }} }}
"""  # noqa: E501
TOOLS = 'def look(where: str) -> str:\n    """Look somewhere."""\n    return "3 at " + where\n'


def project(
    folder,
    server,
    store: str = "",
    name: str = "garden",
    version: str = "1.0.0",
    api: str = "openai-compatible",
) -> str:
    """Write a project and build it; return its image.  store: more fields of its conversation
    store.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "claw.yaml").write_text(
        CLAW.format(name=name, version=version, protocol=api, endpoint=server.endpoint, store=store)
    )
    (folder / "tools.py").write_text(TOOLS)
    return build.build_beside(str(folder))


def answer(request) -> dict:
    """What the provider does: "look at X" calls the tool, all else is answered with what was
    asked last.
    """
    last = request.body["messages"][-1]
    text = (
        last["content"] if isinstance(last["content"], str) else last["content"][0].get("text", "")
    )
    if last["role"] == "user" and text.startswith("look at "):
        return calls(("look", {"where": text[8:]}))
    return say("Heard: %s." % (text if last["role"] == "user" and text else "the tool"))


def shown(request) -> list:
    """Return what a provider of the openai form was shown: ["user words", "assistant words",
    "call name", "tool text", ...].
    """
    seen = []
    for message in request.body["messages"]:
        seen += ["%s %s" % (message["role"], message["content"])] if message["content"] else []
        seen += ["call " + call["function"]["name"] for call in message.get("tool_calls") or ()]
    return seen[1:]  # what it is


def turns(*texts) -> list:
    """Return what ``shown`` gives of finished turns with these texts."""
    seen = []
    for text in texts:
        seen.append("user " + text)
        if text.startswith("look at "):
            seen += ["call look", "tool 3 at " + text[8:], "assistant Heard: the tool."]
        else:
            seen.append("assistant Heard: %s." % text)
    return seen
