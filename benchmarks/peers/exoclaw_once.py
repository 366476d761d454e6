"""One turn of exoclaw over its streaming provider: ``exoclaw_once.py URL TEXT`` prints the answer.

exoclaw is a framework without a command of its own, so this is the least that starts it.
"""

import asyncio
import sys

from exoclaw_provider_openai import Deployment, OpenAIStreamingProvider
from exoclaw_turn import run_turn


async def main(url: str, text: str) -> None:
    deployments = {"llama3.2": Deployment(base_url=url, api_key="none")}
    provider = OpenAIStreamingProvider(default_model="llama3.2", deployments=deployments)
    result = await run_turn(provider=provider, system="You are brief.", message=text, tools=[])
    print(result.text)


asyncio.run(main(*sys.argv[1:]))
