"""``mcp_official.py SERVER``: for each line that comes, one call of ``echo`` by the official client
of MCP; its text goes back as a line.
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=sys.executable, args=[sys.argv[1]])
    loop = asyncio.get_running_loop()
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        while True:
            line = await loop.run_in_executor(None, sys.stdin.readline)
            if not line:
                return
            result = await session.call_tool("echo", {"text": line.strip()})
            print(result.content[0].text, flush=True)


asyncio.run(main())
