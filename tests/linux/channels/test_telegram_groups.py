"""Telegram: who the actor is in a group, commands with the name of a bot, and updates that are no
message of a person.
"""

import pytest

from clawlite.linux.channels.telegram_update import read, seconds_of, strip_address

GROUP = -100500
ROLES = {
    "mode": "role-based",
    "roles": [{"id": "1", "role": "admin"}, {"id": "7", "role": "user"}],
}


def texts(server) -> list:
    return [(one["chat_id"], one["text"]) for one in server.sent]


def quiet(world, server, says: str = "echo end"):
    """Wait until everything before has been handled: an admin's message comes last."""
    count = len(server.sent)
    server.message(1, says)
    world.until(lambda: ("1", "You said: end") in texts(server)[count:])
    return texts(server)[count:-1]


def test_in_a_group_the_person_counts_and_the_answer_goes_to_the_group(started):
    world, server = started(ROLES)
    server.message(GROUP, "echo hello", person=7)
    server.message(GROUP, "echo me too", person=66)
    world.until(lambda: server.sent)
    assert quiet(world, server) == [] and texts(server)[0] == (str(GROUP), "You said: hello")
    assert [event["actor"] for event in world.events("channel.refused")] == ["66"]


def test_only_an_admin_approves_in_a_group(started):
    world, server = started(ROLES)
    server.message(GROUP, "careful", person=1)
    world.until(lambda: server.sent)
    (chat, asked), number = texts(server)[0], server.sent[0]["text"].split("/approve ")[1][0]
    assert chat == str(GROUP) and "Approve careful()" in asked
    server.message(GROUP, "/approve@garden_bot " + number, person=7)
    server.message(GROUP, "/approve@garden_bot " + number, person=66)
    assert quiet(world, server) == [(str(GROUP), "Only an admin approves.")] and not world.ran
    server.message(GROUP, "/approve@Garden_Bot " + number, person=1)
    world.until(lambda: (str(GROUP), "Approved.") in texts(server))
    assert world.ran == ["careful"]


def test_a_command_for_another_bot_is_ignored(started):
    world, server = started(ROLES)
    server.message(GROUP, "/approve@other_bot 1", person=1)
    assert quiet(world, server) == []


@pytest.mark.parametrize(
    "more",
    [
        {"sender_chat": {"id": GROUP, "type": "supergroup"}},
        {"from": {"id": 1, "is_bot": True, "first_name": "B"}},
        {"from": None},
    ],
)
def test_who_writes_as_a_chat_or_as_a_bot_is_no_person(started, more):
    world, server = started({"mode": "open"})
    server.message(GROUP, "echo hello", person=1, **more)
    assert quiet(world, server) == []


def test_what_was_said_in_private_is_not_known_in_a_group(started):
    world, server = started(ROLES)
    server.message(7, "echo private")
    server.message(GROUP, "echo in the group", person=7)
    quiet(world, server)
    talks = world.channels.all[0]._talks
    assert [history.turn[0].text for history in talks.values()][:2] == [
        "echo private",
        "echo in the group",
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"photo": [{"file_id": "x"}], "media_group_id": "g1"},
        {"new_chat_members": [{"id": 5, "is_bot": False, "first_name": "E"}]},
        {"new_chat_title": "Greenhouse"},
        {"pinned_message": {"message_id": 1}},
        {"a_kind_that_comes_with_a_later_version": {}},
    ],
)
def test_albums_and_service_messages_are_silent(started, message):
    world, server = started(ROLES)
    for _ in range(3):
        server.message(7, **message)
    assert quiet(world, server) == []


def test_a_photo_in_a_group_is_silent_and_one_in_private_is_not(started):
    world, server = started(ROLES)
    server.message(GROUP, person=7, photo=[{"file_id": "x"}])
    server.message(7, photo=[{"file_id": "x"}])
    assert quiet(world, server) == [("7", "I can only read text.")]


def test_an_edited_message_changes_nothing(started):
    world, server = started(ROLES)
    message = {"message_id": 1, "date": 0, "chat": {"id": 7, "type": "private"}, "text": "echo x"}
    server.update(edited_message={**message, "edit_date": 1})
    server.update(channel_post={**message, "chat": {"id": GROUP, "type": "channel"}})
    assert quiet(world, server) == []


def test_a_group_that_became_a_supergroup_is_followed(started):
    world, server = started(ROLES)
    server.moved[-5] = GROUP
    world.hold = True
    server.message(-5, "quick", person=7)
    world.until(lambda: world.held)
    world.finish()
    world.until(lambda: server.sent)
    assert server.sent[0]["chat_id"] == str(GROUP)
    assert world.channels.write("bot", "-5", "It is dry.")["status"] == "queued"
    world.until(lambda: len(server.sent) == 2)
    assert texts(server)[1] == (str(GROUP), "It is dry.")
    world.channels.close()
    world.opened()
    assert world.channels.all[0].state.data["moved"] == {"-5": str(GROUP)}


def test_a_service_message_names_the_new_group(started):
    world, server = started(ROLES)
    server.message(-5, "echo before", person=7)
    server.message(-5, person=7, migrate_to_chat_id=GROUP)
    server.message(GROUP, person=7, migrate_from_chat_id=-5)
    server.message(GROUP, "echo after", person=7)
    world.until(lambda: len(server.sent) == 2)
    assert len(world.channels.all[0]._talks) == 1, "its conversation goes on"


def test_an_agent_writes_to_the_groups_in_which_its_people_have_written(started):
    world, server = started(ROLES)
    server.message(GROUP, "echo hello", person=7)
    server.message(-77, "echo hello", person=66)
    quiet(world, server)
    assert world.channels.write("bot", str(GROUP), "It is dry.")["status"] == "queued"
    with pytest.raises(Exception, match="does not know -77"):
        world.channels.write("bot", "-77", "It is dry.")


@pytest.mark.parametrize(
    "text, bot, said",
    [
        ("/approve@garden_bot 1", "garden_bot", "/approve 1"),
        ("/approve@GARDEN_BOT 1 now", "garden_bot", "/approve 1 now"),
        ("/approve@garden_bot 1", "", "/approve 1"),
        ("/approve@other_bot 1", "garden_bot", None),
        ("/approve 1", "garden_bot", "/approve 1"),
        ("@garden_bot water it", "garden_bot", "water it"),
        ("@ann water it", "garden_bot", "@ann water it"),
        ("mail ann@garden_bot now", "garden_bot", "mail ann@garden_bot now"),
        ("/mail ann@x.org", "garden_bot", "/mail ann@x.org"),
        ("/@garden_bot", "garden_bot", "/@garden_bot"),
        ("/path@x/y", "garden_bot", "/path@x/y"),
        ("", "garden_bot", ""),
    ],
)
def test_the_name_of_the_bot_is_no_part_of_a_message(text, bot, said):
    assert strip_address(text, bot) == said


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"chat": 7},
        {"chat": {"id": "7"}, "text": "x"},
        {"chat": {"id": True}, "text": "x"},
        {"chat": {"id": GROUP}, "from": {"id": "1"}, "text": "x"},
        {"chat": {"id": GROUP}, "from": 1, "text": "x"},
    ],
)
def test_what_is_malformed_is_ignored(message):
    assert read(message, "") is None


def test_dates_of_http():
    assert seconds_of("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777
    for wrong in (
        "",
        "now",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "a b c",
    ):
        assert seconds_of(wrong) is None
