"""claw.task.create, get, list, cancel and subscribe: real agents, driven over their line."""

import json
import os
import signal
import threading

import pytest
from agents import eventually
from llm_server import MODEL, Server, say
from providers.project import AT_ONCE
from swarm_team import RULED, TOOLS, project, start

SWARM = {"topology": "peer-to-peer", "agents": [{"identity_ref": "hand", "role": "peer"}]}
SWARM["aggregation"] = {"strategy": "merge"}
SWARM["coordination"] = {"message_passing": "queue", "backend": "in-process", "concurrency": {}}

SAFELY = """

def _safely(bed):
    try:
        yield from _wait(bed)
    finally:
        if os.path.isdir(bed):
            open(bed + "/safe", "w").close()
"""


@pytest.fixture
def agent(tmp_path):
    with start(tmp_path, project(tmp_path, "hand", **SWARM)) as one:
        yield one


def message(text: str, role: str = "user") -> dict:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def call(agent, verb: str, number: int = 7, **params) -> dict:
    return agent.call("claw.task." + verb, params, number)


def request(verb: str, number: int, **params) -> dict:
    return {"jsonrpc": "2.0", "id": number, "method": "claw.task." + verb, "params": params}


def create(agent, task_id: str, text: str) -> dict:
    return call(agent, "create", task_id=task_id, message=message(text))["result"]


def state(agent, task_id: str) -> dict:
    return call(agent, "get", task_id=task_id)["result"]


def ended(agent, task_id: str) -> dict:
    """Wait for the end of a task; return what ``get`` says of it."""
    found = {}

    def is_over():
        found.update(state(agent, task_id))
        return found["state"] in ("completed", "failed", "canceled")

    eventually(is_over)
    return found


def test_a_task_is_a_turn_that_is_asked_for_later(agent):
    assert create(agent, "mine: 1", "look at 3")["state"] in ("submitted", "working", "completed")
    assert ended(agent, "mine: 1") == {
        "task_id": "mine: 1",
        "state": "completed",
        "result": {"text": "Bed 3 is dry."},
    }


def test_whoever_asks_through_the_operator_stands_in_the_log(tmp_path, agent):
    params = {"task_id": "a", "message": message("look at 3"), "caller": "a2a:friend"}
    call(agent, "create", **params)
    ended(agent, "a")
    log = (tmp_path / "state/hand/log.jsonl").read_text()
    assert '"caller":"tasks/a2a:friend"' in log and "tasks/operator" not in log
    for wrong in ("", "x" * 81, "a\nb", 3):
        error = call(agent, "create", **dict(params, caller=wrong))["error"]
        assert error["code"] == -32602 and "caller" in error["message"]


def test_a_task_runs_once_and_another_content_is_refused(agent):
    create(agent, "a", "water 3")
    ended(agent, "a")
    assert create(agent, "a", "water 3") == {"task_id": "a", "state": "completed"}
    error = call(agent, "create", task_id="a", message=message("water 4"))["error"]
    assert error["code"] == -32602 and "the id of another task" in error["message"]


@pytest.mark.parametrize(
    "verb, params, said",
    [
        ("create", {"message": message("x")}, "task_id: expected a string, there is none"),
        ("create", {"task_id": "", "message": message("x")}, "task_id: expected a string"),
        ("create", {"task_id": "x" * 129, "message": message("x")}, "at most 128 characters"),
        ("create", {"task_id": "a"}, "message: expected an object, there is none"),
        ("create", {"task_id": "a", "messages": []}, "messages: expected an array of 1 to"),
        ("create", {"task_id": "a", "messages": ["x"]}, "messages[0]: expected an object"),
        ("create", {"task_id": "a", "message": {"content": "x"}}, "message.role: expected"),
        (
            "create",
            {"task_id": "a", "message": message("x", "system")},
            "message.role: expected user or assistant, got system",
        ),
        (
            "create",
            {"task_id": "a", "messages": [message("x", "assistant")]},
            'expected the last one to have the role "user"',
        ),
        (
            "create",
            {"task_id": "a", "message": {"role": "user", "content": [{"type": "image"}]}},
            'message.content[0]: expected a block of type "text"',
        ),
        ("create", {"task_id": "a", "message": message("x" * 65537)}, "at most 65536"),
        (
            "create",
            {"task_id": "a", "message": message("x"), "messages": [message("x")]},
            "expected it, or messages, got both",
        ),
        ("get", {}, "task_id: expected a string, there is none"),
        ("get", {"task_id": "nobody"}, "task_id: unknown task nobody"),
        ("cancel", {}, "task_id: expected a string, there is none"),
        ("cancel", {"task_id": "nobody"}, "unknown task"),
        ("subscribe", {"task_id": "nobody"}, "unknown task"),
        ("list", {"state": "done"}, "state: expected submitted, working, input_required"),
        ("list", {"page_size": 0}, "page_size: expected 1 to 100, got 0"),
        ("list", {"page_token": "x"}, "page_token: expected the token of an earlier answer"),
    ],
)
def test_bad_parameters_are_one_error(agent, verb, params, said):
    error = call(agent, verb, **params)["error"]
    assert error["code"] == -32602 and said in error["message"]


def test_tasks_are_listed_in_pages_the_newest_first(agent):
    for number in range(5):
        create(agent, "t%d" % number, "look at %d" % number)
    for number in range(5):
        ended(agent, "t%d" % number)
    page = call(agent, "list", page_size=3)["result"]
    assert [task["task_id"] for task in page["tasks"]] == ["t4", "t3", "t2"]
    rest = call(agent, "list", page_size=3, page_token=page["next_page_token"])["result"]
    assert [task["task_id"] for task in rest["tasks"]] == ["t1", "t0"]
    assert "next_page_token" not in rest
    assert call(agent, "list", state="failed")["result"] == {"tasks": []}
    assert len(call(agent, "list", state="completed")["result"]["tasks"]) == 5
    for never in ("auth_required", "rejected"):
        assert call(agent, "list", state=never)["result"] == {"tasks": []}


@pytest.mark.parametrize("verb", ["look at", "water"])
def test_a_task_that_is_canceled_ends_its_tool(tmp_path, verb):
    """Its handler ends as it is written: in ``finally``, with what makes things safe."""
    code = TOOLS.replace("yield from _wait(bed)", "yield from _safely(bed)") + SAFELY
    bed = tmp_path / "bed"
    bed.mkdir()
    with start(tmp_path, project(tmp_path, "hand", code=code, **SWARM)) as agent:
        create(agent, "a", "%s bed" % verb)
        eventually(lambda: os.listdir(bed))
        assert state(agent, "a")["state"] == "working" and not (bed / "safe").exists()
        said = call(agent, "cancel", task_id="a", reason="never mind")["result"]
        assert said == {"task_id": "a", "state": "canceled"}
        assert state(agent, "a")["result"] == {"error": "never mind"}
        eventually(lambda: (bed / "safe").exists())
        create(agent, "b", "look at 4")
        assert ended(agent, "b")["state"] == "completed"
        assert call(agent, "cancel", task_id="b")["result"]["state"] == "completed"
        assert state(agent, "a")["state"] == "canceled"


def test_who_subscribes_hears_of_every_state_and_of_the_end(tmp_path, agent):
    (tmp_path / "bed").mkdir()
    create(agent, "a", "look at bed")
    said = call(agent, "subscribe", task_id="a")["result"]
    assert said["subscribed"] is True and said["state"] in ("submitted", "working")
    (tmp_path / "bed/go").touch()
    heard = []
    while not heard or heard[-1]["state"] != "completed":
        note = agent.message()
        assert note["method"] == "claw.task.updated" and "id" not in note
        heard.append(note["params"])
    assert heard[-1]["result"] == {"text": "Bed bed is dry."}
    assert call(agent, "subscribe", task_id="a")["result"]["state"] == "completed"


def test_who_cancels_a_task_that_it_watches_hears_so_in_the_answer_alone(tmp_path, agent):
    """A program that pairs lines with its requests by their order reads the answer next."""
    (tmp_path / "bed").mkdir()
    create(agent, "a", "look at bed")
    eventually(lambda: os.listdir(tmp_path / "bed"))
    assert call(agent, "subscribe", 1, task_id="a")["result"]["subscribed"] is True
    agent.line(json.dumps(request("cancel", 2, task_id="a", reason="never mind")))
    agent.line(json.dumps(request("get", 3, task_id="a")))
    agent.line(json.dumps(request("subscribe", 4, task_id="a")))
    # its turn runs while the tool of the first one ends
    agent.line(json.dumps(request("create", 7, task_id="b", message=message("look at 4"))))
    lines = []
    while not lines or lines[-1].get("id") != 7:
        lines.append(agent.message())
    assert [line.get("id") for line in lines] == [2, 3, 4, 7]
    assert lines[0]["result"] == {"task_id": "a", "state": "canceled"}
    assert ended(agent, "b")["state"] == "completed"


def test_who_answers_a_task_that_it_watches_hears_of_what_comes_after(tmp_path):
    image = project(tmp_path, "hand", autonomy="supervised", **SWARM)
    with start(tmp_path, image) as agent:
        create(agent, "a", "water 3")
        eventually(lambda: state(agent, "a")["state"] == "input_required")
        assert call(agent, "subscribe", task_id="a")["result"]["state"] == "input_required"
        assert create(agent, "a", "approve") == {"task_id": "a", "state": "working"}
        note = {}
        while note.get("state") != "completed":
            note = agent.message()["params"]
        assert note["result"] == {"text": "Watered 3"}


def test_the_pieces_of_an_answer_are_heard_as_they_come(tmp_path):
    gate = threading.Event()

    def answer(_):
        gate.wait(60)
        return say("It is dry there.")

    with Server(answer) as server:
        remote = {
            "protocol": "openai-compatible",
            "endpoint": server.endpoint,
            "model": MODEL,
            "auth": {"type": "none"},
        }
        with start(tmp_path, project(tmp_path, "hand", provider=remote, **SWARM)) as agent:
            before = [message("Hello."), message("Hello!", "assistant"), message("Look.")]
            assert call(agent, "create", task_id="a", messages=before)["result"]
            assert call(agent, "subscribe", task_id="a")["result"]["subscribed"]
            gate.set()
            pieces, last = [], {}
            while last.get("state") != "completed":
                note = agent.message()
                if note.get("method"):
                    last = note["params"]
                    pieces.append(last.get("text", ""))
            assert "".join(pieces).strip() == "It is dry there."
        asked = [(one["role"], one["content"]) for one in server.requests[0].body["messages"]]
        assert asked[-3:] == [("user", "Hello."), ("assistant", "Hello!"), ("user", "Look.")]


def test_what_broke_off_is_no_part_of_the_result(tmp_path):
    broken = dict(say("Half an answer that nobody wants."), end="close")
    with Server([broken, say("Whole.")]) as server:
        remote = {
            "protocol": "openai-compatible",
            "endpoint": server.endpoint,
            "model": MODEL,
            "auth": {"type": "none"},
            "streaming": True,
            "retry": AT_ONCE,
        }
        with start(tmp_path, project(tmp_path, "hand", provider=remote, **SWARM)) as agent:
            create(agent, "a", "Look.")
            assert ended(agent, "a")["result"]["text"] == "Whole."
        assert len(server.requests) == 2


def test_a_task_that_waits_for_an_approval_wants_input(tmp_path):
    image = project(tmp_path, "hand", autonomy="supervised", **SWARM)
    with start(tmp_path, image) as agent:
        for task_id, said, result in (("a", "approve", "Watered 3"), ("b", "deny", "not approved")):
            create(agent, task_id, "water 3")
            eventually(lambda: state(agent, task_id)["state"] == "input_required")
            assert "water" in state(agent, task_id)["message"]
            listed = call(agent, "list", state="input_required")["result"]["tasks"]
            assert [task["task_id"] for task in listed] == [task_id]
            create(agent, task_id, said)
            assert result in ended(agent, task_id)["result"]["text"]
        assert state(agent, "b")["partial"] is True


def test_who_approves_a_call_of_a_task_reads_all_of_it(tmp_path):
    """5.8: nothing of a call is hidden from who decides, however long it is."""
    bed = "3" + " " * 60 + "x" * 3000 + "; rm -rf /"
    rule = '[[rule]]\nwhen = "all"\ncall = "water"\narguments = { bed = "%s" }\n' % bed
    image = project(tmp_path, "hand", autonomy="supervised", rules=rule, **SWARM)
    with start(tmp_path, image) as agent:
        create(agent, "a", "all")
        eventually(lambda: state(agent, "a")["state"] == "input_required")
        said = state(agent, "a")["message"]
        assert said.startswith('Approve water(bed="3<60 blanks>x') and said.count("x") == 3000
        assert "; rm -rf /" in said and "supervised" in said and "tasks/operator" in said
        assert said.endswith("\n  Answer with approve or deny")
        create(agent, "a", "deny")
        ended(agent, "a")


def test_an_answer_that_names_its_question_answers_no_other(tmp_path):
    image = project(tmp_path, "hand", autonomy="supervised", **SWARM)
    with start(tmp_path, image) as agent:
        create(agent, "a", "water 3")
        eventually(lambda: state(agent, "a")["state"] == "input_required")
        assert "number" not in state(agent, "a")
        number = call(agent, "get", task_id="a", with_number=True)["result"]["number"]
        (one,) = call(agent, "list", with_number=True)["result"]["tasks"]
        assert one["number"] == number
        params = {"task_id": "a", "message": message("approve"), "caller": "a2a:owner"}
        other = dict(params, number=number + 1)
        error = agent.call("claw.task.create", other, 7)["error"]
        assert error["code"] == -32602 and error["message"].startswith("number: a does not wait")
        assert state(agent, "a")["state"] == "input_required"
        params = dict(params, number=number, is_answer=True)
        assert agent.call("claw.task.create", params, 7)["result"]["state"] == "working"
        assert ended(agent, "a")["result"]["text"] == "Watered 3"
        late = agent.call("claw.task.create", params, 7)["error"]
        assert "does not wait" in late["message"]
    log = (tmp_path / "state/hand/log.jsonl").read_text().splitlines()
    asked = [one for one in map(json.loads, log) if one["event"] == "tool.approval"]
    answers = [(one["answer"], one["by"]) for one in asked]
    assert answers == [("approved", "a2a:owner"), ("ignored", "a2a:owner")]


@pytest.mark.parametrize("text, other", [("yes", "approve"), ("approve", "yes"), ("deny", "no")])
def test_a_task_that_comes_again_does_not_answer_itself(tmp_path, text, other):
    rule = '[[rule]]\nwhen = "%s"\ncall = "water"\narguments = { bed = "3" }\n' % text
    rule += 'then = [{ say = "{result}" }]\n'
    image = project(tmp_path, "hand", autonomy="supervised", rules=rule, **SWARM)
    with start(tmp_path, image) as agent:
        waits = {"task_id": "a", "state": "input_required"}
        create(agent, "a", text)
        eventually(lambda: state(agent, "a")["state"] == "input_required")
        assert create(agent, "a", text) == {**waits, "message": state(agent, "a")["message"]}
        # whoever passes on messages says that one is no answer, or nothing else
        again = {"task_id": "a", "message": message(other)}
        error = call(agent, "create", **again, is_answer=False)["error"]
        assert error["code"] == -32602 and "the id of another task" in error["message"]
        error = call(agent, "create", **again, is_answer="no")["error"]
        assert error["code"] == -32602 and "is_answer: expected true or false" in error["message"]
        assert state(agent, "a")["state"] == "input_required"
        params = {"task_id": "a", "message": message(text), "is_answer": True}
        assert call(agent, "create", **params)["result"]["state"] != "input_required"
        said = ended(agent, "a")["result"]["text"]
        assert said == "Watered 3" if text != "deny" else "not approved" in said
        for task_id in ("a", "unknown"):
            error = call(agent, "create", **dict(params, task_id=task_id))["error"]
            assert (
                error["code"] == -32602 and "is not waiting for such an answer" in error["message"]
            )
        assert "unknown task" in call(agent, "get", task_id="unknown")["error"]["message"]


def test_what_was_acknowledged_outlives_the_process(tmp_path):
    (tmp_path / "bed").mkdir()
    image = project(tmp_path, "hand", **SWARM)
    with start(tmp_path, image) as agent:
        create(agent, "a", "look at bed")
        create(agent, "w", "water bed")
        eventually(lambda: len(os.listdir(tmp_path / "bed")) == 1)
        os.killpg(agent.process.pid, signal.SIGKILL)
    (tmp_path / "bed/go").touch()
    with start(tmp_path, image) as agent:
        assert ended(agent, "a")["result"] == {"text": "Bed bed is dry."}
        left = ended(agent, "w")
        assert left["state"] in ("completed", "failed")
        if left["state"] == "failed":
            assert "what it did is not known" in left["result"]["error"]


def test_one_process_at_a_time_does_the_tasks_and_the_next_takes_them_over(tmp_path):
    (tmp_path / "bed").mkdir()
    image = project(tmp_path, "hand", **SWARM)
    with start(tmp_path, image) as second:
        with start(tmp_path, image) as first:
            create(first, "a", "look at bed")
            first_id = first.process.pid
            for verb in ("get", "cancel", "subscribe"):
                error = call(second, verb, task_id="a")["error"]
                assert error["message"] == "process %d does the tasks of hand" % first_id
                assert error["code"] == -32030 and "or end it" in error["data"]["hint"]
            with start(tmp_path, image) as third:
                os.killpg(first.process.pid, signal.SIGKILL)
                first.wait()
                # without a request: it has seen the folder
                eventually(lambda: len(os.listdir(tmp_path / "bed")) == 2)
                (tmp_path / "bed/go").touch()
                assert ended(third, "a")["result"] == {"text": "Bed bed is dry."}


def test_too_many_open_tasks_are_rejected(tmp_path, agent):
    (tmp_path / "bed").mkdir()
    for number in range(64):
        assert create(agent, "t%d" % number, "look at bed")["state"] != "rejected"
    assert create(agent, "one more", "look at bed")["state"] == "rejected"
    assert call(agent, "get", task_id="one more")["error"]["code"] == -32602
    assert create(agent, "t0", "look at bed")["state"] == "working"


def test_one_name_has_a_quarter_of_the_open_tasks(tmp_path, agent):
    """Of those in whose name the operator gives tasks; it survives a new process."""

    def give(caller: str, number: int) -> str:
        task = {"task_id": "%s-%d" % (caller, number), "message": message("look at bed")}
        return call(agent, "create", caller=caller, **task)["result"]["state"]

    (tmp_path / "bed").mkdir()
    assert [give("a2a:noisy", n) == "rejected" for n in range(18)] == [False] * 16 + [True] * 2
    assert give("a2a:noisy", 0) == "working", "the same task again is no new one"
    for caller in ("a2a:one", "a2a:two"):
        assert [give(caller, number) for number in range(16)].count("rejected") == 0
    assert create(agent, "own", "look at bed")["state"] == "submitted"
    assert call(agent, "cancel", task_id="a2a:noisy-3")["result"]["state"] == "canceled"
    assert give("a2a:noisy", 99) == "submitted"


def test_an_agent_that_is_asked_for_no_task_keeps_no_file(tmp_path):
    image = project(tmp_path, "hand", provider=RULED, **SWARM)
    with start(tmp_path, image) as agent:
        agent.call("claw.status")
    assert not (tmp_path / "state/hand/tasks").exists()
