"""Approvals with buttons (approvals/buttons.py), and who else is asked and told (approvers.py)."""

import json

import pytest
from channel_world import EPOCH_S

from clawlite.linux.approvals.buttons import MAX_QUESTIONS, Taps, read_tap

ROLES = {
    "mode": "role-based",
    "roles": [
        {"id": "1", "role": "admin"},
        {"id": "2", "role": "admin"},
        {"id": "7", "role": "user"},
    ],
}


def ask_as_user(started, **more):
    """Return a world and its server, in which the user 7 has asked for what needs approval: two
    admins and the user have a message.
    """
    world, server = started(ROLES, **more)
    server.message(7, "careful")
    world.until(lambda: len(server.sent) == 3)
    return world, server


def test_one_tap_approves_and_the_others_see_who_it_was(started):
    world, server = ask_as_user(started)
    buttons = server.sent[0]["reply_markup"]["inline_keyboard"]
    assert [[one["text"] for one in row] for row in buttons] == [["Deny", "Approve"], ["Show all"]]
    assert "reply_markup" not in server.sent[2], "who asks has no buttons"
    tokens = {
        one["callback_data"]
        for sent in server.sent[:2]
        for row in sent["reply_markup"]["inline_keyboard"]
        for one in row
    }
    assert len(tokens) == 6 and all(20 < len(token.encode()) <= 64 for token in tokens)
    server.tap(2, "Approve", 1)
    world.until(lambda: len(server.edits()) == 2 and len(server.notices()) == 1)
    assert world.ran == ["careful"] and server.notices() == ["Approved."]
    assert {chat for chat, _ in server.edits()} == {"1", "2"}
    for _, text in server.edits():
        assert text.startswith("Approved by bot/2: careful\n\nApprove careful()?")
    assert [event["by"] for event in world.events("tool.approval")] == ["bot/2"]
    assert world.events("channel.approval")[0]["actor"] == "2"


def test_a_second_tap_does_nothing_and_says_so(started):
    world, server = ask_as_user(started)
    server.tap(1, "Deny", 0)
    server.tap(1, "Deny", 0)
    server.tap(2, "Approve", 1)
    world.until(lambda: len(server.notices()) == 3)
    late = "This question has ended. Nothing was done."
    assert server.notices() == ["Denied.", late, late] and world.ran == []
    answers = [(event["answer"], event["by"]) for event in world.events("tool.approval")]
    assert answers == [("denied", "bot/1"), ("ignored", "bot/1"), ("ignored", "bot/2")]


def test_who_is_no_admin_uses_no_button_up(started):
    world, server = ask_as_user(started)
    server.tap(7, "Approve", 0)
    server.tap(99, "Approve", 0)
    world.until(lambda: len(server.notices()) == 2)
    assert server.notices() == ["Only an admin approves."] * 2 and world.ran == []
    server.tap(1, "Approve", 0)
    world.until(lambda: len(server.notices()) == 3)
    assert world.ran == ["careful"]


@pytest.mark.parametrize("data", ["", "x", "/approve 1", "A" * 64])
def test_what_is_no_token_of_an_open_question_does_nothing(started, data):
    world, server = ask_as_user(started)
    server.tap(1, "", 0, data=data)
    world.until(lambda: server.notices())
    assert server.notices() == ["This question has ended. Nothing was done."] and world.ran == []


def test_show_all_sends_the_whole_call_with_buttons_of_its_own(started):
    world, server = ask_as_user(started)
    server.tap(1, "Show all", 0)
    world.until(lambda: len(server.sent) == 4)
    assert (
        server.sent[3]["text"] == "careful, with no argument" and server.sent[3]["chat_id"] == "1"
    )
    server.tap(1, "Show all", 0)
    world.until(lambda: len(server.notices()) == 2)
    assert server.notices()[1] == "This question has ended. Nothing was done.", "it is used up"
    server.tap(1, "Approve", 3)
    world.until(lambda: len(server.edits()) == 3)
    assert world.ran == ["careful"]


def test_in_a_group_the_person_who_taps_counts(started):
    world, server = started(ROLES)
    server.message(-100, "careful", person=1)
    world.until(lambda: len(server.sent) == 2)
    assert {sent["chat_id"] for sent in server.sent} == {"-100", "2"}
    at = [sent["chat_id"] for sent in server.sent].index("-100")
    server.tap(7, "Approve", at)
    world.until(lambda: server.notices())
    assert server.notices() == ["Only an admin approves."] and world.ran == []
    server.tap(2, "Approve", at)
    world.until(lambda: len(server.notices()) == 2)
    assert world.ran == ["careful"]


def test_the_console_answers_and_the_buttons_go(started):
    world, server = ask_as_user(started, console=True)
    world.console.line("y", world.ms)
    world.until(lambda: len(server.edits()) == 2)
    assert server.edits()[0][1].startswith("Approved by console: careful")


def test_a_call_at_the_console_is_put_to_the_admins_of_a_channel(started):
    world, server = started(ROLES, console=True)
    world.console.line("careful", world.ms)
    world.until(lambda: len(server.sent) == 2)
    assert "asked for at the console or by an operator" in server.sent[0]["text"]
    server.tap(1, "Approve", 0)
    world.until(lambda: server.notices())
    assert world.ran == ["careful"] and any("careful" in line for line in world.told)


def test_at_half_time_the_question_is_put_once_more(started):
    world, server = ask_as_user(started)
    world.ms += 30_000
    world.until(lambda: len(server.sent) == 5)
    assert [sent["text"].split("\n")[0] for sent in server.sent[3:]] == [
        "Reminder. Approve careful()?"
    ] * 2
    assert "(30 s, then denied)" in server.sent[3]["text"]
    world.ms += 30_000
    world.agent.tick(world.ms)
    world.until(lambda: len(server.edits()) == 4)
    assert server.edits()[0][1].startswith("Not answered in time, so it was denied: careful\n\n")
    assert world.ran == []


def test_settings_narrow_who_is_asked(started):
    world, server = started(ROLES, settings="[approvals]\nto = []\n", console=True)
    server.message(7, "careful")
    world.until(lambda: len(server.sent) == 1)
    assert server.sent[0]["text"] == "This waits for approval." and world.agent.waiting
    server.message(1, "/approve %d" % world.agent.waiting[0].approval.number)
    world.until(lambda: len(server.sent) == 2)
    assert server.sent[1]["text"] == "No call with that number waits for approval."


def test_a_bot_that_was_started_says_what_it_is(started):
    world, server = started(ROLES)
    server.message(7, "/start")
    server.message(1, "/help")
    server.message(99, "/start")
    world.until(lambda: len(server.sent) == 2)
    for_user, for_admin = [sent["text"] for sent in server.sent]
    assert for_user.startswith("This is channelled.") and "/new" in for_user
    assert "/approve" in for_admin and "/approve" not in for_user and world.ran == []


def test_a_tap_is_read_as_the_bot_api_has_it():
    tap = {
        "id": "4382bfdwdsb323b2d9",
        "from": {"id": 7, "is_bot": False, "first_name": "A"},
        "message": {"message_id": 1, "date": EPOCH_S, "chat": {"id": -100, "type": "group"}},
        "chat_instance": "1",
        "data": "token",
    }
    read = read_tap(tap)
    assert (read.query, read.actor, read.chat, read.token) == (tap["id"], "7", "-100", "token")
    for field, value in (("id", 5), ("from", None), ("from", {"id": True}), ("from", [])):
        assert read_tap({**tap, field: value}) is None, (field, value)
    assert read_tap({**tap, "from": {"id": 7, "is_bot": True}}) is None and read_tap("x") is None
    for message in (None, 5, {"chat": None}, {"chat": {"id": "7"}}):  # too old: not sent at all
        assert read_tap({**tap, "message": message}).chat == "7"
    assert read_tap({**tap, "data": None}).token == ""


def test_old_questions_lose_their_buttons_first():
    numbers = iter(range(10**6))
    taps = Taps(lambda count: next(numbers).to_bytes(count, "big"))
    approvals = [type("Approval", (), {})() for _ in range(MAX_QUESTIONS + 1)]
    keyboards = [taps.keyboard(one) for one in approvals]
    assert "bot" not in json.dumps(keyboards)
    token = lambda at: keyboards[at]["inline_keyboard"][0][0]["callback_data"]
    assert taps.take(token(0)) is None and taps.take(token(1))[0].approval is approvals[1]
    assert not taps.add_copy(keyboards[0], "1", 5, "text")
    assert taps.add_copy(keyboards[2], "1", 5, "text")
    assert taps.end_question(approvals[2]) == [("1", 5, "text")]
    assert taps.take(token(2)) is None and taps.end_question(approvals[2]) == []
