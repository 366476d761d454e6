"""Telegram on a bad day: more than one answer holds, a network that is away, a full disk."""

import pytest
from free_ports import free_port

ALLOWED = {"mode": "allowlist", "allowed_ids": ["7", "8"]}


def texts(server) -> list:
    return [(one["chat_id"], one["text"]) for one in server.sent]


def limits(server) -> list:
    return [params["limit"] for method, params in server.asked if method == "getUpdates"]


def test_more_long_messages_than_one_answer_may_have_are_all_heard(started):
    """Telegram escapes letters beyond ASCII, so 100 messages take 2.4 MB, and a stranger may write
    them.
    """
    world, server = started(ALLOWED)
    world.channels.close()
    for number in range(60):
        server.message(66, "я" * 4090 + "%d" % number)
    server.message(7, "echo hello")
    world.opened()
    world.until(lambda: server.sent)
    assert texts(server) == [("7", "You said: hello")]
    assert len(world.events("channel.refused")) == 60 and not world.events("channel.trouble")
    server.message(7, "echo again")
    world.until(lambda: len(server.sent) == 2)
    assert limits(server)[-1] == 100


def test_an_answer_waits_until_the_network_is_there(started):
    """Nothing of it was sent, so it cannot have arrived."""
    world, server = started(ALLOWED)
    world.hold = True
    server.message(7, "quick")
    world.until(lambda: world.ran)
    bot = world.source("bot")
    there, bot._where = bot._where, ["http", "127.0.0.1", free_port()]
    world.hold = False
    world.finish()
    for _ in range(6):
        world.until(lambda: bot._out and not bot._is_under_way("sendMessage"))
        world.ms = max(world.ms, bot._send_ms)
    bot._where = there
    world.until(lambda: server.sent)
    assert len(server.sent) == 1
    world.until(lambda: not bot._kept.inbox.waiting)


def test_an_answer_waits_for_another_token_of_the_bot(started, monkeypatch):
    """@BotFather has revoked the token: it is set again, and the agent started again."""
    world, server = started(ALLOWED)
    server.faults += [("sendMessage", 401, {"ok": False, "description": "Unauthorized"})] * 6
    server.message(7, "echo hello")
    bot = world.source("bot")
    for left in (5, 4, 3, 2, 1):
        world.until(lambda left=left: len(server.faults) == left and bot._out)
        world.ms = max(world.ms, bot._send_ms)
    world.channels.close()
    server.faults.clear()
    world.opened()
    world.until(lambda: server.sent)
    assert texts(server) == [("7", "You said: hello")]


@pytest.mark.parametrize("text", ["/approve 9", None, "echo hello"])
def test_while_the_disk_is_full_nobody_is_told_the_same_again(started, monkeypatch, text):
    """What cannot be put on record comes again; it is judged once."""
    world, server = started(
        ALLOWED, processing={"rate_limit": {"messages_per_minute": 2, "burst": 2}}
    )
    bot = world.source("bot")
    world.until(lambda: server.asked)
    write = bot._kept.inbox._write
    monkeypatch.setattr(
        bot._kept.inbox, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    server.message(7, "echo first")
    server.message(7, text, **({} if text else {"photo": []}))
    for _ in range(4):
        world.until(lambda: bot._ask_ms > world.ms)
        world.ms = bot._ask_ms
    monkeypatch.setattr(bot._kept.inbox, "_write", write)
    world.until(lambda: ("7", "You said: first") in texts(server))
    world.until(lambda: not bot.is_sending())
    assert len(server.sent) == 2


def test_half_an_emoji_blocks_nothing(started):
    """A client may cut a text between the two halves; JSON can say that, and no UTF-8 can."""
    world, server = started(ALLOWED)
    server.message(66, "half \ud83d")
    server.message(7, "echo half \ud83d")
    server.message(7, "echo whole \U0001f600")
    world.until(lambda: len(server.sent) == 2)
    assert [text for _, text in texts(server)] == [
        "You said: half \ufffd",
        "You said: whole \U0001f600",
    ]
