"""Who may do what by a channel: the actors that an operator names, people elsewhere, approvals,
conversations.
"""

import json

import pytest
from agents import MANIFEST, UUID
from channel_world import World

ROLES = {
    "mode": "role-based",
    "roles": [
        {"id": "a", "role": "admin"},
        {"id": "u", "role": "user"},
        {"id": "v", "role": "viewer"},
    ],
}
CONSOLE = {"type": "cli", "transport": "stdio"}


class Operator:
    """A session that is open."""

    asked = 0

    def __init__(self, folder, control: dict = None):
        self.world = World(
            folder,
            {
                "console": dict(CONSOLE, **({"access_control": control} if control else {})),
                "tick": {
                    "type": "cron",
                    "transport": "polling",
                    "trigger": {"schedule": "0 0 1 1 *"},
                },
            },
        )
        self.ask(
            "claw.initialize",
            protocolVersion="0.3.0",
            clientInfo={"name": "t", "version": "1"},
            capabilities={},
            manifest=MANIFEST,
        )

    def ask(self, method: str, **params):
        """Return the answer to a request, None when there is none yet."""
        self.asked = number = self.asked + 1
        self.world.session.record(
            json.dumps(
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            ).encode(),
            self.world.ms,
        )
        self.world.settle()
        said = [one for one in self.world.sent if one.get("id") == number]
        if not said:
            return None
        return said[0]["error"]["code"] if "error" in said[0] else said[0]["result"]

    def call(self, name: str, number: int, **more):
        return self.ask(
            "claw.tool.call",
            name=name,
            arguments={},
            context={"request_id": UUID % number, "identity": "tester"},
            **more,
        )


@pytest.mark.parametrize(
    "actor, code",
    [
        ("a", None),
        ("u", None),
        ("v", -32011),
        ("x", -32011),
        ("", -32602),
        (7, -32602),
        ("x" * 129, -32602),
    ],
)
def test_an_operators_actor_calls_as_its_role_says(tmp_path, actor, code):
    operator = Operator(tmp_path, ROLES)
    said = operator.call("quick", 1, actor=actor)
    assert said == code if code else said["isError"] is False, operator.world.sent
    assert operator.world.ran == ([] if code else ["quick"])


@pytest.mark.parametrize("method", ["claw.tool.approve", "claw.tool.deny"])
@pytest.mark.parametrize("actor, code", [("u", -32011), ("v", -32011), ("x", -32011), ("a", None)])
def test_only_an_admin_answers_an_approval(tmp_path, method, actor, code):
    operator = Operator(tmp_path, ROLES)
    assert operator.call("careful", 1, actor="u") is None
    said = operator.ask(method, request_id=UUID % 1, actor=actor)
    if code:
        assert said == code and len(operator.world.agent.waiting) == 1 and not operator.world.ran
    else:
        assert said == {"acknowledged": True} and operator.world.ran == (
            ["careful"] if method.endswith("approve") else []
        )


def test_an_operator_who_names_nobody_holds_the_wire(tmp_path):
    operator = Operator(tmp_path, ROLES)
    assert operator.call("careful", 1) is None and operator.ask(
        "claw.tool.approve", request_id=UUID % 1
    ) == {"acknowledged": True}
    assert operator.world.ran == ["careful"]


def test_an_open_console_asks_for_no_actor(tmp_path):
    operator = Operator(tmp_path)
    assert operator.call("quick", 1, actor="anybody")["isError"] is False


def test_an_allowlist_makes_users(tmp_path):
    operator = Operator(tmp_path, {"mode": "allowlist", "allowed_ids": ["u"]})
    assert (
        operator.call("quick", 1, actor="x") == -32011
        and operator.call("careful", 2, actor="u") is None
    )
    assert operator.ask("claw.tool.approve", request_id=UUID % 2, actor="u") == -32011
