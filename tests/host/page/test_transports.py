"""CKP by Streamable HTTP and WebSocket (CKP 0.2.0, 9.2): streams, breaks, ends, and sessions that
are independent of each other.
"""

import asyncio
import json
import signal
import socket

import pytest
from agents import UUID, eventually
from pages import AGENT, initialize

from clawlite.host.page.agent_line import AgentLine
from clawlite.host.page.http_session import Session
from clawlite.host.page.logins import Login
from clawlite.linux.secrets import people
from clawlite.linux.tasks.control_socket import MAX_SESSIONS

CKP = "/ckp/" + AGENT
STREAM = {"Accept": "text/event-stream"}


def _request(method: str, id=2, /, **params) -> dict:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _call(number: int, name: str, **arguments) -> dict:
    context = {"request_id": UUID % number, "identity": AGENT}
    return _request("claw.tool.call", number, name=name, arguments=arguments, context=context)


class Operator:
    """One session over HTTP."""

    def __init__(self, page, token: str):
        self.page, self.headers = page, {"Authorization": "Bearer " + token}
        _, said, _ = page.ask("POST", CKP, json=initialize(), headers=self.headers)
        self.headers["Claw-Session-Id"] = said["Claw-Session-Id"]

    def ask(self, message, **headers):
        """Return (status, the answer or None) of one message."""
        status, _, body = self.page.ask(
            "POST", CKP, json=message, headers={**self.headers, **headers}
        )
        return status, json.loads(body) if body else None

    async def events(self, count: int, last: str = None) -> list:
        """Return the first *count* events of the stream, as (id, message)."""
        headers = {**self.headers, **STREAM, **({"Last-Event-ID": last} if last else {})}
        found, id = [], None
        url = self.page.url + CKP
        async with self.page.http.get(url, headers=headers) as said:
            assert said.status == 200 and said.content_type == "text/event-stream"
            async for line in said.content:
                if line.startswith(b"id: "):
                    id = line[4:].strip().decode()
                elif line.startswith(b"data: "):
                    found.append((id, json.loads(line[6:])))
                    if len(found) == count:
                        return found
        return found


@pytest.fixture
def bea(page, greenhouse, tokens):
    return Operator(page, tokens["bea"])


@pytest.fixture
def ada(page, greenhouse, tokens):
    return Operator(page, tokens["ada"])


def test_two_sessions_have_their_own_answers_and_approve_what_the_other_asks(page, ada, bea):
    waiting = page.start(_post(page, bea, _call(1, "water", seconds=1)))
    approve = _request("claw.tool.approve", request_id=UUID % 1)
    eventually(lambda: ada.ask(approve)[1]["result"]["acknowledged"])
    status, body = waiting.result(60)
    assert status == 200 and json.loads(body)["result"]["isError"] is False
    assert ada.ask(_request("claw.status"))[1]["id"] == 2
    # a batch has an answer for each request, and notifications have none
    notification = {"jsonrpc": "2.0", "method": "claw.initialized"}
    batch = [_request("claw.status", "a"), notification, _request("claw.of.tomorrow", "b")]
    status, answers = bea.ask(batch)
    assert status == 200 and {one["id"] for one in answers} == {"a", "b"}
    assert bea.ask(notification) == (202, None)
    assert bea.ask([notification]) == (202, None)


async def _post(page, operator, message):
    url = page.url + CKP
    async with page.http.post(url, json=message, headers=operator.headers) as said:
        return said.status, await said.read()


def test_what_the_agent_tells_by_itself_is_an_event_and_goes_on_where_it_broke(page, ada, bea):
    message = {"role": "user", "content": "water for 1 s"}
    bea.ask(_request("claw.task.create", task_id="t", message=message))
    bea.ask(_request("claw.task.subscribe", task_id="t"))
    eventually(
        lambda: ada.ask(_request("claw.task.get", task_id="t"))[1]["result"]["state"] != "submitted"
    )
    approve = {"role": "user", "content": "approve"}
    eventually(
        lambda: (
            "result"
            in ada.ask(_request("claw.task.create", task_id="t", message=approve, is_answer=True))[
                1
            ]
        )
    )
    seen = page.do(bea.events(1))
    while seen[-1][1]["params"]["state"] != "completed":
        # the connection has ended after each event, and the next one goes on after it
        seen += page.do(bea.events(1, seen[-1][0]))
    numbers = [int(id) for id, _ in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {message["method"] for _, message in seen} == {"claw.task.updated"}
    # all of them again, from the beginning
    assert page.do(bea.events(len(seen), "0")) == seen
    # the other session has heard nothing of it
    waiting = page.start(ada.events(1))
    ada.ask(_request("claw.status"))
    assert not waiting.done()
    waiting.cancel()


def test_an_answer_whose_client_has_gone_is_an_event(page, ada, bea):
    lost = page.start(_post(page, bea, _call(3, "water", seconds=1)))
    approve = _request("claw.tool.approve", request_id=UUID % 3)

    session = page.page._site.sessions._sessions[bea.headers["Claw-Session-Id"]]
    eventually(lambda: not session.is_idle)
    lost.cancel()
    eventually(lambda: ada.ask(approve)[1]["result"]["acknowledged"])
    ((id, message),) = page.do(bea.events(1))
    while "method" in message:  # a heartbeat
        ((id, message),) = page.do(bea.events(1, id))
    assert message["id"] == 3 and message["result"]["isError"] is False


def test_a_session_ends_by_its_client_and_its_place_is_free(page, greenhouse, tokens):
    held = []
    for number in range(MAX_SESSIONS):
        held.append(Operator(page, tokens[("ada", "bea", "vic")[number % 3]]))
    status, _, body = page.ask(
        "POST", CKP, json=initialize(), headers={"Authorization": "Bearer " + tokens["ada"]}
    )
    assert b"at most 32 sessions" in body and status in (200, 503)
    gone = held.pop()
    assert page.ask("DELETE", CKP, headers=gone.headers)[0] == 204
    assert gone.ask(_request("claw.status"))[0] == 404
    eventually(lambda: _has_room(page, tokens))
    assert all(one.ask(_request("claw.status"))[0] == 200 for one in held)


def _has_room(page, tokens) -> bool:
    try:
        Operator(page, tokens["ada"])
    except KeyError:
        return False
    return True


def test_what_is_no_stream_and_no_json_is_told(page, bea):
    assert page.ask("GET", CKP, headers=bea.headers)[0] == 406
    headers = {**bea.headers, **STREAM}
    for last in ("x", "-1", "9" * 20):
        assert page.ask("GET", CKP, headers={**headers, "Last-Event-ID": last})[0] == 400
    assert page.ask("PUT", CKP, headers=bea.headers)[0] == 405
    for body, code in ((b"{", -32700), (b"[]", -32600), (b"7", -32600), (b'{"id":NaN}', -32700)):
        headers = {**bea.headers, "Content-Type": "application/json"}
        status, _, said = page.ask("POST", CKP, data=body, headers=headers)
        assert status == 200 and json.loads(said)["error"]["code"] == code, body


def test_before_initialize_and_without_a_session_it_is_as_over_stdio(page, greenhouse, tokens):
    headers = {"Authorization": "Bearer " + tokens["bea"]}
    status, said, body = page.ask("POST", CKP, json=_request("claw.status"), headers=headers)
    assert status == 200 and json.loads(body)["error"]["code"] == -32600
    assert "Claw-Session-Id" not in said
    wrong = initialize()
    wrong["params"] = {**wrong["params"], "clientInfo": 7}
    status, said, body = page.ask("POST", CKP, json=wrong, headers=headers)
    assert "error" in json.loads(body) and "Claw-Session-Id" not in said


def test_an_agent_that_ends_ends_its_sessions_and_the_next_one_is_reached(
    page, greenhouse, bea, tokens
):
    async def watch():
        async with page.http.ws_connect(page.url + CKP, headers=bea.headers) as opened:
            await opened.send_str(json.dumps(initialize()))
            await opened.receive()
            ready.set_result(True)
            message = await opened.receive()
            return message.type.name, opened.close_code

    ready = page.do(_future())
    watching = page.start(watch())
    eventually(ready.done)
    greenhouse.signal(signal.SIGTERM)
    greenhouse.wait()
    assert watching.result(60) == ("CLOSE", 1001)
    assert bea.ask(_request("claw.status"))[0] in (404, 503)
    headers = {"Authorization": "Bearer " + tokens["bea"]}
    status, _, body = page.ask("POST", CKP, json=initialize(), headers=headers)
    assert status == 503 and b"--socket" in body


async def _future():
    return asyncio.get_running_loop().create_future()


def test_who_is_removed_is_thrown_out_of_what_is_open(page, greenhouse, state, bea, tokens):
    async def watch():
        async with page.http.ws_connect(page.url + CKP, headers=bea.headers) as opened:
            ready.set_result(True)
            message = await opened.receive()
            return message.type.name, opened.close_code

    ready = page.do(_future())
    watching = page.start(watch())
    eventually(ready.done)
    people.remove(str(state / AGENT), "bea")
    assert bea.ask(_request("claw.status"))[0] == 401
    assert watching.result(60) == ("CLOSE", 1008)


def test_a_message_may_be_of_any_frame_and_a_long_one_is_told(page, greenhouse, tokens):
    async def talk():
        headers = {"Authorization": "Bearer " + tokens["vic"]}
        async with page.http.ws_connect(page.url + CKP, headers=headers) as opened:
            answers = []
            for send, data in (
                (opened.send_bytes, json.dumps(initialize(1)).encode()),
                (opened.send_str, json.dumps(_request("claw.status"), indent=2)),
                (opened.send_bytes, b'{"jsonrpc":"2.0","id":3,"method":"\xff"}'),
                (opened.send_str, " " * 1048577),
                (opened.send_str, "\r\n"),
                (opened.send_str, json.dumps(_request("claw.status", "last"))),
            ):
                await send(data)
            while not answers or answers[-1].get("id") != "last":
                answers.append(json.loads((await opened.receive()).data))
            return answers

    answers = page.do(talk())
    codes = sorted(one["error"]["code"] for one in answers if "error" in one)
    assert codes == [-32700, -32600]
    assert [one["id"] for one in answers if "result" in one] == [1, 2, "last"]


REFUSAL = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "full"}}'


def test_what_an_agent_says_before_it_hangs_up_is_heard():
    async def hear_refusal() -> list:
        heard, ended = [], asyncio.Event()
        ours, agents = socket.socketpair()
        line = AgentLine(ours, heard.append, ended.set)
        await asyncio.get_running_loop().create_connection(lambda: line, sock=ours)
        agents.send(REFUSAL + b"\n")
        agents.close()
        line.send(b"{}")  # nobody takes it, which is found before the refusal is read
        await ended.wait()
        return heard

    assert asyncio.run(hear_refusal()) == [REFUSAL]


def test_a_refusal_before_the_first_message_is_its_answer():
    async def ask_late(*said) -> bytes | None:
        session = Session("p", Login({"p": None}, 0, False, ""), 0)
        for line in said:
            session.hear(line)
        session.handle_end()
        return await session.send(json.dumps(initialize()).encode())

    assert asyncio.run(ask_late(REFUSAL)) == REFUSAL
    assert asyncio.run(ask_late()) is None
    assert asyncio.run(ask_late(b'{"jsonrpc": "2.0", "method": "claw.heartbeat"}')) is None
