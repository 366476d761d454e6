"""An MCP server that says what nobody asked for: a seed gives the same words each time.

    Hostile(seed, breaks)   one server; ``replies(message)`` -> the messages that it sends for one
                            of the client's

It speaks one of both eras.  It sends notifications, requests and optional fields of any type.  What
it *breaks*: "" nothing, it still answers each request as it should, so the outcome of a call is
known; "results" those of calls; "all" any answer.
"""

import json

from line_wire import Dice

from clawlite.core.base.errors import ParseError
from clawlite.protocols.mcp.mcp_client import STATELESS

URL = ("https", "mcp.example.com", 443, "/mcp")
TEXT = "fine"  # the result of a call
ECHO = {"name": "echo", "description": "Give it back.", "inputSchema": {"type": "object"}}
NOTIFICATIONS = (
    "notifications/progress",
    "notifications/cancelled",
    "notifications/message",
    "notifications/initialized",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/elicitation/complete",
    "notifications/tasks/status",
    "notifications/subscriptions/acknowledged",
    "notifications/none",
    "tools/call",
    "claw.tool.asks",
    "",
)
REQUESTS = (
    "ping",
    "sampling/createMessage",
    "roots/list",
    "elicitation/create",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "initialize",
    "tools/call",
    "none",
    "",
)
NO_FORMS = tuple([one for one in REQUESTS if one != "elicitation/create"])
FIELDS = (
    "progressToken",
    "progress",
    "total",
    "message",
    "requestId",
    "reason",
    "level",
    "logger",
    "data",
    "uri",
    "_meta",
    "taskId",
    "status",
    "elicitationId",
    "mode",
    "url",
    "requestedSchema",
    "notifications",
    "subscriptionId",
)
# beside those that a result must have, any value of which leaves the result what it is
OF_RESULTS = ("_meta", "nextcursor", "ttlMs", "cacheScope", "instructions", "extra")
OF_TOOLS = ("title", "icons", "annotations", "outputSchema", "execution", "_meta", "extra")
SCALARS = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    1.5,
    -0.0,
    1e308,
    -1e308,
    1e-308,
    2**53,
    2**64,
    -(2**64),
    10**39,
    "",
    "0",
    "1",
    "x",
    "x" * 3000,
    "line\nfeed\r\x1b[2J",
    "\u202e\u200b\ufeff",
    "\U0001f600",
    "form",
    "url",
    "accept",
)


def loads(data):
    try:
        return json.loads(data)
    except ValueError:
        raise ParseError("no JSON")


class Hostile:
    """One server.  Others may set:

    is_stateless  bool, it speaks the newer era
    is_quiet      bool, it only answers, as it should
    asks          bool, it asks a person, too
    breaks        str, as above
    """

    def __init__(self, seed: int, breaks: str = ""):
        self._dice, self.breaks = Dice(seed), breaks
        self.is_stateless = self._dice.below(2) == 0
        self._tells_changes = self._dice.below(2) == 0
        self._calls = []  # ids of calls that came
        self.is_quiet, self.asks = False, True

    def replies(self, message: dict) -> list:
        method, number = message.get("method"), message.get("id")
        if method is None or number is None:
            return self._noise(2)
        if method == "tools/call":
            self._calls.append(number)
        if self.is_quiet:
            return [self._answer(method, number)]
        before, after = self._noise(4), self._noise(2)
        found = self._answer(method, number)
        if self.breaks == "all" and self._dice.below(3) == 0:
            found = self._broken(found)
        elif self.breaks == "results" and method == "tools/call" and self._dice.below(2):
            found["result"] = self._broken(found["result"])
        return before + [found] + after

    # -- what it should say

    def _answer(self, method: str, number) -> dict:
        if method == "subscriptions/listen":
            return {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
        result = None
        offered = {"tools": {"listChanged": self._tells_changes}}
        if method == "server/discover" and self.is_stateless:
            result = {"supportedVersions": [STATELESS], "capabilities": offered}
        elif method == "initialize" and not self.is_stateless:
            result = {"protocolVersion": "2025-06-18", "capabilities": offered, "serverInfo": {}}
        elif method == "tools/list":
            result = {"tools": [self._with(dict(ECHO), OF_TOOLS)]}
        elif method == "tools/call":
            block = self._with({"type": "text", "text": TEXT}, ("annotations", "_meta", "extra"))
            result = {"content": [block]}
            if self._dice.below(4) == 0:
                result["isError"] = self._one_of((None, False, 0, "true", [], 1))
        if result is None:
            return {
                "jsonrpc": "2.0",
                "id": number,
                "error": self._with({"code": -32601, "message": "none"}, ("data", "extra")),
            }
        return self._with(
            {"jsonrpc": "2.0", "id": number, "result": self._with(result, OF_RESULTS)}, ("extra",)
        )

    def _with(self, value: dict, names: tuple) -> dict:
        """Return *value* with some of the optional fields *names*."""
        if not self.is_quiet:
            for name in names:
                if self._dice.below(3) == 0:
                    value[name] = self.value()
        return value

    # -- what nobody asked for

    def _noise(self, most: int) -> list:
        return [] if self.is_quiet else [self._word() for _ in range(self._dice.below(most + 1))]

    def _word(self) -> dict:
        """Return a notification or a request."""
        found = {"jsonrpc": "2.0"}
        if self._dice.below(3):
            found["method"] = self._one_of(NOTIFICATIONS)
            if self._dice.below(2):
                found["method"] = "notifications/progress"
        else:
            found["method"] = self._one_of(REQUESTS if self.asks else NO_FORMS)
            found["id"] = self._one_of(
                (0, 1, 2, 3, -1, "0", "q", "\u202e", 2**53, 1.5, None, [], {})
            )
        if self._dice.below(8):
            found["params"] = self._params()
        return found

    def _params(self):
        if self._dice.below(8) == 0:
            return self.value()
        found = {}
        for name in FIELDS:
            if self._dice.below(3) == 0:
                found[name] = self.value()
        if self._calls and self._dice.below(2):  # the token that a call would have had
            found["progressToken"] = self._one_of(self._calls)
            found["requestId"] = self._one_of(self._calls)
        if self._dice.below(2):
            found["progress"] = self._one_of((0, 1, 0.5, 10**39, -1, 1e308))
        return found

    def value(self, depth: int = 0):
        """Return any JSON value."""
        kind = self._dice.below(8 if depth < 2 else 6)
        if kind < 6:
            return self._one_of(SCALARS)
        each = [self.value(depth + 1) for _ in range(self._dice.below(4))]
        if kind == 6:
            return each
        return {self._one_of(FIELDS + OF_TOOLS + ("type", "items")): one for one in each}

    def _one_of(self, values):
        return values[self._dice.below(len(values))]

    # -- what breaks it

    def _broken(self, message):
        """Return *message* with another value somewhere in it, or without one."""
        places = []
        _places(message, places)
        holder, key = self._one_of(places)
        holder = _copied(message, holder)
        if type(holder[0]) is dict and self._dice.below(3) == 0:
            del holder[0][key]
        elif self._dice.below(3) == 0 and type(holder[0]) is dict:
            name = self._one_of(
                ("structuredContent", "isError", "resultType", "inputRequests", "requestState")
                + ("content", "tools", "nextCursor", "error", "result", "method", "id", "code")
            )
            holder[0][name] = self._input() if name == "inputRequests" else self.value()
        else:
            holder[0][key] = self.value()
        return holder[1]

    def _input(self):
        """Return what a server of the newer era may want to know."""
        params = self._params()
        if type(params) is dict:
            params["requestedSchema"] = {
                "type": "object",
                "properties": {"a": {"type": "string", self._one_of(FIELDS): self.value()}},
            }
        return {"q": {"method": "elicitation/create", "params": params}, "r": self.value()}


def _places(value, found: list):
    """Gather (holder, key) of all that is in *value*."""
    keys = sorted(value) if type(value) is dict else range(len(value))
    for key in keys:
        found.append((value, key))
        if type(value[key]) in (dict, list):
            _places(value[key], found)


def _copied(value, wanted) -> tuple:
    """Return (the copy of *wanted*, which lies in *value*, and a copy of *value*)."""
    found = []

    def copy(one):
        if type(one) is dict:
            new = {key: copy(one[key]) for key in one}
        elif type(one) is list:
            new = [copy(each) for each in one]
        else:
            return one
        if one is wanted:
            found.append(new)
        return new

    whole = copy(value)
    return found[0], whole
