"""Cases of kind "memory-scope": who may read what was written, by identity or by channel, over
the operator's methods.
"""

from ckp import expect, manifests
from ckp.process import WAIT_S, Operator, World

UUID = "c1a00000-0000-4000-8000-0000000%05d"
# who asks stands in the context under this name
CONTEXT = {"per-channel": "channel", "per-identity": "identity"}


def run(case: dict, folder) -> None:
    made = manifests.resolved(case["setup"])
    made["memory"]["spec"]["stores"].append(dict(case["input"]["store"], backend="sqlite"))
    world = World(case, folder, made)
    (folder / "home").mkdir()
    with Operator(world) as operator:
        operator.boot()
        for entry in case["expect"]:
            expect.check(Seen(case, operator), entry)


class Seen:
    def __init__(self, case: dict, operator: Operator):
        self.given, self.operator = case["input"], operator
        self.number = 0

    def _ask(self, method: str, who: str, params: dict) -> dict:
        self.number += 1
        store = self.given["store"]
        context = {"request_id": UUID % self.number, CONTEXT[store["scope"]]: who}
        self.operator.request(
            {
                "jsonrpc": "2.0",
                "id": self.number,
                "method": method,
                "params": dict(params, store=store["name"], context=context),
            }
        )
        assert self.operator.watch(WAIT_S, lambda: self.operator.has(self.number)), "no reply"
        answer = self.operator.replies()[-1][1]
        assert "result" in answer, answer
        return answer["result"]

    def values(self) -> list:
        """Write, then return what each reader finds, None for nothing."""
        for who, key, value in self.given["writes"]:
            self._ask("claw.memory.store", who, {"entries": [{"key": key, "content": value}]})
        found = [
            self._ask("claw.memory.query", who, {"query": {"type": "key", "key": key}})["entries"]
            for who, key in self.given["reads"]
        ]
        return [entries[0]["content"] if entries else None for entries in found]

    def __str__(self):
        return str(self.operator.replies())[:2000]
