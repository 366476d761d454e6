"""An MCP server on stdio with one tool, ``echo``, which answers as fast as Python can:
``mcp_echo.py [MORE]``; *MORE*: so many tools more that it lists.
"""

import json
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "depth": {"type": "integer", "minimum": 0, "maximum": 9},
        "kind": {"type": "string", "enum": ["file", "folder"]},
    },
    "required": ["path"],
}
MORE = [
    {"name": "tool_%d" % at, "description": "Do the work %d." % at, "inputSchema": SCHEMA}
    for at in range(int(sys.argv[1]) if sys.argv[1:] else 0)
]
ANSWERS = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "echo", "version": "1"},
    },
    "tools/list": lambda params: {
        "tools": [{"name": "echo", "description": "Give a text back.", "inputSchema": TEXT}] + MORE
    },
    "tools/call": lambda params: {
        "content": [{"type": "text", "text": params["arguments"]["text"]}]
    },
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    answer = ANSWERS.get(request["method"])
    if answer is None:
        reply["error"] = {"code": -32601, "message": "method not found"}
    else:
        reply["result"] = answer(request.get("params", {}))
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
