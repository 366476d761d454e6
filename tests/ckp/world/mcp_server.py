#!/usr/bin/env python3
"""An MCP server on stdio with one tool, mcp-echo.  Each method that it is asked for goes to the
file $CKP_MCP_LOG, a line each.
"""

import json
import os
import sys

TOOL = {
    "name": "mcp-echo",
    "description": "Echo input back",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def note(variable: str, line: str) -> None:
    if variable in os.environ:
        with open(os.environ[variable], "a") as file:
            file.write(line + "\n")


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fixture-mcp", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    note("CKP_LEDGER", "mcp-echo")
    return {"content": [{"type": "text", "text": params["arguments"]["text"]}], "isError": False}


for line in sys.stdin:
    request = json.loads(line)
    note("CKP_MCP_LOG", request["method"])
    if "id" in request:
        reply = {
            "jsonrpc": "2.0",
            "id": request["id"],
            "result": answer(request["method"], request.get("params", {})),
        }
        print(json.dumps(reply), flush=True)
