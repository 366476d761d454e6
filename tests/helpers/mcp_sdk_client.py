"""A client of the official SDK, of either major version: ``mcp_sdk_client.py JSON``, in the
environment of that version (tests/helpers/mcp_clients.py).

The JSON is {"command": [...] or "url": str, "token": str, "era": "auto" or "legacy", "says":
"accept", "decline" or null (it cannot be asked), "content" of what it accepts, "steps": [[what,
...], ...]}; stdout gets a JSON document: {"version": of the protocol, "asked": questions,
"progress": texts, "results": [...]}.
"""

import asyncio
import contextlib
import json
import os
import sys

import mcp

try:
    import mcp_types as types
    from mcp.client.client import Client
except ImportError:  # mcp<2
    from mcp import types

    Client = None
from mcp.client.stdio import StdioServerParameters, stdio_client

PLAN = json.loads(sys.argv[1])
ASKED, PROGRESS = [], []


async def ask(context, params):
    ASKED.append(params.message)
    accepts = PLAN["says"] == "accept"
    content = PLAN.get("content", {"approve": True})
    return types.ElicitResult(action=PLAN["says"], content=content if accepts else None)


async def progress(done, total, message):
    PROGRESS.append(message)


async def step(client, what: str, *args):
    if what == "list":
        return await client.list_tools()
    if what == "call":
        return await client.call_tool(*args, progress_callback=progress)
    if what == "prompts":
        return await client.list_prompts()
    if what == "prompt":
        return await client.get_prompt(*args)
    if what == "cancel":  # give up a call that waits for its answer
        call = asyncio.ensure_future(client.call_tool(*args))
        while not os.path.exists(PLAN["mark"]):
            await asyncio.sleep(0.02)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
    return None


async def results(client) -> list:
    found = []
    for one in PLAN["steps"]:
        try:
            value = await step(client, *one)
            found.append(value and value.model_dump(mode="json", by_alias=True, exclude_none=True))
        except Exception as e:
            error = getattr(e, "error", None)
            if error is None:
                raise
            found.append({"error": {"code": error.code, "message": error.message}})
    return found


def transport():
    if "url" in PLAN:
        headers = {"Authorization": "Bearer " + PLAN["token"]}
        if Client is None:
            from mcp.client.streamable_http import streamablehttp_client

            return streamablehttp_client(PLAN["url"], headers=headers)
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        http = httpx2.AsyncClient(headers=headers, timeout=60)
        return streamable_http_client(PLAN["url"], http_client=http)
    command = PLAN["command"]
    return stdio_client(
        StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    )


async def main():
    asks = ask if PLAN["says"] else None
    if Client is not None:
        async with Client(transport(), mode=PLAN["era"], elicitation_callback=asks) as client:
            return client.protocol_version, await results(client)
    async with transport() as ends, mcp.ClientSession(*ends[:2], elicitation_callback=asks) as one:
        told = await one.initialize()
        return told.protocolVersion, await results(one)


version, found = asyncio.run(main())
print(json.dumps({"version": version, "asked": ASKED, "progress": PROGRESS, "results": found}))
