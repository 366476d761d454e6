"""protocols/swarm: the methods of CKP 9.3.3, with a bus that only notes what it is asked."""

import clawlite.protocols.swarm.swarm_methods as swarm_methods
from clawlite.core.base.effect import LOG, SEND
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.protocols.swarm.swarm import Swarm
from clawlite.protocols.swarm.swarm_methods import (
    MAX_DESCRIPTION,
    MOST_SENT,
    SwarmMethods,
)

ID = "C1A00000-0000-4000-8000-000000000001"
MEMBERS = [
    ["lead", "claw://local/identity/lead", "leader", 1],
    ["hand", "claw://local/identity/hand", "worker", 2],
]
CONTEXT = {"request_id": "c1a00000-0000-4000-8000-000000000002", "swarm": "team"}


class Agent:
    def __init__(self):
        self.effects = []

    def events(self):
        return [effect[1]["event"] for effect in self.effects if effect[0] == LOG]


class Bus:
    def __init__(self):
        self.put_tasks, self.reports, self.sent, self.is_new = [], [], [], True
        self.looks = 0

    def put(self, task):
        self.put_tasks.append(task)
        return self.is_new

    def report(self, *reported):
        self.reports.append(reported)
        return reported[0] == ID.lower()

    def broadcast(self, sender, message):
        self.sent.append((sender, message))

    def ask(self, *asked):
        self.asked = asked
        yield 5
        return self.answer

    def look_again(self):
        self.looks += 1

    def statuses(self):
        return {"lead": "ready", "hand": "busy"}


def swarm(own=0, topology=0, is_shared=True):
    row = ["team", own, topology, MEMBERS, is_shared, None, 1, None, 2, True]
    return Swarm(row + [0, False, None, None, None, None])


def methods(**more):
    bus = Bus()
    return SwarmMethods(Agent(), swarm(**more), bus), bus


def delegation(**changes):
    params = {"task_id": ID, "task": {"description": "Look."}, "context": dict(CONTEXT)}
    params.update(changes)
    return params


def refused(work):
    try:
        work()
    except ClawError as e:
        return e
    raise AssertionError("it was accepted")


def test_who_leads_hands_out_what_it_is_given_and_others_do_it_themselves():
    for more, recipient in (
        ({}, ""),
        ({"own": 1}, "hand"),
        ({"topology": 1}, "lead"),
        ({"is_shared": False}, "lead"),
    ):
        one, bus = methods(**more)
        assert one.begin("claw.swarm.delegate", delegation()) == {"acknowledged": True}
        (task,) = bus.put_tasks
        assert task.recipient == recipient and task.id == ID.lower()
        assert task.description == "Look." and task.input is None
        assert one._agent.events() == ["swarm.delegate"]


def test_9_3_3_what_a_delegation_must_have():
    one, bus = methods()
    for params, said in (
        ({}, "task_id: expected a string, there is none"),
        (delegation(task_id="7"), "task_id: expected a UUID, got 7"),
        (delegation(task=[]), "task: expected an object"),
        (delegation(task={}), "task.description: expected a string, there is none"),
        (delegation(task={"description": ""}), "task.description: expected a string"),
        (
            delegation(task={"description": "x" * (MAX_DESCRIPTION + 1)}),
            "task.description: expected at most 65536 characters, got 65537",
        ),
        (delegation(context={"swarm": "team"}), "context.request_id: expected a string"),
        (
            delegation(context={"swarm": "team", "request_id": "1"}),
            "context.request_id: expected a UUID, got 1",
        ),
        (
            delegation(context={"request_id": CONTEXT["request_id"]}),
            "context.swarm: expected a string, there is none",
        ),
        (delegation(context=dict(CONTEXT, swarm="other")), "context.swarm: unknown swarm other"),
    ):
        error = refused(lambda: one.begin("claw.swarm.delegate", params))
        assert isinstance(error, InvalidParams) and error.message.startswith(said), error.message
    assert bus.put_tasks == []


def test_the_id_of_another_task_is_refused():
    one, bus = methods()
    bus.is_new = False
    error = refused(lambda: one.begin("claw.swarm.delegate", delegation()))
    assert "is the id of another task" in error.message


def test_9_3_3_a_report_is_recorded_when_its_task_is_known():
    one, bus = methods()
    params = {"task_id": ID, "status": "partial", "result": None, "token_usage": 7}
    assert one.begin("claw.swarm.report", params) == {"acknowledged": True}
    assert bus.reports == [(ID.lower(), "partial", None, 7, None, "operator")]
    params["task_id"] = CONTEXT["request_id"]
    assert one.begin("claw.swarm.report", params) == {"acknowledged": False}


def test_9_3_3_what_a_report_must_have():
    one, bus = methods()
    good = {"task_id": ID, "status": "failed", "result": {}}
    for change, said in (
        ({"task_id": 7}, "task_id: expected a string"),
        ({"status": "done"}, "status: expected completed, failed, partial, got done"),
        ({"status": None}, "status: expected a string"),
        ({"result": one}, "result: there is none"),
        ({"token_usage": -1}, "token_usage: expected 0 to 9007199254740991, got -1"),
        ({"duration_ms": "1"}, "duration_ms: expected an integer"),
    ):
        params = dict(good)
        params.update(change)
        if params["result"] is one:
            del params["result"]
        error = refused(lambda: one.begin("claw.swarm.report", params))
        assert isinstance(error, InvalidParams) and error.message.startswith(said), error.message
    assert bus.reports == []


def test_9_3_3_discover_gives_identity_uri_and_status_of_all_peers():
    one, _ = methods()
    peers = [
        {"identity": "lead", "uri": "claw://local/identity/lead", "status": "ready"},
        {"identity": "hand", "uri": "claw://local/identity/hand", "status": "busy"},
    ]
    assert one.begin("claw.swarm.discover", {}) == {"peers": peers}
    assert one.begin("claw.swarm.discover", {"swarm": "team"}) == {"peers": peers}
    assert one.begin("claw.swarm.discover", {"swarm": "other"}) == {"peers": []}
    assert isinstance(
        refused(lambda: one.begin("claw.swarm.discover", {"swarm": 7})), InvalidParams
    )


def asked(one, *words):
    """Run the generator of ``ask`` to its end; return ([waits], what it returns)."""
    waits, work = [], one.ask(*words)
    try:
        while True:
            waits.append(next(work))
    except StopIteration as e:
        return waits, e.value


def test_who_asks_waits_for_the_report():
    one, bus = methods()
    bus.answer = ("partial", "hand", {"text": "Half."})
    assert asked(one, "Look.", "", None) == (
        [5],
        {"status": "partial", "by": "hand", "text": "Half."},
    )
    bus.answer = ("completed", "hand", [1])
    assert asked(one, "Look.", "", None)[1] == {"status": "completed", "by": "hand", "result": [1]}
    bus.answer = ("partial", "hand", {"text": "Half."})
    asked(one, "Look.", "", None)
    assert bus.asked == ("Look.", "", None, None)
    for result, said in (
        ({"error": "no water"}, "the task failed: no water"),
        ([], "the task failed: nothing says why"),
    ):
        bus.answer = ("failed", "hand", result)
        assert refused(lambda: asked(one, "Look.", "hand", None)).message == said


def test_a_task_is_for_another_member_that_does_tasks():
    one, _ = methods()
    for to in ("lead", "nobody"):
        error = refused(lambda: asked(one, "Look.", to, None))
        assert isinstance(error, InvalidParams) and error.hint == "these do: hand"
    one, _ = methods(own=1)
    assert isinstance(refused(lambda: asked(one, "Look.", "", None)), InvalidParams)
    one, _ = methods(is_shared=False)
    assert "this process alone" in refused(lambda: asked(one, "Look.", "", None)).message


def test_9_3_3_a_broadcast_is_sent_and_a_wrong_one_is_only_logged():
    one, bus = methods()
    params = {"swarm": "team", "message": {"type": "news"}}
    one.notify({"method": "claw.swarm.broadcast", "params": params})
    assert bus.sent == [("lead", {"type": "news"})]
    for wrong in (None, [], {}, {"swarm": "other", "message": {}}, {"swarm": "team"}):
        one.notify({"method": "claw.swarm.broadcast", "params": wrong})
    one.notify({"method": "claw.initialized"})
    assert len(bus.sent) == 1
    assert one._agent.events() == ["swarm.broadcast"] + ["swarm.refused"] * 5


DRY = ("completed", {"text": "Dry."}, 12, None)


def sent(one):
    found = [message for kind, message in one._agent.effects if kind == SEND]
    one._agent.effects = []
    return found


def send_reports(one, outcome=DRY, ended=(ID.lower(),)):
    one.send_reports(ended, lambda task_id: outcome)
    return sent(one)


def test_9_3_3_an_operator_that_declares_swarm_is_sent_the_reports_of_its_tasks():
    one, _ = methods()
    one.open(True)
    assert one.begin("claw.swarm.delegate", delegation()) == {"acknowledged": True}
    assert send_reports(one, None) == []
    report = {"jsonrpc": "2.0", "id": ID.lower(), "method": "claw.swarm.report"}
    report["params"] = {
        "task_id": ID,
        "status": "completed",
        "result": {"text": "Dry."},
        "token_usage": 12,
    }
    assert send_reports(one) == [report] and send_reports(one) == []
    one.notify({"jsonrpc": "2.0", "id": ID.lower(), "result": {"acknowledged": True}})
    assert not one.owes
    one.open(True)
    assert send_reports(one) == []


def test_a_report_that_is_not_acknowledged_is_sent_to_the_next_session_and_when_asked_for():
    one, bus = methods()
    one.open(True)
    one.begin("claw.swarm.delegate", delegation())
    assert len(send_reports(one)) == 1
    for answer in (
        {"id": ID.lower(), "result": {"acknowledged": False}},
        {"id": ID.lower(), "error": {"code": -32601, "message": "no such method"}},
        {"id": ID.lower(), "error": 7},
        {"id": ID.lower(), "result": None},
        {"id": [], "result": {"acknowledged": True}},
        {"id": "x", "result": {"acknowledged": True}},
    ):
        one.notify(answer)
    assert one._agent.events() == ["swarm.refused"] * 4
    assert one.owes and send_reports(one, ended=()) == []
    one.open(True)
    assert bus.looks == 1 and len(send_reports(one, ended=())) == 1
    one.begin("claw.swarm.delegate", delegation())
    assert len(send_reports(one, ended=())) == 1
    one.open(False)
    assert not one.owes


def delegated(one, bus, numbers):
    for number in numbers:
        bus.put_tasks = []
        task_id = "c1a00000-0000-4000-8000-%012d" % number
        one.begin("claw.swarm.delegate", delegation(task_id=task_id))


def test_no_more_reports_are_under_way_than_may_be_and_none_is_lost():
    one, bus = methods()
    one.open(True)
    delegated(one, bus, range(MOST_SENT + 2))
    first = send_reports(one, ended=())
    assert len(first) == MOST_SENT and send_reports(one, ended=()) == [] and bus.looks == 0
    one.notify({"id": first[0]["id"], "result": {"acknowledged": True}})
    assert bus.looks == 1 and len(send_reports(one, ended=())) == 1
    one.notify({"id": first[1]["id"], "result": {"acknowledged": False}})
    last = send_reports(one, ended=())
    assert len(last) == 1 and len(one._owed) == MOST_SENT + 1
    for message in first[2:] + last:  # one of an earlier call counts as well
        one.notify({"id": message["id"], "result": {"acknowledged": True}})
    assert bus.looks == 2
    one.open(True)
    assert len(send_reports(one, ended=())) == 2, "the one refused, and the one not answered"


def test_a_report_that_is_asked_for_again_leaves_room_for_others():
    one, bus = methods()
    one.open(True)
    for _ in range(2):
        delegated(one, bus, range(MOST_SENT))
        assert len(send_reports(one, ended=())) == MOST_SENT


def test_reports_that_nobody_acknowledges_are_not_kept_without_end():
    """With 20 in the place of 10,000: a board's heap has no room for those."""
    one, bus = methods()
    one.open(True)
    most, swarm_methods.MOST_OWED = swarm_methods.MOST_OWED, 20
    try:
        delegated(one, bus, range(19))
        one._agent.effects = []
        delegated(one, bus, range(18, 21))
    finally:
        swarm_methods.MOST_OWED = most
    assert len(one._owed) == 20
    assert one._agent.events() == ["swarm.delegate"] * 3 + ["swarm.refused"]


def test_9_3_3_broadcasts_of_peers_reach_an_operator_that_declares_swarm():
    one, _ = methods()
    one.hear({"type": "news"})
    assert sent(one) == []
    one.open(True)
    one.hear("rain")
    params = {"swarm": "team", "message": "rain"}
    assert sent(one) == [{"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": params}]


def test_who_declares_no_swarm_is_sent_nothing():
    one, _ = methods()
    one.open(False)
    one.begin("claw.swarm.delegate", delegation())
    assert not one.owes and send_reports(one) == []


def test_9_3_3_a_message_has_any_structure():
    one, bus = methods()
    for message in ({"a": 1}, [1], "rain", 7, None, False):
        params = {"swarm": "team", "message": message}
        one.notify({"method": "claw.swarm.broadcast", "params": params})
    assert [message for _, message in bus.sent] == [{"a": 1}, [1], "rain", 7, None, False]
    one.notify({"method": "claw.swarm.broadcast", "params": {"swarm": "team"}})
    assert len(bus.sent) == 6 and one._agent.events()[-1] == "swarm.refused"
