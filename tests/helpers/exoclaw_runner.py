"""One turn of exoclaw, a runner that is not ours; the Python of build/runner runs it.

python exoclaw_runner.py URL TOKEN MODEL MESSAGE: the runner has a tool of its own, ``note``, and
prints JSON: the answer, and the names of the tools that it ran itself.
"""

import asyncio
import json
import sys

from exoclaw_provider_openai import Deployment, OpenAIStreamingProvider
from exoclaw_turn import run_turn


class Note:
    name = "note"
    description = "Write a line down."
    parameters = {
        "type": "object",
        "properties": {"line": {"type": "string"}},
        "required": ["line"],
    }

    async def execute(self, **given) -> str:
        return "noted: " + str(given["line"])


async def main(url: str, token: str, model: str, message: str) -> None:
    deployments = {model: Deployment(base_url=url, api_key=token)}
    provider = OpenAIStreamingProvider(default_model=model, deployments=deployments)
    result = await run_turn(
        provider=provider, system="You are brief.", message=message, tools=[Note()]
    )
    ran = [call.name for call in result.tool_calls]
    print(json.dumps({"text": result.text, "ran": ran}))


asyncio.run(main(*sys.argv[1:]))
