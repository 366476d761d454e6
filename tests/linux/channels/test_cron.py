"""Channels of type cron: what runs, what was missed, what overlaps, on a clock that the test
moves.
"""

import os
import shutil

import pytest
from channel_world import EPOCH_S, World

BACK_S = 86400


def world(folder, schedule: str = "* * * * *", settings: str = "", **trigger) -> World:
    return World(
        folder,
        {
            "tick": {
                "type": "cron",
                "transport": "polling",
                "trigger": {"schedule": schedule, **trigger},
            }
        },
        settings,
    )


def turns(of: World) -> int:
    return len(of.events("channel.turn"))


SAYS = '[cron]\n%s\nmessages = { tick = "%s" }\n'


def test_each_minute_begins_one_turn(tmp_path):
    of = world(tmp_path, settings=SAYS % ("", "echo tock"))
    of.move(59000)
    assert turns(of) == 0
    of.move(1000)
    assert turns(of) == 1 and of.told == ["[tick] You said: tock"]
    of.move(240000)
    assert turns(of) == 5


def test_a_week_of_a_schedule(tmp_path):
    of = world(tmp_path, "30 7 * * MON-FRI", 'time_zone = "Europe/Berlin"\n')
    of.move(7 * 86400000, 60000)
    assert turns(of) == 5


def test_its_calls_bear_its_name(tmp_path):
    of = world(tmp_path, settings=SAYS % ("", "quick"))
    of.move(60000)
    assert of.ran == ["quick"] and [event["caller"] for event in of.events("tool.call")] == ["tick"]


@pytest.mark.parametrize("missed, after_sleep", [("once", 1), ("skip", 1), ("all", 100)])
def test_runs_that_were_missed(tmp_path, missed, after_sleep):
    of = world(
        tmp_path, settings=SAYS % ('missed = "%s"' % missed, "echo x"), overlap_policy="queue"
    )
    # asleep for 181 minutes; the newest time that was due is 59 s ago
    of.shift_s = 3 * 3600 + 119
    of.poll()
    assert turns(of) == after_sleep


def test_what_is_a_minute_late_was_missed(tmp_path):
    of = world(tmp_path, "0 * * * *", SAYS % ('missed = "skip"', "echo x"))
    of.shift_s = 3600 + 60
    of.poll()
    assert turns(of) == 0 and of.events("channel.missed")[0]["count"] == 1
    of.shift_s = 7200 + 59
    of.poll()
    assert turns(of) == 1


def test_one_run_makes_up_for_a_year(tmp_path):
    of = world(tmp_path)
    of.shift_s = 366 * 86400
    of.poll()
    assert turns(of) == 1 and of.events("channel.missed")[0]["count"] > 100
    of.move(60000)
    assert turns(of) == 2


def test_a_restart_makes_up_for_what_was_missed_and_repeats_nothing(tmp_path):
    of = world(tmp_path, "0 * * * *")
    of.shift_s = 3600
    of.poll()
    assert turns(of) == 1
    of.opened()
    of.poll()
    assert turns(of) == 1
    of.shift_s = 5 * 3600 + 600
    of.opened()
    of.poll()
    assert turns(of) == 2


def test_very_many_missed_runs_are_made_up_once_and_the_last_ones_count(tmp_path):
    of = world(tmp_path, settings=SAYS % ('missed = "all"', "echo x"), overlap_policy="queue")
    of.shift_s = 2 * 86400
    of.poll()
    assert turns(of) == 100
    for _ in range(2):
        of.opened()
        of.poll()
    assert turns(of) == 100


def test_the_first_run_is_missed_too_when_no_agent_runs(tmp_path):
    of = world(tmp_path, "0 * * * *")
    of.poll()
    of.shift_s = 3600 + 600  # it ended before the first time that was due
    of.opened()
    of.poll()
    assert turns(of) == 1


@pytest.mark.parametrize("missed, runs", [("skip", 0), ("once", 1), ("all", 100)])
def test_more_than_a_thousand_missed_runs_end_at_a_time_of_the_schedule(tmp_path, missed, runs):
    """Also when the last days had none."""
    settings = SAYS % ('missed = "%s"' % missed, "echo x")
    of = world(tmp_path, "* 9-17 * * 1-5", settings, overlap_policy="queue")
    of.poll()
    weekday = (EPOCH_S // 86400 + 3) % 7
    of.shift_s = ((6 - weekday) % 7 + 14) * 86400  # a Sunday
    of.opened()
    of.poll()
    assert turns(of) == runs


def test_a_restart_with_a_clock_that_went_back_repeats_nothing(tmp_path):
    of = world(tmp_path, "0 * * * *")
    of.shift_s = 3600
    of.poll()
    of.shift_s = 3600 - 1200
    of.opened()
    of.poll()
    of.shift_s = 3600 + 60
    of.poll()
    assert turns(of) == 1


def test_a_clock_that_goes_back_repeats_nothing_unless_it_was_wrong(tmp_path):
    of = world(tmp_path, "0 * * * *")
    of.shift_s = 3600
    of.poll()
    of.shift_s = 3600 - BACK_S
    of.poll()
    of.shift_s = 3600
    of.poll()
    assert turns(of) == 1
    of.shift_s = 3600 - BACK_S - 1
    of.poll()
    of.shift_s = 3600
    of.poll()
    assert turns(of) == 2, "it had said a day too much, and more"


def test_the_clock_is_looked_at_once_a_minute(tmp_path):
    of = world(tmp_path, "0 0 1 1 *")
    assert of.channels.deadline() == of.ms + 60000
    of.channels.close()
    of = world(tmp_path)
    of.ms = 59400
    assert of.channels.deadline() == 60000


@pytest.mark.parametrize(
    "trigger, started, skipped",
    [
        ({}, 1, 4),
        ({"overlap_policy": "allow"}, 1, 4),
        ({"max_parallel": 2}, 2, 3),
        ({"overlap_policy": "queue"}, 1, 0),
        ({"overlap_policy": "queue", "max_parallel": 3}, 3, 0),
    ],
)
def test_what_overlaps(tmp_path, trigger, started, skipped):
    of = world(tmp_path, settings=SAYS % ("", "quick"), **trigger)
    of.hold = True
    of.move(300000)
    assert (turns(of), len(of.events("channel.skipped"))) == (started, skipped)
    of.hold = False
    while of.held:
        of.finish()
        of.settle()
    assert turns(of) == 5 - skipped


def test_a_thousand_at_once_are_queued_and_none_is_lost(tmp_path):
    of = world(tmp_path, overlap_policy="queue", settings=SAYS % ("", "quick"))
    of.hold = True
    for _ in range(1000):
        of.channels.all[0].trigger("quick")
    of.settle()
    assert len(of.held) == 1
    of.hold = False
    while of.held:
        of.finish()
        of.settle()
    assert len(of.ran) == 1000 and not of.events("channel.skipped")


def test_nothing_begins_while_the_agent_is_not_ready(tmp_path):
    of = world(tmp_path)
    of.agent.stop(0, lambda *_: None, of.ms)
    of.move(120000)
    assert turns(of) == 0 and of.channels.deadline() is None


def test_of_two_processes_one_runs_a_schedule_and_the_other_goes_on_when_it_ends(tmp_path):
    """Two agents on one state folder: each time of the schedule begins one turn, whoever has the
    channels.
    """
    one = world(tmp_path)
    one.move(60000)
    two = world(tmp_path)
    two.ms = one.ms
    for _ in range(3):
        one.move(60000)
        two.move(60000)
    assert (turns(one), turns(two)) == (4, 0)
    said = two.events("channel.trouble")
    assert len(said) == 1 and "belong to process %d" % os.getpid() in said[0]["reason"]
    one.channels.close()
    two.move(60000)
    assert turns(two) == 1
    two.channels.close()


def test_a_state_folder_that_is_removed_gives_no_second_owner(tmp_path):
    """Who starts after ``rm -rf`` finds no lock, and the first one no longer has one: one of them
    goes on.
    """
    one = world(tmp_path)
    one.move(60000)
    shutil.rmtree(one.channels.folder)
    one.move(60000)
    two = world(tmp_path)
    two.ms = one.ms
    two.move(60000)
    one.move(60000)
    assert (turns(one), turns(two)) == (3, 0) and not one.events("channel.trouble")
    shutil.rmtree(one.channels.folder)
    two.move(60000)  # the first of the two to look
    one.move(60000)
    assert (turns(one), turns(two)) == (3, 1)
    (said,) = one.events("channel.trouble")
    assert "belong to process %d" % os.getpid() in said["reason"]
    two.channels.close()
    one.move(60000)
    assert turns(one) == 4
    one.channels.close()


def test_a_state_folder_that_a_file_replaced_is_told(tmp_path):
    one = world(tmp_path)
    one.move(60000)
    shutil.rmtree(one.state)
    one.state.write_text("")
    one.move(60000)
    (said,) = one.events("channel.trouble")
    assert turns(one) == 1 and "none of them runs: [Errno 17] File exists" in said["reason"]
    one.state.unlink()
    one.move(60000)
    assert turns(one) == 2
    one.channels.close()


def kill(of: World):
    """End the process as ``kill -9`` does, and start the next one."""
    of.channels._lock.release()  # as the kernel does
    of.agent.tasks.clear()
    of.held.clear()
    of.channels = None
    of.channels = of.opened()
    of.poll()


@pytest.mark.parametrize("missed, runs", [("all", 5), ("once", 2)])
def test_a_run_that_was_under_way_when_the_process_was_killed_begins_again(tmp_path, missed, runs):
    settings = SAYS % ('missed = "%s"' % missed, "quick")
    of = world(tmp_path, settings=settings, overlap_policy="queue")
    of.poll()
    of.hold = True
    of.shift_s = 5 * 60 + 10  # 12:01 to 12:05 were missed
    kill(of)
    assert of.ran == ["quick"]
    kill(of)
    of.hold = False
    while of.held:
        of.finish()
        of.settle()
    ends = len([event for event in of.events("tool.call") if event.get("status") == "ok"])
    assert (ends, len(of.ran)) == (5 if missed == "all" else 1, runs + (missed == "all"))
    kill(of)
    assert len(of.ran) == runs + (missed == "all"), "what has ended is not repeated"


def test_of_skipped_runs_an_interrupted_one_is_left_out_when_it_is_late(tmp_path):
    settings = SAYS % ('missed = "skip"', "quick")
    of = world(tmp_path, settings=settings, overlap_policy="queue")
    of.hold = True
    of.move(60000)
    of.shift_s += 30
    kill(of)
    assert of.ran == ["quick", "quick"]
    of.shift_s += 31
    kill(of)
    assert len(of.ran) == 3, "the next run, and not the one of before"
    assert of.events("channel.missed")[-1]["count"] == 1


def test_a_run_that_may_have_happened_is_given_up_where_the_settings_say_so(tmp_path):
    settings = SAYS % ('interrupted = "give-up"', "quick")
    of = world(tmp_path, "0 * * * *", settings)
    of.hold = True
    of.shift_s = 3600
    of.poll()
    kill(of)
    assert of.ran == ["quick"] and any("quick may have happened" in text for text in of.told)


def test_runs_that_cannot_be_put_on_record_begin_later(tmp_path, monkeypatch):
    of = world(tmp_path, "0 * * * *", SAYS % ("", "quick"))
    of.poll()
    inbox = of.source("tick")._kept.inbox
    write = inbox._write
    monkeypatch.setattr(inbox, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    of.shift_s = 3600
    of.poll()
    assert not of.ran and "cannot be put on record" in of.events("channel.trouble")[0]["reason"]
    monkeypatch.setattr(inbox, "_write", write)
    of.move(5000)
    assert of.ran == ["quick"]


DAY_S = 86400


@pytest.mark.parametrize("missed", ["once", "all", "skip"])
@pytest.mark.parametrize("off_s, made_up", [(4 * 3600, 0), (2 * DAY_S + 600, 2)])
def test_a_boot_in_the_past_misses_what_was_missed_and_repeats_nothing(
    tmp_path, missed, off_s, made_up
):
    of = world(
        tmp_path, "30 8 * * *", SAYS % ('missed = "%s"' % missed, "echo x"), overlap_policy="queue"
    )
    of.move(1800000, 60000)
    assert turns(of) == 1
    right = of.shift_s
    of.shift_s = right - 200 * DAY_S  # the clock of a machine without one
    of.opened()
    of.poll()
    of.shift_s = right + off_s  # it hears the time
    of.poll()
    wanted = {"once": min(1, made_up), "all": made_up, "skip": 0}[missed]
    assert turns(of) - 1 == wanted
    of.opened()
    of.poll()
    assert turns(of) - 1 == wanted


def test_in_the_past_no_run_begins_until_the_clock_is_set(tmp_path):
    of = world(tmp_path, "0 * * * *", SAYS % ("", "echo x"))
    of.shift_s = 3600
    of.poll()
    of.shift_s -= 200 * DAY_S
    of.opened()
    of.poll()
    of.move(3 * 3600000, 60000)
    assert turns(of) == 1 and "not believed" in of.events("channel.clock")[0]["reason"]
    of.shift_s += 200 * DAY_S
    of.poll()
    assert turns(of) == 2, "three hours have passed"


def test_what_an_earlier_version_kept_is_known(tmp_path):
    of = world(tmp_path, "0 * * * *", SAYS % ("", "echo x"))
    state = of.channels.all[0].state
    state.data = {"last": EPOCH_S + 3600}
    state.save()
    of.shift_s = 3600 + 600
    of.opened()
    of.poll()
    assert turns(of) == 0, "it ran at nine"
    of.shift_s = 7200
    of.poll()
    assert turns(of) == 1


@pytest.mark.parametrize(
    "damage", [[], {"rules": []}, {"rules": {"tick": {"done_s": "x", "queue": "y"}}, "wall_s": {}}]
)
def test_a_state_that_somebody_wrote_by_hand_stops_no_schedule(tmp_path, damage):
    of = world(tmp_path, "0 * * * *", SAYS % ("", "echo x"))
    of.channels.all[0].state.data["schedule"] = damage
    of.channels.all[0].state.save()
    of.opened()
    of.poll()
    of.shift_s = 3600
    of.poll()
    assert turns(of) == 1


def test_after_a_day_a_clock_is_believed(tmp_path):
    of = world(tmp_path, "0 * * * *", SAYS % ("", "echo x"))
    of.shift_s = 70 * 365 * DAY_S  # the year 2097, once
    of.opened()
    of.move(3600000, 60000)
    of.shift_s = 0
    of.opened()
    of.move(25 * 3600000, 60000)
    of.shift_s = 5 * 3600
    before = turns(of)
    of.opened()
    of.poll()
    assert turns(of) == before + 1, "missed runs are made up again"


@pytest.mark.parametrize("is_set, runs", [(True, 0), (False, 100)])
def test_a_clock_that_is_set_after_the_first_start_has_missed_nothing(tmp_path, is_set, runs):
    settings = SAYS % ('missed = "all"', "echo x")
    of = world(tmp_path, settings=settings, overlap_policy="queue")
    of.channels.set_ms = lambda: of.shift_s * 1000 if is_set else 0
    of.channels.all[0]._source = None
    of.poll()
    of.shift_s = 200 * DAY_S
    of.poll()
    assert turns(of) == runs
    of.move(60000)
    assert turns(of) == runs + 1


@pytest.mark.parametrize("again", [False, True], ids=["goes on", "starts again"])
@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_clock_that_is_years_ahead_for_a_while_makes_up_for_nothing(tmp_path, missed, again):
    settings = SAYS % ('missed = "%s"' % missed, "echo x")
    of = world(tmp_path, settings=settings, overlap_policy="queue")
    of.channels.set_ms = lambda: of.shift_s * 1000
    of.channels.all[0]._source = None
    of.move(60000)
    assert turns(of) == 1
    of.shift_s = 73 * 366 * DAY_S
    of.poll()
    assert turns(of) == 1
    of.move(60000)
    assert turns(of) == 2, "each minute has its run, whatever the year"
    of.shift_s = 0
    if again:
        of.opened()
        of.channels.set_ms = lambda: of.shift_s * 1000
    of.poll()
    assert turns(of) == 2
    for minute in range(3, 6):
        of.move(60000)
        assert turns(of) == minute


def test_a_schedule_whose_call_was_not_confirmed_rests_until_a_person_resumes_it(tmp_path):
    settings = SAYS % ("", "echo tock")
    of = world(tmp_path, settings=settings)
    of.move(60000)
    assert turns(of) == 1
    assert not of.channels.let_rest("bob", "x") and not of.channels.let_rest("rule/tick", "x")
    assert of.channels.let_rest("tick", "water failed: flow above 5")
    of.settle()
    assert of.told[-1] == (
        "[tick] it rests now: water failed: flow above 5. Once that is mended: /channels on tick"
    )
    of.move(180000)
    assert turns(of) == 1
    of.channels = of.opened()  # a restart
    of.move(180000)
    assert turns(of) == 1
    lines = "\n".join(of.channels.command(["/channels"]))
    assert "it rests: water failed: flow above 5; /channels on tick" in lines
    assert "no channel tack" in of.channels.command(["/channels", "on", "tack"])[0]
    assert of.channels.command(["/channels", "on", "tick"]) == ["Channel tick is on."]
    of.move(60000)
    assert turns(of) == 2
