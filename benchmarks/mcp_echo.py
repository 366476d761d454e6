"""An MCP server on stdio with one tool, ``echo``, which answers as fast as Python can."""

import json
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ANSWERS = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "echo", "version": "1"},
    },
    "tools/list": lambda params: {
        "tools": [{"name": "echo", "description": "Give a text back.", "inputSchema": TEXT}]
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
