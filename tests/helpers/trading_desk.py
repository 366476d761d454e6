"""The trading desk of Clawdapus ADR-020: its service on loopback, an analyst who may read the
market context, and an executor who may trade.
"""

import http.server
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

from clawlite.host.builder.build import build_beside

TOKEN = "t-canary-51c0-of-the-desk"
DESCRIPTOR = {
    "version": 2,
    "description": "Trading Desk API: broker connectivity, trade execution, and market context.",
    "tools": [
        {
            "name": "get_market_context",
            "description": "Retrieve agent-scoped market context: positions, balance, buying power",
            "inputSchema": {
                "type": "object",
                "properties": {"claw_id": {"type": "string", "description": "Agent identifier"}},
                "required": ["claw_id"],
            },
            "http": {"method": "GET", "path": "/api/v1/market_context/{claw_id}"},
            "annotations": {"readOnly": True},
        },
        {
            "name": "execute_trade",
            "description": "Execute a market order",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "symbol": {"type": "string"},
                    "side": {"type": "string", "enum": ["buy", "sell"]},
                    "quantity": {"type": "number"},
                },
                "required": ["symbol", "side", "quantity"],
            },
            "http": {"method": "POST", "path": "/api/v1/trades", "body": "json"},
            "annotations": {"readOnly": False},
        },
    ],
    "feeds": [{"name": "market-context", "path": "/api/v1/market_context/{claw_id}", "ttl": 30}],
    "skill": "skills/trading-policy.md",
    "endpoints": [{"method": "GET", "path": "/api/v1/hidden", "description": "For operators."}],
    "auth": {"type": "bearer", "env": "TRADING_API_TOKEN"},
}
SKILL = """---
name: trading-policy
description: When to trade, and how much.
---
Check the market context before every trade.
"""
CLAW = """claw: "0.3.0"
kind: Claw
metadata: {{ name: {name}, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You work at a trading desk.", autonomy: autonomous }} }}
  providers:
    - inline: {provider}
  sandbox: {{ inline: {{ name: box, level: {level}, capabilities: {{ network: {{ mode: allowlist,
              allowed_hosts: ["127.0.0.1"] }} }} }} }}
  policies: [{{ inline: {{ name: p, rules: {rules}, audit: {{ log_inputs: true,
              log_outputs: true }} }} }}]
"""
REFLEX = (
    '{ name: rules, protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } }'
)
ALLOW = [{"id": "all", "action": "allow", "scope": "all"}]


class Desk:
    """The service, on a free port of loopback.

    requests  [(method, path, headers, body)], what it was asked
    answers   {path: function(handler) -> (status, body)}, in place of its own
    """

    def __init__(self, token: str = TOKEN):
        self.requests, self.answers, self.tokens = [], {}, {token: "desk"}
        self._gates = []
        desk = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                desk.requests.append((self.command, self.path, dict(self.headers), body))
                status, said = desk.answer(self, body)
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # who asked has gone
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def answer(self, handler, body: bytes) -> tuple:
        path = urlsplit(handler.path).path
        if path in self.answers:
            return self.answers[path](handler)
        said = handler.headers.get("Authorization", "").removeprefix("Bearer ")
        if said not in self.tokens:
            return 401, {"error": "who are you?"}
        if path.startswith("/api/v1/market_context/"):
            return 200, {"claw": path.rsplit("/", 1)[1], "balance": 50000}
        if path == "/api/v1/trades":
            return 201, {"filled": json.loads(body), "by": self.tokens[said]}
        return 404, {"error": "no such thing"}

    def gate(self, path: str) -> threading.Event:
        """Let what is asked at *path* wait for the event that is returned."""
        event = threading.Event()
        self._gates.append(event)
        self.answers[path] = lambda _: (event.wait(60), (200, {}))[1]
        return event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for event in self._gates:
            event.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def write(
    folder: Path,
    url: str = "http://127.0.0.1:4000",
    name: str = "analyst",
    allow='["get_market_context"]',
    descriptor=DESCRIPTOR,
    more: str = "",
    service: str = "",
    rules=ALLOW,
    level: str = "none",
    provider: str = REFLEX,
    grants: str = None,
    reflex: str = None,
) -> Path:
    """Write the project of an agent at the desk into *folder*; return that.

    allow  of its grant, as TOML;  more: the end of clawlite.toml;  service: more of [services.*];
    grants: in place of surfaces and tools;  reflex: rules in place of those that call the tools
    """
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "claw.yaml").write_text(
        CLAW.format(name=name, provider=provider, rules=json.dumps(rules), level=level)
    )
    if grants is None:
        grants = (
            'surfaces = ["service://trading-api"]\n'
            f'tools = [{{ service = "trading-api", allow = {allow} }}]\n'
        )
    (folder / "clawlite.toml").write_text(
        f'reflex = "reflex.toml"\n{grants}[services.trading-api]\n'
        f'descriptor = "services/trading-api.json"\nurl = "{url}"\n{service}{more}'
    )
    (folder / "reflex.toml").write_text(
        reflex
        or '[[rule]]\nwhen = "context"\ncall = "trading-api.get_market_context"\n'
        'then = [{ say = "{result}" }]\n'
        + (
            '[[rule]]\nwhen = "buy {symbol:text}"\ncall = "trading-api.execute_trade"\n'
            'arguments = { symbol = "{symbol}", side = "buy", quantity = 2 }\n'
            'then = [{ say = "{result}" }]\n'
            if allow == '"all"'
            else ""
        )
    )
    (folder / "services/skills").mkdir(exist_ok=True, parents=True)
    (folder / "services/skills/trading-policy.md").write_text(SKILL)
    text = descriptor if isinstance(descriptor, str) else json.dumps(descriptor, indent=1)
    (folder / "services/trading-api.json").write_text(text)
    return folder


def build(folder: Path, *args, **named) -> str:
    """Write and build such a project; return its image."""
    return build_beside(str(write(folder, *args, **named)))
