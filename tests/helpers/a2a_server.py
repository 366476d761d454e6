"""An agent behind the server of the official A2A SDK, a process of its own: ``PORT FOLDER TOKEN``.

It wants the bearer TOKEN.  Each message that it begins to work on is a line in FOLDER/begun,
and each one that is canceled a line in FOLDER/canceled.
"""

import asyncio
import os
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette
from starlette.responses import JSONResponse


class Gardener(AgentExecutor):
    def __init__(self, folder: str):
        self._folder = folder

    def _note(self, name: str, text: str):
        with open(os.path.join(self._folder, name), "a") as file:
            file.write(text + "\n")

    async def execute(self, context, event_queue):
        said = context.get_user_input()
        self._note("begun", said.partition("\n")[0])
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        await task.start_work()
        word, _, rest = said.partition(" ")
        if word == "wait":
            while not os.path.exists(os.path.join(self._folder, "go")):
                await asyncio.sleep(0.01)
        if word == "fail":
            await task.failed()
        elif word == "ask":
            await task.requires_input()
        else:
            answer = "x" * 100000 if word == "long" else "Bed %s is dry." % rest
            await task.add_artifact([Part(text=answer)])
            await task.complete()

    async def cancel(self, context, event_queue):
        self._note("canceled", context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main(port: int, folder: str, token: str):
    url = "http://127.0.0.1:%d/" % port
    card = AgentCard(
        name="far",
        description="Looks at beds.",
        version="1.0",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        skills=[AgentSkill(id="look", name="look", description="Looks.", tags=["bed"])],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
    )
    handler = DefaultRequestHandler(Gardener(folder), InMemoryTaskStore(), card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

    async def only_with_token(scope, receive, send):
        sent = dict(scope["headers"]).get(b"authorization")
        if scope["method"] == "POST" and sent != b"Bearer " + token.encode():
            await JSONResponse({"error": "no"}, status_code=401)(scope, receive, send)
        else:
            await app(scope, receive, send)

    uvicorn.run(only_with_token, host="127.0.0.1", port=port, log_level="warning", lifespan="off")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
