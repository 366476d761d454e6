"""An MCP server on stdio for tests that sends what nobody asked for (tests/helpers/hostile_mcp.py):

    mcp_hostile_server.py FOLDER SEED ERA [WHAT ...]

ERA   stateless or handshake
WHAT  "forms": it asks a person, too;  "results", "all": what it breaks, once FOLDER/now is there
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "core"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hostile_mcp import Hostile  # noqa: E402

FOLDER, SEED, ERA, *WHAT = sys.argv[1:]
is_now = os.path.exists(os.path.join(FOLDER, "now"))
server = Hostile(int(SEED), next((one for one in WHAT if one != "forms"), "") if is_now else "")
server.is_stateless, server.asks = ERA == "stateless", "forms" in WHAT
LATER = []  # lines that came while it waited


def say(messages: list) -> None:
    sys.stdout.write("".join(json.dumps(one) + "\n" for one in messages))
    sys.stdout.flush()


def wait_until_heard() -> None:
    """Return when the client has taken all that was said."""
    say([{"jsonrpc": "2.0", "id": "heard?", "method": "ping"}])
    while line := sys.stdin.readline():
        if json.loads(line).get("id") == "heard?":
            return
        LATER.append(line)


while line := LATER.pop(0) if LATER else sys.stdin.readline():
    request = json.loads(line)
    for message in server.replies(request):
        if "method" not in message and request["method"] == "tools/call":
            wait_until_heard()
        say([message])
