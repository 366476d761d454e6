"""An operator that stores and asks, for tests of the memory."""

import json

from agents import MANIFEST, UUID, Agent, eventually


class Operator(Agent):
    """An operator of ``clawlite serve``."""

    def ask(self, method: str, **params) -> dict:
        """Return the reply to a request."""
        self.number = getattr(self, "number", 0) + 1
        self.line(
            json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        )
        return self.reply(self.number)

    def reply(self, number: int) -> dict:
        def found():
            self._read()
            for line in self.seen.splitlines():
                if b'"id":%d,' % number in line and line.endswith(b"}"):
                    return [json.loads(line)]
            return None

        return eventually(found)[0]

    def boot(self) -> "Operator":
        self.opened = self.ask(
            "claw.initialize",
            protocolVersion="0.3.0",
            manifest=MANIFEST,
            clientInfo={"name": "t", "version": "1"},
            capabilities={},
        )
        return self

    def put(self, store: str, content, number: int, key: str = None, **context) -> dict:
        entry = {"content": content} if key is None else {"content": content, "key": key}
        return self.ask(
            "claw.memory.store",
            store=store,
            entries=[entry],
            context=dict(context, request_id=UUID % number),
        )

    def all(self, store: str) -> list:
        reply = self.ask(
            "claw.memory.query",
            store=store,
            query={"type": "time-range", "time_range": {"from": "2000-01-01", "to": "2100-01-01"}},
        )
        return [entry["content"] for entry in reply["result"]["entries"]]
