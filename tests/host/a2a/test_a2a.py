"""A2A over HTTP: the official client against the door of a gateway, with a real agent behind it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import mcp_agents
import pytest
from agents import DEADLINE_S, environment, eventually, linux
from free_ports import free_port
from later import Later

from clawlite.core.base.errors import ClawError
from clawlite.host.a2a import a2a as doors
from clawlite.host.a2a.a2a import MOST_OPEN
from clawlite.host.a2a.card import INPUT_SCHEMA
from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.store import Store
from clawlite.host.proxy import http_server

httpx, client_api, errors = Later("httpx"), Later("a2a.client"), Later("a2a.utils.errors")
json_format = Later("google.protobuf.json_format")
new, old = Later("a2a.types.a2a_pb2"), Later("a2a.compat.v0_3.types")
VERSIONS = ("0.3.0", "1.0")
OPEN_TASKS = 16  # of one name, as docs/a2a.md says
PROMPT = "canary: a prompt that nobody outside may read"
CLAW = f"""\
claw: "0.3.0"
kind: Claw
metadata: {{ name: bed, version: "2.1.0", description: "Looks after beds of a garden." }}
spec:
  identity: {{ inline: {{ name: bed, personality: "{PROMPT}", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: rules, protocol: custom, endpoint: "builtin:reflex", model: m,
                auth: {{ type: none }} }}
  sandbox: {{ inline: {{ level: none }} }}
  tools:
    - inline: {{ name: look, description: "Look at a bed.", annotations: {{ readOnlyHint: true }},
                input_schema: {{ type: object, properties: {{ bed: {{ type: string }} }},
                                 required: [bed] }} }}
    - inline: {{ name: water, description: "Water a bed.",
                input_schema: {{ type: object, properties: {{ bed: {{ type: string }} }},
                                 required: [bed] }} }}
  skills: [./skill.yaml]
  policies:
    - inline:
        rules:
          - {{ id: ask, action: require-approval, scope: tool, match: {{ name: water }} }}
          - {{ id: all, action: allow, scope: all }}
"""
SKILL = """\
claw: "0.3.0"
kind: Skill
metadata: { name: care, labels: { domain: garden } }
spec:
  description: "Care for a bed."
  instruction: "canary: instructions of a skill stay inside"
  tools_required: [look, water]
  input_schema: { type: object, properties: { bed: { type: string } }, required: [bed] }
"""
RULES = """\
[[rule]]
when = "look at {bed:text}"
call = "look"
arguments = { bed = "{bed}" }
then = [{ say = "Bed {result}." }]

[[rule]]
when = "water {bed:text}"
call = "water"
arguments = { bed = "{bed}" }
then = [{ say = "{result}" }]
"""
TOOLS = '''\
import os


def look(bed: str) -> str:
    """Look at a bed."""
    gate = "GATES/" + bed
    try:
        while os.path.isdir(gate) and not os.path.exists(gate + "/go"):
            open(gate + "/begun", "w").close()
            yield 10
    finally:
        if os.path.isdir(gate):
            open(gate + "/safe", "w").close()
    return bed + " is dry"


def water(bed: str) -> str:
    """Water a bed."""
    return "Watered " + bed
'''


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "bed"
    made.mkdir()
    for name, text in {
        "claw.yaml": CLAW,
        "skill.yaml": SKILL,
        "clawlite.toml": 'reflex = "reflex.toml"\n',
        "reflex.toml": RULES,
        "tools.py": TOOLS.replace("GATES", str(tmp_path)),
    }.items():
        (made / name).write_text(text)
    return made


class Served:
    """A gateway with its A2A door, and clients of it."""

    def __init__(self, folder, **options):
        self._folder, self._options = folder, options
        self.notes, self._tokens = [], {}

    async def __aenter__(self):
        path = os.path.join(gateways.folder(), "gateway.db")
        images = Images([str(self._folder)], self.notes.append)
        store = await Store.open(path, self.notes.append)
        self.gateway = gateways.Gateway(images, store, None, self.notes.append)
        doors = gateways.Doors(**{"a2a": "127.0.0.1:0", **self._options})
        self._https = []
        try:
            self.url = await self.gateway.serve_agents([str(self._folder)], doors)
        except BaseException:
            await self.gateway.close()
            raise
        return self

    async def __aexit__(self, *_):
        for http in self._https:
            await http.aclose()
        await self.gateway.close()

    def http(self, name: str = "friend", token: str = None) -> "httpx.AsyncClient":
        if name not in self._tokens:
            self._tokens[name] = gateways.make_token(name, ["a2a"])
        token = token or self._tokens[name]
        headers = {"Authorization": f"Bearer {name}:{token}"}
        http = httpx.AsyncClient(headers=headers, timeout=DEADLINE_S, trust_env=False)
        self._https.append(http)
        return http

    async def client(self, version: str, name: str = "friend", streaming: bool = False):
        """Return the official client, for *version* of the protocol alone."""
        http = self.http(name)
        card = await client_api.A2ACardResolver(http, self.url).get_agent_card()
        others = [each for each in card.supported_interfaces if each.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(others)
        config = client_api.ClientConfig(httpx_client=http, streaming=streaming)
        return client_api.ClientFactory(config).create(card)

    async def post(self, http, method: str, params: dict, **headers) -> dict:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await http.post(self.url, json=body, headers=headers)).json()


def run(play, folder, **options):
    async def inside():
        async with Served(folder, **options) as it, asyncio.timeout(DEADLINE_S):
            return await play(it)

    return asyncio.run(inside())


def asked(text: str, number: str = "m-1", **more) -> "new.SendMessageRequest":
    message = new.Message(
        message_id=number, role=new.ROLE_USER, parts=[new.Part(text=text)], **more
    )
    return new.SendMessageRequest(message=message)


async def events(client, request) -> list:
    return [event async for event in client.send_message(request)]


async def task_of(client, request) -> "new.Task":
    """Send a message without streaming; return its task."""
    (event,) = await events(client, request)
    return event.task


def answer(task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_is_a_task_that_ends_with_an_answer(folder, version):
    async def play(it):
        client = await it.client(version)
        task = await task_of(client, asked("look at 3", context_id="talk-1"))
        assert task.status.state == new.TASK_STATE_COMPLETED and task.context_id == "talk-1"
        assert answer(task) == "Bed 3 is dry."
        again = await client.get_task(new.GetTaskRequest(id=task.id))
        assert again == task
        # the same message is the same task, and runs once
        assert await task_of(client, asked("look at 3", context_id="talk-1")) == task
        with pytest.raises(errors.InvalidParamsError, match="with other words"):
            await task_of(client, asked("look at 4", context_id="talk-1"))

    run(play, folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_tells_states_and_the_answer(folder, version):
    async def play(it):
        client = await it.client(version, streaming=True)
        bed = folder.parent / "gate"
        bed.mkdir()
        seen = []
        async for event in client.send_message(asked("look at gate")):
            seen.append(event)
            if len(seen) == 1:
                assert event.WhichOneof("payload") == "task"
                task = event.task
                (bed / "go").touch()
        kinds = [event.WhichOneof("payload") for event in seen]
        assert kinds[-2:] == ["artifact_update", "status_update"]
        assert seen[-2].artifact_update.artifact.parts[0].text == "Bed gate is dry."
        assert seen[-1].status_update.status.state == new.TASK_STATE_COMPLETED
        assert {event.status_update.task_id for event in seen[-1:]} == {task.id}
        with pytest.raises(errors.UnsupportedOperationError):
            async for _ in client.subscribe(new.SubscribeToTaskRequest(id=task.id)):
                pass

    run(play, folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_task_under_way_is_subscribed_to_and_canceled(folder, version):
    async def play(it):
        client = await it.client(version, streaming=True)
        bed = folder.parent / "gate"
        bed.mkdir()
        request = asked("look at gate")
        request.configuration.return_immediately = True
        still = await it.client(version)
        task = await task_of(still, request)
        assert task.status.state in (new.TASK_STATE_SUBMITTED, new.TASK_STATE_WORKING)
        eventually((bed / "begun").exists)
        seen = []
        async for event in client.subscribe(new.SubscribeToTaskRequest(id=task.id)):
            if not seen:
                canceled = await still.cancel_task(new.CancelTaskRequest(id=task.id))
                assert canceled.status.state == new.TASK_STATE_CANCELED
            seen.append(event)
        assert seen[0].task.id == task.id
        assert seen[-1].status_update.status.state == new.TASK_STATE_CANCELED
        eventually((bed / "safe").exists)  # its tool has ended as it is written
        with pytest.raises(errors.TaskNotCancelableError):
            await still.cancel_task(new.CancelTaskRequest(id=task.id))

    run(play, folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_caller_may_deny_what_it_asked_for_and_never_approves_it(folder, version):
    async def play(it):
        for name in ("friend", "owner"):
            client = await it.client(version, name)
            task = await task_of(client, asked("water 3"))
            assert task.status.state == new.TASK_STATE_INPUT_REQUIRED
            said = said_of(task)
            assert ("water" in said) == (name == "owner"), "a tool's name is for who approves"
            assert "approve or deny" not in said
            for word in ("approve", " APPROVE\n"):
                with pytest.raises(
                    errors.UnsupportedOperationError,
                    match="may deny but not approve what it asked for itself - the console, the "
                    "page or another name of --a2a-approver can",
                ):
                    await task_of(client, asked(word, "c", task_id=task.id))
            ended = await task_of(client, asked("deny", "d", task_id=task.id))
            assert ended.status.state == new.TASK_STATE_COMPLETED
            assert "Watered" not in answer(ended)

    run(play, folder, approvers=("owner",))


def said_of(task) -> str:
    return task.status.message.parts[0].text


async def list_waiting(it, name: str) -> list:
    """Return the tasks that *name* lists; the official client of 0.3 has no such call."""
    client = await it.client("1.0", name)
    return list((await client.list_tasks(new.ListTasksRequest())).tasks)


def got(task_id: str) -> "new.GetTaskRequest":
    return new.GetTaskRequest(id=task_id)


@pytest.mark.parametrize("form", ["friend/%s", "/friend/%s", "%s"])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_approver_sees_tasks_of_others_while_they_wait(folder, version, form):
    async def play(it):
        friend, owner = await it.client(version), await it.client(version, "owner")
        for text, word in (("water 3", "approve"), ("water 4", "deny")):
            task = await task_of(friend, asked(text, text, context_id="talk"))
            shown = form % task.id
            found = await owner.get_task(got(shown))
            assert found.status.state == new.TASK_STATE_INPUT_REQUIRED and found.id == shown
            assert found.context_id == "talk"
            assert 'bed="%s"' % text[-1] in said_of(found) and "a2a:friend asked" in said_of(found)
            with pytest.raises(errors.TaskNotCancelableError, match="another's"):
                await owner.cancel_task(new.CancelTaskRequest(id=shown))
            with pytest.raises(errors.UnsupportedOperationError, match="expected approve or deny"):
                await task_of(owner, asked("water 5", "x", task_id=shown))
            done = await task_of(owner, asked(word, "a", task_id=shown))
            assert done.id == shown and not done.artifacts and not done.status.message.parts
            ended = await end_task(friend, task.id)
            assert (answer(ended) == "Watered 3") == (word == "approve")
            with pytest.raises(errors.TaskNotFoundError, match="nothing was done now"):
                await owner.get_task(got(shown))
            for late in ("approve", "deny"):
                with pytest.raises(errors.TaskNotFoundError, match="answered, or has ended"):
                    await task_of(owner, asked(late, "b", task_id=shown))
        assert not await list_waiting(it, "owner")

    run(play, folder, approvers=("owner",))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_approver_answers_what_a_rule_asks(folder, state, version):
    rule = '[[rule]]\nname = "thirst"\nevery = "1s"\ncall = "water"\narguments = { bed = "9" }\n'
    (folder / "reflex.toml").write_text(RULES + rule)

    async def play(it):
        clients = [await it.client(version, name) for name in ("owner", "other", "friend")]
        owner, other, friend = clients
        streaming = await it.client(version, "other", streaming=True)
        for word in ("approve", "deny"):
            while not (waiting := await list_waiting(it, "owner")):
                await asyncio.sleep(0)
            (one,) = waiting
            assert one.id.startswith("/question:") and 'water(bed="9")' in said_of(one)
            assert "rule ask asks first" in said_of(one) and "rule/thirst asked" in said_of(one)
            assert [task.id for task in await list_waiting(it, "other")] == [one.id]
            assert not await list_waiting(it, "friend")
            for text in ("approve", "deny"):
                with pytest.raises(errors.TaskNotFoundError, match="unknown task"):
                    await task_of(friend, asked(text, "f", task_id=one.id))
            with pytest.raises(errors.UnsupportedOperationError, match="expected approve or deny"):
                await task_of(owner, asked("water 5", "x", task_id=one.id))
            with pytest.raises(errors.TaskNotCancelableError, match="another's"):
                await owner.cancel_task(new.CancelTaskRequest(id=one.id))
            watched = new.SubscribeToTaskRequest(id=one.id)
            (event,) = [event async for event in streaming.subscribe(watched)]
            assert event.task.status.state == new.TASK_STATE_INPUT_REQUIRED
            done = await task_of(owner, asked(word, "a", task_id=one.id))
            assert done.id == one.id and done.status.state == new.TASK_STATE_COMPLETED
            for late in ("approve", "deny"):
                with pytest.raises(errors.TaskNotFoundError, match="answered, or has ended"):
                    await task_of(other, asked(late, "b", task_id=one.id))

    run(play, folder, approvers=("owner", "other"))
    log = (state / "bed/log.jsonl").read_text().splitlines()
    told = [one for one in map(json.loads, log) if one["event"] == "tool.approval"]
    answers = [(one["answer"], one.get("by")) for one in told]
    assert answers[:2] == [("approved", "a2a:owner"), ("denied", "a2a:owner")]
    ran = [one for one in map(json.loads, log) if one["event"] == "tool.call"]
    assert ran[0]["caller"] == "rule/thirst" and ran[0]["status"] == "ok"


async def end_task(client, task_id: str):
    """Return the task when its turn is over."""
    while True:
        task = await client.get_task(got(task_id))
        if task.status.state not in (new.TASK_STATE_WORKING, new.TASK_STATE_SUBMITTED):
            return task


@pytest.mark.parametrize("method", ["ListTasks", "tasks/list"])
def test_an_approver_lists_what_waits_and_others_do_not(folder, method):
    field = "status" if method == "ListTasks" else "state"
    waits = "TASK_STATE_INPUT_REQUIRED" if method == "ListTasks" else "input-required"

    async def play(it):
        friend, http = await it.client("1.0"), it.http("owner")
        await task_of(friend, asked("look at 3", "over"))
        waiting = [await task_of(friend, asked("water %d" % n, str(n))) for n in (1, 2)]
        own = await task_of(await it.client("1.0", "owner"), asked("look at 3", "own"))
        expected = [own.id] + ["friend/" + task.id for task in reversed(waiting)]
        for params, ids in (
            ({}, expected),
            ({field: waits}, expected[1:]),
            ({"contextId": waiting[0].context_id, "includeArtifacts": True}, expected[2:]),
        ):
            tasks, token = [], ""
            while True:
                page = dict(params, pageSize=1, pageToken=token)
                page = (await it.post(http, method, page))["result"]
                tasks += page["tasks"]
                token = page["nextPageToken"]
                if not token:
                    break
            assert [task["id"] for task in tasks] == ids, params
        assert tasks[0]["contextId"] == waiting[0].context_id
        assert 'bed="1"' in tasks[0]["status"]["message"]["parts"][0]["text"]
        other = await it.client("1.0", "other")
        assert not await list_waiting(it, "other")
        for task_id in (waiting[0].id, "friend/" + waiting[0].id):
            with pytest.raises(errors.TaskNotFoundError, match="unknown task"):
                await other.get_task(got(task_id))
            with pytest.raises(errors.TaskNotFoundError, match="unknown task"):
                await task_of(other, asked("deny", "x", task_id=task_id))

    run(play, folder, approvers=("owner",))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_of_two_approvers_counts_and_streams_tell_no_answer(folder, version):
    async def play(it):
        friend, stream = await it.client(version), await it.client(version, "second", True)
        owner, second = await it.client(version, "owner"), await it.client(version, "second")
        task = await task_of(friend, asked("water 3"))
        shown = "friend/" + task.id
        for name in ("owner", "second"):
            assert [one.id for one in await list_waiting(it, name)] == [shown]
        (seen,) = [one async for one in stream.subscribe(new.SubscribeToTaskRequest(id=shown))]
        assert "water" in said_of(seen.task)
        (event,) = await events(stream, asked("approve", "a", task_id=shown))
        assert event.task.id == shown and not event.task.artifacts
        with pytest.raises(errors.TaskNotFoundError, match="nothing was done now"):
            await task_of(owner, asked("deny", "b", task_id=shown))
        assert answer(await end_task(friend, task.id)) == "Watered 3"
        # an approver approves another's, not its own
        task = await task_of(owner, asked("water 4"))
        with pytest.raises(errors.UnsupportedOperationError, match="asked for itself"):
            await task_of(owner, asked("approve", "c", task_id="owner/" + task.id))
        await task_of(second, asked("approve", "d", task_id="owner/" + task.id))
        assert answer(await end_task(owner, task.id)) == "Watered 4"

    run(play, folder, approvers=("owner", "second"))


def test_an_answer_to_a_question_that_was_shown_never_meets_the_next(folder):
    """Two calls of one turn: who saw the first, and is late, does not answer the second."""
    rule = '[[rule]]\nwhen = "twice"\ncall = "water"\narguments = { bed = "1" }\n'
    rule += 'then = [{ call = "water", arguments = { bed = "1" } }, { say = "{result}" }]\n'
    (folder / "reflex.toml").write_text(RULES + rule)

    async def play(it):
        friend = await it.client("1.0")
        owner, second = await it.client("1.0", "owner"), await it.client("1.0", "second")
        task = await task_of(friend, asked("twice"))
        shown = "friend/" + task.id
        for client in (owner, second):
            await client.get_task(got(shown))
        await task_of(owner, asked("approve", "a", task_id=shown))
        again = await end_task(friend, task.id)
        assert again.status.state == new.TASK_STATE_INPUT_REQUIRED
        for client, said in ((owner, "approve"), (second, "approve"), (second, "deny")):
            with pytest.raises(errors.UnsupportedOperationError, match="something else by now"):
                await task_of(client, asked(said, "b", task_id=shown))
        again = await friend.get_task(got(task.id))
        assert again.status.state == new.TASK_STATE_INPUT_REQUIRED
        await second.get_task(got(shown))
        await task_of(second, asked("approve", "c", task_id=shown))
        assert answer(await end_task(friend, task.id)) == "Watered 1"

    run(play, folder, approvers=("owner", "second"))


def test_an_id_that_two_others_have_is_told_apart_by_their_names(folder):
    async def play(it):
        owner = await it.client("1.0", "owner")
        for name in ("friend", "other"):
            task = await task_of(await it.client("1.0", name), asked("water 3", context_id="c"))
        with pytest.raises(errors.TaskNotFoundError, match="several tasks have this id"):
            await owner.get_task(got(task.id))
        await task_of(owner, asked("deny", "a", task_id="other/" + task.id))
        found = await owner.get_task(got(task.id))
        assert "a2a:friend asked" in said_of(found)

    run(play, folder, approvers=("owner",))


def with_server(folder, tmp_path):
    """Let the agent have a tool of an MCP server that asks for a number of nights in each call."""
    marks = tmp_path / "marks"
    marks.mkdir()
    nights = {"type": "integer", "minimum": 1}
    form = {"type": "object", "properties": {"nights": nights}, "required": ["nights"]}
    (marks / "asks").write_text(json.dumps([{"message": "How long?", "requestedSchema": form}]))
    tool = json.dumps(mcp_agents.tool("echo", "echo"))
    (folder / "claw.yaml").write_text(CLAW.replace("  tools:\n", f"  tools:\n    - {tool}\n"))
    args = json.dumps([str(mcp_agents.SERVER), str(marks), "asks"])
    (folder / "clawlite.toml").write_text(f'reflex = "reflex.toml"\n[mcp.t]\nargs = {args}\n')
    rule = '[[rule]]\nwhen = "book"\ncall = "echo"\narguments = { text = "x" }\n'
    (folder / "reflex.toml").write_text(RULES + rule + 'then = [{ say = "{result}" }]\n')


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_mcp_server_asks_is_put_to_who_may_approve(folder, tmp_path, version):
    """Its task is input_required; others may deny, and are told nothing of the question."""
    with_server(folder, tmp_path)

    async def play(it):
        friend, owner = await it.client(version), await it.client(version, "owner")
        task = await task_of(owner, asked("book", "a"))
        assert task.status.state == new.TASK_STATE_INPUT_REQUIRED
        said = task.status.message.parts[0].text
        assert "The MCP server t asks during the call of echo" in said
        assert '"How long?"' in said and "Answer with VALUE, or deny" in said
        with pytest.raises(errors.InvalidParamsError, match="whole number"):
            await task_of(owner, asked("many", "b", task_id=task.id))
        again = await task_of(owner, asked("book", "a"))
        assert again.status.state == new.TASK_STATE_INPUT_REQUIRED, "a message that comes twice"
        ended = await task_of(owner, asked("3", "c", task_id=task.id))
        assert ended.status.state == new.TASK_STATE_COMPLETED
        assert json.loads(answer(ended)) == [{"action": "accept", "content": {"nights": 3}}]
        task = await task_of(friend, asked("book", "d"))
        assert task.status.state == new.TASK_STATE_INPUT_REQUIRED
        assert "How long" not in task.status.message.parts[0].text
        with pytest.raises(errors.UnsupportedOperationError, match="may deny but not approve"):
            await task_of(friend, asked("3", "e", task_id=task.id))
        ended = await task_of(friend, asked("deny", "f", task_id=task.id))
        assert json.loads(answer(ended)) == [{"action": "decline"}]
        task = await task_of(friend, asked("book", "g"))
        found = await owner.get_task(got("friend/" + task.id))
        assert '"How long?"' in said_of(found)
        with pytest.raises(errors.InvalidParamsError, match="whole number"):
            await task_of(owner, asked("many", "h", task_id=found.id))
        await task_of(owner, asked("4", "i", task_id=found.id))
        ended = await end_task(friend, task.id)
        assert json.loads(answer(ended)) == [{"action": "accept", "content": {"nights": 4}}]

    run(play, folder, approvers=("owner",))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_that_comes_twice_answers_nothing(folder, tmp_path, version, streaming):
    """Without a taskId it is no answer, whatever it says and whoever sends it."""
    with_server(folder, tmp_path)
    rule = '[[rule]]\nwhen = "approve"\ncall = "water"\narguments = { bed = "4" }\n'
    with open(folder / "reflex.toml", "a") as file:
        file.write(rule + 'then = [{ say = "{result}" }]\n')

    async def play(it):
        ended = {}
        for name in ("friend", "owner"):
            client = await it.client(version, name)
            sender = await it.client(version, name, streaming=streaming)
            for text in ("water 3", "book", "approve"):
                number = f"{name} {text}"
                task = await task_of(client, asked(text, number, context_id="c1"))
                for said in {"approve", "yes", "deny", "no", "3", '{"nights": 3}'} - {text}:
                    with pytest.raises(errors.InvalidParamsError, match="with other words"):
                        await events(sender, asked(said, number, context_id="c1"))
                await events(sender, asked(text, number, context_id="c1"))
                again = await client.get_task(new.GetTaskRequest(id=task.id))
                assert again.status.state == new.TASK_STATE_INPUT_REQUIRED
                said = "deny" if name == "friend" else "3" if text == "book" else "approve"
                if said == "approve":  # nobody approves what it asked for itself
                    second = await it.client(version, "second")
                    await task_of(second, asked(said, "x", task_id="owner/" + task.id))
                    ended[number] = answer(await end_task(client, task.id))
                    continue
                ended[number] = answer(await task_of(client, asked(said, "x", task_id=task.id)))
        assert "Watered" not in ended["friend water 3"] + ended["friend approve"]
        assert ended["owner water 3"] == "Watered 3" and ended["owner approve"] == "Watered 4"
        assert json.loads(ended["friend book"]) == [{"action": "decline"}]
        assert json.loads(ended["owner book"])[0]["content"] == {"nights": 3}

    run(play, folder, approvers=("owner", "second"))


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_where_nobody_may_approve_a_message_that_comes_twice_does_not(folder, method):
    async def play(it):
        http = it.http()
        message = {**SENT, "contextId": "c1", "parts": [{"text": "water 3"}]}
        sent = await it.post(http, "SendMessage", {"message": message})
        task = sent["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        for said in ("approve", "yes"):
            again = {**message, "parts": [{"text": said}]}
            answer = await it.post(http, method, {"message": again})
            assert answer["error"]["code"] == -32602
        found = (await it.post(http, "GetTask", {"id": task["id"]}))["result"]
        assert found["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"

    run(play, folder)


def test_where_nobody_may_approve_an_mcp_server_is_told_so_at_once(folder, tmp_path):
    with_server(folder, tmp_path)

    async def play(it):
        ended = await task_of(await it.client("1.0"), asked("book"))
        assert ended.status.state == new.TASK_STATE_COMPLETED
        assert "does not offer" in answer(ended)

    run(play, folder)


def test_tasks_are_listed_in_pages_and_each_caller_has_its_own(folder):
    async def play(it):
        client, other = await it.client("1.0"), await it.client("1.0", "other")
        for number in range(5):
            await task_of(client, asked("look at 3", str(number), context_id="c%d" % (number % 2)))
        theirs = await task_of(other, asked("look at 3", "0", context_id="c0"))
        seen, token = [], ""
        while True:
            page = await client.list_tasks(new.ListTasksRequest(page_size=2, page_token=token))
            assert page.total_size == 5 and page.page_size == 2
            seen += page.tasks
            token = page.next_page_token
            if not token:
                break
        assert len(seen) == len({task.id for task in seen}) == 5 and not seen[0].artifacts
        request = new.ListTasksRequest(
            context_id="c1", status=new.TASK_STATE_COMPLETED, include_artifacts=True
        )
        found = (await client.list_tasks(request)).tasks
        assert [answer(task) for task in found] == ["Bed 3 is dry."] * 2
        request = new.ListTasksRequest(status=new.TASK_STATE_WORKING)
        assert not (await client.list_tasks(request)).tasks
        # an id is no key: the same one is another's own task, or unknown
        only = [task.id for task in seen if task.id != theirs.id][0]
        with pytest.raises(errors.TaskNotFoundError):
            await other.get_task(new.GetTaskRequest(id=only))
        with pytest.raises(errors.TaskNotFoundError):
            await other.cancel_task(new.CancelTaskRequest(id=only))
        old_page = await it.post(it.http(), "tasks/list", {"pageSize": 1, "state": "completed"})
        assert old_page["result"]["tasks"][0]["kind"] == "task"

    run(play, folder)


def test_a_page_goes_on_after_a_task_that_has_another_state_by_now(folder):
    """Whoever answers each task that waits, page by page, sees all of them."""

    async def play(it):
        client, seen, token = await it.client("1.0"), [], ""
        for number in range(4):
            await task_of(client, asked("water %d" % number, str(number)))
        while True:
            params = {"pageSize": 1, "status": "TASK_STATE_INPUT_REQUIRED", "pageToken": token}
            page = (await it.post(it.http(), "ListTasks", params))["result"]
            seen += [task["id"] for task in page["tasks"]]
            token = page["nextPageToken"]
            if not token:
                break
            await client.cancel_task(new.CancelTaskRequest(id=seen[-1]))
        assert len(seen) == len(set(seen)) == 4

    run(play, folder)


def test_the_card_is_made_from_the_manifest_and_holds_no_prompt(folder):
    async def play(it):
        async with httpx.AsyncClient(trust_env=False) as http:
            found = (await http.get(it.url + ".well-known/agent-card.json")).json()
        assert "canary" not in json.dumps(found)
        card = old.AgentCard.model_validate(found)
        assert (card.name, card.version, card.protocol_version) == ("bed", "2.1.0", "0.3.0")
        assert card.url == it.url and card.security == [{"bearer": []}]
        assert card.description == "Looks after beds of a garden."
        assert card.security_schemes["bearer"].root.scheme == "bearer"
        (skill,) = card.skills
        assert (skill.id, skill.name, skill.description) == ("care", "care", "Care for a bed.")
        assert skill.tags == ["domain:garden", "look", "water"]
        card = client_api.card_resolver.parse_agent_card(found)
        assert [each.protocol_version for each in card.supported_interfaces] == ["1.0", "0.3.0"]
        assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
        (extension,) = card.capabilities.extensions
        assert extension.uri == INPUT_SCHEMA and not extension.required
        assert json_format.MessageToDict(extension)["params"]["care"]["required"] == ["bed"]

    run(play, folder)


def test_who_has_no_token_is_refused_and_nothing_is_started(folder):
    async def play(it):
        for http in (httpx.AsyncClient(trust_env=False), it.http(token="0" * 64)):
            async with http:
                answer = await http.post(it.url, json={})
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert it.gateway._a2a._agent._process is None
        assert len(it.notes) == 2 and "has a wrong token" in it.notes[-1]

    run(play, folder)


SENT = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "look at 3"}]}


@pytest.mark.parametrize(
    "method, params, headers, code, said",
    [
        ("tasks/get", {"id": "nothing"}, {}, -32001, "unknown task"),
        ("GetTask", {"id": "c.0123456789abcdef"}, {}, -32001, "unknown task"),
        ("GetTask", {"id": "../other/c.0123456789abcdef"}, {}, -32001, "unknown task"),
        ("GetTask", {}, {}, -32602, "id: expected the id of a task"),
        ("SendMessage", {}, {}, -32602, "message: expected an object"),
        ("SendMessage", {"message": {**SENT, "role": "user"}}, {}, -32602, "ROLE_USER"),
        ("SendMessage", {"message": {**SENT, "parts": []}}, {}, -32602, "array of parts"),
        ("SendMessage", {"message": {**SENT, "parts": [{"raw": "AA=="}]}}, {}, -32005, "text"),
        (
            "SendMessage",
            {"message": {**SENT, "parts": [{"text": "a", "data": {}}]}},
            {},
            -32005,
            "nothing else",
        ),
        ("SendMessage", {"message": {**SENT, "parts": [{"text": ""}]}}, {}, -32602, "found none"),
        ("SendMessage", {"message": {**SENT, "messageId": ""}}, {}, -32602, "messageId"),
        ("SendMessage", {"message": {**SENT, "contextId": "a/b"}}, {}, -32602, "contextId"),
        ("SendMessage", {"message": {**SENT, "contextId": "c" * 41}}, {}, -32602, "contextId"),
        (
            "SendMessage",
            {"message": {**SENT, "parts": [{"text": "x" * 65537}]}},
            {},
            -32602,
            "65536",
        ),
        ("SendStreamingMessage", {"message": {}}, {}, -32602, "ROLE_USER"),
        ("ListTasks", {"pageSize": 101}, {}, -32602, "pageSize"),
        ("ListTasks", {"status": "working"}, {}, -32602, "TASK_STATE_WORKING"),
        ("ListTasks", {"status": {"a": 1}}, {}, -32602, "TASK_STATE_WORKING"),
        ("ListTasks", {"pageToken": "x"}, {}, -32602, "pageToken"),
        ("tasks/pushNotificationConfig/set", {}, {}, -32003, "subscribe"),
        ("GetExtendedAgentCard", {}, {}, -32007, "one card"),
        ("GetTask", {"id": "x"}, {"A2A-Version": "2.0"}, -32009, "0.3 or 1.0"),
        ("message/dance", {}, {}, -32601, "unknown method message/dance"),
        ("GetTask", [], {}, -32602, "params: expected an object"),
    ],
)
def test_what_is_refused_says_why(folder, method, params, headers, code, said):
    async def play(it):
        error = (await it.post(it.http(), method, params, **headers))["error"]
        assert error["code"] == code and said in error["message"]

    run(play, folder)


def test_what_is_no_request_is_refused(folder):
    async def play(it):
        http = it.http()
        for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0"}', -32600)):
            answer = (await http.post(it.url, content=body)).json()
            assert answer["error"]["code"] == code and answer["id"] is None
        assert (await http.get(it.url)).status_code == 404

    run(play, folder)


@contextlib.asynccontextmanager
async def stream(it, http, number: int):
    """Begin a stream for a message that waits at the gate; yield (answer, its lines)."""
    message = {**SENT, "messageId": "s-%d" % number, "parts": [{"text": "look at gate"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage"}
    body["params"] = {"message": message}
    async with http.stream("POST", it.url, json=body) as answer:
        yield answer, answer.aiter_lines()


def test_a_body_that_does_not_come(folder, monkeypatch):
    monkeypatch.setattr(http_server, "BODY_S", 0.01)

    async def play(it):
        place = urlsplit(it.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        bearer = it.http().headers["Authorization"]
        writer.write(
            f"POST {place.path or '/'} HTTP/1.1\r\nHost: it\r\nAuthorization: {bearer}\r\n"
            "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{".encode()
        )
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        writer.close()

    run(play, folder)


def test_who_asks_too_much_at_once_is_told_so_and_others_are_answered(folder):
    async def play(it):
        bed = folder.parent / "gate"
        bed.mkdir()
        http, other = it.http(), it.http("other")
        async with contextlib.AsyncExitStack() as streams:
            begun = []  # a stream whose lines nobody holds is closed
            for number in range(MOST_OPEN):
                answer, lines = await streams.enter_async_context(stream(it, http, number))
                assert answer.status_code == 200 and (await anext(lines)).startswith("data:")
                begun.append(lines)
            refused = await http.post(it.url, json={})
            assert refused.status_code == 429
            assert refused.json() == {"error": "too many requests are under way"}
            answer = await it.post(other, "ListTasks", {})
            assert answer["result"]["totalSize"] == 0
            (bed / "go").touch()
            for lines in begun:  # each stream goes on to its end
                assert "COMPLETED" in [line async for line in lines if line][-1]
        answer = await it.post(http, "SendMessage", {"message": SENT})
        assert answer["result"]["task"]["status"] == {"state": "TASK_STATE_COMPLETED"}

    run(play, folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_task_too_many_is_rejected_and_there_is_room_again(folder, version):
    async def play(it):
        bed = folder.parent / "gate"
        bed.mkdir()
        client, stream = await it.client(version), await it.client(version, streaming=True)
        for number in range(OPEN_TASKS + 1):
            request = asked("look at gate", str(number))
            request.configuration.return_immediately = True
            task = await task_of(client, request)
            if number < OPEN_TASKS:
                assert task.status.state in (new.TASK_STATE_SUBMITTED, new.TASK_STATE_WORKING)
        assert task.status.state == new.TASK_STATE_REJECTED and not task.artifacts
        other = await it.client(version, "other")
        request = asked("look at gate", "of another")
        request.configuration.return_immediately = True
        assert (await task_of(other, request)).status.state == new.TASK_STATE_SUBMITTED
        (event,) = await events(stream, asked("look at gate", "a stream"))
        assert event.task.status.state == new.TASK_STATE_REJECTED
        (bed / "go").touch()
        while task.status.state == new.TASK_STATE_REJECTED:  # nothing of it is on record
            task = await task_of(client, asked("look at 3", "later"))
        assert task.status.state == new.TASK_STATE_COMPLETED

    run(play, folder)


def test_a_stream_in_which_nothing_happens_has_comments(folder, monkeypatch):
    monkeypatch.setattr(doors, "KEEP_ALIVE_S", 0.01)

    async def play(it):
        bed = folder.parent / "gate"
        bed.mkdir()
        async with stream(it, it.http(), 1) as (_, lines):
            while await anext(lines) != ": working":
                pass
            (bed / "go").touch()
            seen = [json.loads(line[6:]) async for line in lines if line.startswith("data: ")]
        update = seen[-1]["result"]["statusUpdate"]
        assert update["status"]["state"] == "TASK_STATE_COMPLETED"

    run(play, folder)


def test_an_agent_that_is_killed_is_started_again_and_its_tasks_go_on(folder):
    async def play(it):
        client = await it.client("1.0", streaming=True)
        bed = folder.parent / "gate"
        bed.mkdir()
        with pytest.raises(errors.A2AError, match="the agent has ended"):
            async for event in client.send_message(asked("look at gate")):
                if event.WhichOneof("payload") == "task":
                    task = event.task
                    it.gateway._a2a._agent._process.kill()
        async for event in client.subscribe(new.SubscribeToTaskRequest(id=task.id)):
            (bed / "go").touch()
        assert event.status_update.status.state == new.TASK_STATE_COMPLETED
        assert answer(await client.get_task(new.GetTaskRequest(id=task.id))) == "Bed gate is dry."

    run(play, folder)


def records(path) -> list:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_and_the_audit_say_who_asked_and_who_answered(folder, state):
    audited = CLAW.replace(
        "  - inline:\n        rules:", "  - inline:\n        audit: {}\n        rules:"
    )
    assert audited != CLAW
    (folder / "claw.yaml").write_text(audited)

    async def play(it):
        friend, owner = await it.client("1.0"), await it.client("1.0", "owner")
        await task_of(friend, asked("look at 3", "a"))
        task = await task_of(friend, asked("water 3", "b"))
        await task_of(friend, asked("deny", "0", task_id=task.id))
        task = await task_of(friend, asked("water 3", "c"))
        await task_of(owner, asked("approve", "1", task_id=task.id))
        await end_task(friend, task.id)

    run(play, folder, approvers=("owner",))
    expected = [("look", "friend"), ("water", "friend"), ("water", "friend")]
    for name in ("log.jsonl", "audit.jsonl"):
        calls = [one for one in records(state / "bed" / name) if one["event"] == "tool.call"]
        said = [(one["tool"], one["caller"]) for one in calls]
        assert said == [(tool, f"tasks/a2a:{caller}") for tool, caller in expected], name
        said = [one for one in records(state / "bed" / name) if one["event"] == "tool.approval"]
        said = [(one["answer"], one["by"]) for one in said]
        assert said == [("denied", "a2a:friend"), ("approved", "a2a:owner")], name
    assert [one.get("status") for one in calls] == ["ok", "refused", "ok"], calls


def test_why_a_task_failed_is_for_the_owner_alone(folder, state):
    text = (folder / "claw.yaml").read_text()
    remote = text.replace("protocol: custom", "protocol: openai-compatible").replace(
        '"builtin:reflex"', '"http://127.0.0.1:1/v1"'
    )
    (folder / "claw.yaml").write_text(remote)

    async def play(it):
        http = it.http()
        answer = await it.post(http, "SendMessage", {"message": SENT})
        assert answer["result"]["task"]["status"] == {"state": "TASK_STATE_FAILED"}
        said = json.dumps(answer)
        assert "127.0.0.1" not in said and "provider" not in said and "refused" not in said

    run(play, folder)
    log = records(state / "bed/log.jsonl")
    (begun,) = [one for one in log if one["event"] == "task.task"]
    (failed,) = [one for one in log if one["event"] == "task.report"]
    assert begun["sender"] == "a2a:friend" and begun["task_id"] == failed["task_id"]
    assert failed["status"] == "failed" and "connection refused" in failed["reason"]


def test_one_gateway_serves_one_agent(folder):
    async def play():
        with pytest.raises(ClawError, match="serves the agent of one project, found 2"):
            store = await Store.open(os.path.join(gateways.folder(), "gateway.db"), print)
            gateway = gateways.Gateway(None, store, None, print)
            try:
                await gateway.serve_agents(["a", "b"], gateways.Doors(a2a="127.0.0.1:0"))
            finally:
                await gateway.close()

    asyncio.run(play())


def test_the_command_serves_until_ctrl_c_and_ends_its_agent(folder, tmp_path):
    words = linux("gateway", folder, "--a2a", "127.0.0.1:0")
    env = environment(tmp_path, CLAWLITE_STATE=os.environ["CLAWLITE_STATE"])
    gateway = subprocess.Popen(words, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    with contextlib.ExitStack() as stack:
        stack.callback(gateway.kill)
        url = ""
        while not url:
            line = gateway.stderr.readline()
            assert line, "it has ended"
            url = line.partition("A2A on ")[2].strip()
        headers = {"Authorization": f"Bearer friend:{gateways.make_token('friend', ['a2a'])}"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": SENT}}
        answer = httpx.post(url, json=body, headers=headers, timeout=DEADLINE_S, trust_env=False)
        assert "Bed 3 is dry." in answer.text
        listed = f"/proc/{gateway.pid}/task/{gateway.pid}/children"
        (child,) = open(listed).read().split() if sys.platform == "linux" else ("0",)
        gateway.send_signal(signal.SIGINT)
        assert gateway.wait(DEADLINE_S) == 130
        gateway.stderr.close()
        assert not os.path.exists(f"/proc/{child}"), "its agent has ended"


def test_the_card_names_the_address_by_which_clients_reach_the_door(folder):
    outside, port = "https://garden.example/a2a", free_port()

    async def play(it):
        assert it.url == outside
        it.url = f"http://127.0.0.1:{port}/"
        async with httpx.AsyncClient(trust_env=False) as http:
            found = (await http.get(it.url + ".well-known/agent-card.json")).json()
        assert found["url"] == outside
        assert {each["url"] for each in found["supportedInterfaces"]} == {outside}
        answer = await it.post(it.http(), "SendMessage", {"message": SENT})
        assert answer["result"]["task"]["status"] == {"state": "TASK_STATE_COMPLETED"}

    run(play, folder, a2a=f"127.0.0.1:{port}", a2a_url=outside)


@pytest.mark.parametrize("url", ["", "garden.example", "ftp://x/", "https:///a2a", "http://[x/"])
def test_an_address_that_is_none_is_refused(folder, url):
    async def play(it):
        pytest.fail("it is served")

    with pytest.raises(ClawError, match="--a2a-url: expected https://") as caught:
        run(play, folder, a2a_url=url)
    assert "https://team.example/a2a" in caught.value.hint
