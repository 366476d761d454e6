"""Cases with a scripted provider: a person's messages go to a real ``clawlite run`` or ``ask``, and
a server answers as told.

agent_turn   one message; the script's steps are a text, "503", "ok", or a tool call
channel      messages at a console whose Channel has the case's ``processing``; a message is handled
             when the provider saw it
skill        a person calls the case's Skill by its name, "/checked"
"""

import contextlib

from agents import Agent, linux
from ckp import expect, manifests
from ckp.process import WAIT_S, World
from llm_server import FAULTS, Server, calls, say

AT_ONCE = {"max_attempts": 3, "backoff": "constant", "initial_delay_ms": 1}
SPOKEN = {"503": FAULTS["overloaded"], "ok": say("ok")}


def run(case: dict, folder) -> None:
    given, made = case["input"], manifests.resolved(case["setup"])
    with contextlib.ExitStack() as stack:
        seen = Seen(case, folder)
        scripts = given.get("providers") or [
            {"name": "scripted", "script": given.get("provider_script", ["handled"] * 9)}
        ]
        made["providers"] = [seen.provider(stack, **one) for one in scripts]
        if "fallback" in given:
            made["providers"][0]["spec"]["fallback"] = [
                {"provider_ref": name} for name in given["fallback"]
            ]
        if given["kind"] == "channel":
            made["channels"][0]["spec"]["processing"] = given["processing"]
        if given["kind"] == "skill":
            made["skills"] = [
                {
                    "metadata": {"name": "checked"},
                    "spec": dict({"description": "d", "instruction": "i"}, **given["skill"]),
                }
            ]
        seen.talk(stack, World(case, folder, made))
        for entry in case["expect"]:
            expect.check(seen, entry)


class Seen:
    """What ``expect`` may ask of a conversation."""

    def __init__(self, case: dict, folder):
        self.case, self.folder = case, folder
        self.asked = []  # (provider, text of the person's last message), in order
        self.agent = None
        self.world = None

    def provider(self, stack, name: str, script: list) -> dict:
        """Start the server of one provider; return its Provider document."""
        steps = [self._step(name, one) for one in script]
        server = stack.enter_context(Server(steps))
        return {
            "metadata": {"name": name},
            "spec": {
                "protocol": "openai-compatible",
                "endpoint": server.endpoint,
                "model": "test-model",
                "auth": {"type": "none"},
                "retry": dict(AT_ONCE),
            },
        }

    def _step(self, name: str, one):
        if isinstance(one, dict):
            made = calls((one["tool_call"]["name"], one["tool_call"]["arguments"]))
        else:
            made = SPOKEN.get(one) or say(one)

        def step(request):
            self.asked.append(
                (name, [m["content"] for m in request.body["messages"] if m["role"] == "user"][-1])
            )
            return made

        return step

    def talk(self, stack, world: World) -> None:
        """Say what the case has a person say, and wait until that has been dealt with, or a
        question is open.
        """
        given, self.world = self.case["input"], world
        words = {
            "agent_turn": [given.get("user")],
            "channel": [event["text"] for event in given.get("events", ())],
            "skill": ["/checked"],
        }
        (world.folder / "home").mkdir()
        self.agent = stack.enter_context(
            Agent(
                linux("run", world.served),
                world.folder / "home",
                cwd=world.folder,
                env=world.environment(),
            )
        )
        for text in words[given["kind"]]:
            self.agent.line(text)
        questions = [
            word
            for entry in self.case["expect"]
            for word in entry.get(
                "channel_out_contains", ["Approve "] if "pending" in entry else ()
            )
        ]
        # a question stays open: the input ends when the case has looked
        for word in questions:
            with contextlib.suppress(AssertionError):
                self.agent.expect(word, WAIT_S)
        if not questions:
            self.agent.end()
            self.agent.wait()

    def channel_out(self) -> str:
        return self.agent.text()

    def reply(self) -> str:
        return self.agent.text().splitlines()[-1]

    def provider_order(self) -> list:
        names = [name for name, _ in self.asked]
        return [name for index, name in enumerate(names) if name not in names[:index]]

    def provider_calls(self) -> int:
        return len(self.asked)

    def handled(self) -> list:
        return [
            event["text"] in [text for _, text in self.asked]
            for event in self.case["input"]["events"]
        ]

    def pending(self) -> int:
        return self.agent.text().count("Approve ")

    def ledger(self) -> list:
        return self.world.lines("ledger")

    def __str__(self):
        return "%s\nasked: %s\nstderr: %s" % (self.agent.text(), self.asked, self.agent.errors())
