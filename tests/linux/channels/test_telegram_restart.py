"""Telegram: nothing that was accepted is lost, whatever the ids of updates, and nothing that is too
old acts.
"""

import time

import pytest
from bot_server import TOKEN

from clawlite.linux.channels.dead_letters import DeadLetters

ALLOWED = {"mode": "allowlist", "allowed_ids": ["7", "8"]}


def texts(server) -> list:
    return [(one["chat_id"], one["text"]) for one in server.sent]


def offsets(server) -> list:
    return [params.get("offset") for method, params in server.asked if method == "getUpdates"]


def kill(world):
    """End the agent's process as ``kill -9`` does: nothing is written any more."""
    source = world.source("bot")
    source._connections.close_all()
    world.channels._lock.release()  # as the kernel does
    world.agent.tasks.clear()
    world.held.clear()
    world.ran.clear()
    world.channels = None
    world.channels = world.opened()


def test_the_offset_moves_only_when_the_message_is_on_record(started):
    world, server = started(ALLOWED)
    world.hold = True
    server.message(7, "quick")
    world.until(lambda: 101 in offsets(server))
    kept = (world.state / "bot.queue").read_bytes()
    assert b'"quick"' in kept and not server.sent


def test_a_message_that_waited_when_the_process_was_killed_is_done(started):
    world, server = started(ALLOWED)
    world.hold = True
    server.message(7, "quick")
    server.message(7, "echo two")
    server.message(8, "echo three")
    world.until(lambda: 103 in offsets(server) and len(server.sent) == 1)
    kill(world)
    world.hold = False
    world.until(lambda: len(server.sent) >= 3)
    assert texts(server)[0] == ("8", "You said: three")
    assert ("7", "You said: two") in texts(server)
    # its tool had begun, and nobody knows what it has done
    (said,) = [text for _, text in texts(server) if "quick may have happened" in text]
    assert world.ran == [] and "write again if it is still to be done" in said
    (letter,) = DeadLetters(str(world.state / "bot.dead")).all()
    assert letter.text == "quick" and "quick was under way" in letter.why


def test_where_the_settings_say_repeat_an_interrupted_message_runs_again(started):
    world, server = started(ALLOWED, settings='interrupted = "repeat"\n')
    world.hold = True
    server.message(7, "quick")
    world.until(lambda: world.ran and 101 in offsets(server))
    kill(world)
    world.hold = False
    world.until(lambda: server.sent)
    assert world.ran == ["quick"] and len(server.sent) == 1


def test_an_answer_that_may_not_have_arrived_is_sent_after_a_restart(started):
    world, server = started(ALLOWED)
    server.faults += [("sendMessage", 429, {"ok": False, "parameters": {"retry_after": 3000}})]
    server.message(7, "echo one")
    world.until(
        lambda: (
            not server.faults
            and not world.source("bot").is_sending()
            or world.source("bot")._send_ms > world.ms
        )
    )
    kill(world)
    world.until(lambda: server.sent)
    assert texts(server) == [("7", "You said: one")]
    world.until(lambda: not world.source("bot")._kept.inbox.waiting)


def test_what_was_confirmed_is_not_acted_on_again_when_telegram_sends_it_again(started):
    world, server = started(ALLOWED)
    server.message(7, "echo one")
    world.until(lambda: server.sent and not world.source("bot").is_sending())
    world.channels.close()
    server._updates = list(server.given)  # the confirmation was lost
    world.opened()
    server.message(7, "echo two")
    world.until(lambda: len(server.sent) == 2)
    assert texts(server)[1] == ("7", "You said: two")


def test_ids_that_begin_anew_after_a_week_are_heard(started):
    world, server = started(ALLOWED)
    server.update(926831434, message=_message("echo one"))
    world.until(lambda: server.sent and 926831435 in offsets(server))
    world.ms += 7 * 86400000
    world.until(lambda: not world.source("bot")._is_under_way("getUpdates"))
    world.ms += 2000  # the connection of that time has ended
    world.until(lambda: offsets(server)[-1] is None)
    server.update(5, message=_message("echo two"))
    world.until(lambda: len(server.sent) == 2 and offsets(server)[-1] == 6)


def test_ids_that_begin_anew_while_no_agent_ran_are_heard(started):
    world, server = started(ALLOWED)
    server.update(926831434, message=_message("echo one"))
    world.until(lambda: server.sent and 926831435 in offsets(server))
    world.until(lambda: not world.source("bot").is_sending())
    world.channels.close()
    server.update(5, message=_message("echo two"))
    world.opened()
    world.until(lambda: len(server.sent) == 2)


def test_another_bot_begins_with_ids_of_its_own(started, monkeypatch):
    world, server = started(ALLOWED)
    server.update(100, message=_message("echo one"))
    world.until(lambda: server.sent and 101 in offsets(server))
    world.until(lambda: not world.source("bot").is_sending())
    world.channels.close()
    server.token = "777:" + "B" * 35
    monkeypatch.setenv("SECRET", server.token)
    server.update(100, message=_message("echo two"))
    world.opened()
    world.until(lambda: len(server.sent) == 2)


def test_a_new_token_of_the_same_bot_repeats_nothing(started, monkeypatch):
    world, server = started(ALLOWED)
    server.message(7, "echo one")
    world.until(lambda: server.sent and not world.source("bot").is_sending())
    world.channels.close()
    server.token = TOKEN.partition(":")[0] + ":another"
    monkeypatch.setenv("SECRET", server.token)
    server._updates = list(server.given)
    world.opened()
    server.message(7, "echo two")
    world.until(lambda: len(server.sent) == 2)
    assert texts(server)[1] == ("7", "You said: two")


def test_what_an_earlier_version_has_handled_is_not_repeated(started):
    world, server = started(ALLOWED)
    world.channels.close()
    world.channels.all[0].state.data["offset"] = 101
    world.channels.all[0].state.save()
    server.message(7, "echo handled")
    server.message(7, "echo new")
    world.opened()
    world.until(lambda: server.sent)
    assert texts(server) == [("7", "You said: new")]


def _message(text: str, age_s: int = 0, person: int = 7) -> dict:
    return {
        "message_id": 1,
        "date": int(time.time()) - age_s,
        "from": {"id": person, "is_bot": False, "first_name": "A"},
        "chat": {"id": person, "type": "private"},
        "text": text,
    }


def test_a_message_that_is_too_old_does_not_act_and_is_told(started):
    world, server = started(ALLOWED)
    server.update(message=_message("quick", 3700))
    server.update(message=_message("echo old", 7200))
    server.update(message=_message("echo stranger", 7200, 66))
    server.update(message=_message("echo young", 3500))
    world.until(lambda: len(server.sent) == 2)
    assert sorted(texts(server)) == [
        (
            "7",
            'Nothing was done for "quick", "echo old": it came too late. Write again if it is '
            "still to be done.",
        ),
        ("7", "You said: young"),
    ]
    assert world.ran == []


def test_an_old_approval_approves_nothing(started):
    world, server = started({"mode": "role-based", "roles": [{"id": "7", "role": "admin"}]})
    server.message(7, "careful")
    world.until(lambda: server.sent)
    number = server.sent[0]["text"].split("/approve ")[1][0]
    server.update(message=_message("/approve " + number, 3700))
    world.until(lambda: len(server.sent) == 2)
    assert "came too late" in server.sent[1]["text"] and world.ran == []


@pytest.mark.parametrize("max_age, acts", [("2h", True), ("30m", False)])
def test_the_settings_say_what_is_too_old(started, max_age, acts):
    world, server = started(ALLOWED, settings='max_age = "%s"\n' % max_age)
    server.update(message=_message("echo hello", 3500))
    world.until(lambda: server.sent)
    assert ("You said" in server.sent[0]["text"]) is acts


@pytest.mark.parametrize("wrong_s", [-9 * 86400, 400 * 86400])
def test_a_wrong_clock_of_this_machine_makes_no_message_old(started, wrong_s):
    world, server = started(ALLOWED)
    world.shift_s += wrong_s
    server.message(7, "echo hello")
    world.until(lambda: server.sent)
    assert texts(server) == [("7", "You said: hello")]


def test_a_message_that_became_old_while_no_agent_ran_does_not_act(started, monkeypatch):
    world, server = started(ALLOWED)
    world.hold = True
    for text in ("quick", "echo later"):
        server.message(7, text)
    world.until(lambda: 102 in offsets(server))
    kill(world)
    monkeypatch.setattr("clawlite.linux.channels.telegram.Telegram._is_old", lambda *_: True)
    world.until(lambda: len(server.sent) == 2)
    assert sorted(text.split()[0] for _, text in texts(server)) == ["Nothing", "The"]


def test_a_disk_that_takes_nothing_confirms_nothing(started, monkeypatch):
    world, server = started(ALLOWED)
    world.until(lambda: offsets(server))
    inbox = world.source("bot")._kept.inbox
    write = inbox._write
    monkeypatch.setattr(inbox, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    server.message(7, "echo hello")
    world.until(lambda: world.events("channel.trouble"))
    assert not server.sent
    monkeypatch.setattr(inbox, "_write", write)
    world.ms += 5000
    world.until(lambda: server.sent)
    assert 101 not in offsets(server)[:-1]


def test_while_the_agent_ends_answers_go_out_and_nothing_new_is_taken(started):
    world, server = started(ALLOWED)
    world.hold = True
    server.message(7, "quick")
    server.message(7, "echo waits")
    world.until(lambda: world.held and 102 in offsets(server))
    world.channels.drain()
    assert world.channels.is_busy()
    server.message(8, "echo too late")
    world.finish()
    world.until(lambda: server.sent)
    world.until(lambda: not world.channels.is_busy())
    assert len(server.sent) == 1
    world.channels.close()
    world.hold = False
    world.opened()
    world.until(lambda: len(server.sent) == 3)
    assert ("7", "You said: waits") in texts(server)


def test_a_turn_that_was_cut_off_by_a_stop_begins_again(started):
    world, server = started(ALLOWED, settings='interrupted = "repeat"\n')
    world.hold = True
    server.message(7, "quick")
    world.until(lambda: world.held)
    world.agent.stop(1000, lambda *_: None, world.ms)
    world.ms += 1000
    world.agent.tick(world.ms)
    world.held.clear()
    world.hold = False
    assert not server.sent and world.agent.lifecycle.state == "STOPPED"
    world.agent.start(world.ms)
    world.until(lambda: server.sent)
    assert world.ran == ["quick", "quick"] and len(server.sent) == 1
