"""core/line: what a device sends to its gateway for a tool's call, and how it reads its end."""

from clawlite.core.image.image_signature import prove
from clawlite.core.line.gateway_call import GatewayCall, read_end
from clawlite.core.line.gateway_records import split_text


def test_a_text_goes_up_in_pieces():
    for size, count in ((0, 1), (511, 1), (512, 1), (513, 2), (1024, 2), (1025, 3)):
        text = "x" * size
        found = [record["params"] for record in split_text({"id": "a", "role": "user"}, text)]
        assert len(found) == count and "".join([part["text"] for part in found]) == text
        assert [part.get("role") for part in found] == ["user"] + [None] * (count - 1)
        assert [part["id"] for part in found] == ["a"] * count


def test_a_call_may_have_begun_with_its_last_record_alone():
    call = GatewayCall("a-1", "desk.buy", '{"n":2}', 1000)
    records = call.records({"watches": True}, {"id": "a-1", "result": {}})
    methods = []
    for record in records:
        assert call.sent is ("id" in record)
        methods.append(record["method"][len("claw.gateway.") :])
    assert methods == ["message", "answer", "tool"] and record["id"] == "a-1"
    assert record["params"] == {"tool": "desk.buy", "seen": 0, "again": False, "watches": True}


def test_a_call_that_is_sent_again_says_so_and_what_came():
    call = GatewayCall("a-1", "desk.buy", "{}", 1000)
    *_, first = call.records({}, None)
    call.seen = 3
    *_, second = call.records({}, None)
    assert first["params"]["again"] is False
    assert second["params"] == {"tool": "desk.buy", "seen": 3, "again": True}


def test_the_gateway_has_time_to_report_a_time_out():
    assert GatewayCall("a-1", "desk.buy", "{}", 1000).due_ms == 3000


def test_how_a_call_ended():
    error = {"code": -32020, "message": "gone"}
    for message, found in (
        ({"result": {"ok": True}}, (True, "")),
        ({"result": {"ok": False, "ran": False}}, (False, "")),
        ({"result": 1}, (True, "")),
        ({"error": error}, (True, "the gateway: gone")),
        ({"error": dict(error, data={"ran": False})}, (False, "the gateway: gone")),
        ({"error": dict(error, data={"ran": 0})}, (True, "the gateway: gone")),
        ({"error": {}}, (True, "the gateway: None")),
    ):
        assert read_end(message) == found, message


def test_a_token_is_shown_by_its_hmac():
    mac = "a5abffa12689855b3ac408736d0919916b27a3d64308acf7c946a56d610bf47b"
    assert prove("shed:secret", b"4f2a") == {"name": "shed", "mac": mac}
