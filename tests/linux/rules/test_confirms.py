"""Effects that are checked: what must follow a call, and what becomes of one that it does not
follow.
"""

import pytest
from rules_world import HANGS, READING, RULE, World

from clawlite.core.base.errors import ClawError
from clawlite.core.policy.trace import trace_text
from clawlite.core.turns.tools import call

RULE = READING.replace("60s", "1h") + RULE + 'at = "09:00"\nmissed = "skip"\n'
PUMP = '[[pins]]\nname = "pump"\npin = 5\nkind = "output"\n'
WATER = '[confirm.water]\nreading = "soil"\nabove = 50\nwithin = "3s"\npins = ["pump"]\n' + PUMP


class Confirmed(World):
    def __init__(self, folder, rules=RULE, settings=WATER, **more):
        super().__init__(folder, rules, settings=settings, **more)
        self.move(1)
        self.looked.clear()
        self.results = []

    def begin(self, name="water", arguments=None, caller="operator"):
        """Let a person call a tool."""

        def ended(value, error, now_ms):
            self.results.append(value if error is None else error)

        arguments = {"seconds": 3} if arguments is None else arguments
        number = self.agent.begin(call(self.agent.setup, name, arguments, caller), ended, self.ms)
        self.settle()
        return number


def test_an_effect_that_follows_is_confirmed_while_the_handler_runs(tmp_path):
    world = Confirmed(tmp_path, hold=True)
    world.begin()
    world.bank.write("pump", 1)
    world.move(1, 50)
    gaps = [b - a for a, b in zip(world.looked, world.looked[1:])]
    assert len(gaps) >= 1 and max(gaps) <= 500, world.looked
    world.soil = 60
    world.move(1, 50)
    seen = len(world.looked)
    world.move(5, 50)
    assert len(world.looked) == seen and not world.results  # it is confirmed; the handler runs
    world.finish()
    (result,) = world.results
    assert not result.is_error and result.text == "done"
    (event,) = [event for event in world.events("tool.call") if event["tool"] == "water"]
    assert event["status"] == "ok" and not world.cancelled and world.bank.read("pump") == 1
    assert event["confirm"].startswith("soil above 50 within 3000 ms: it was 60 after 1")
    assert "soil above 50" in trace_text(world.agent.image, event)


def test_one_that_does_not_follow_ends_the_handler_and_the_pins_are_safe(tmp_path):
    world = Confirmed(tmp_path, hold=True)
    number = world.begin()
    world.bank.write("pump", 1)
    world.move(2, 50)
    assert not world.results and world.bank.read("pump") == 1
    world.move(2, 50)
    (result,) = world.results
    assert world.cancelled == [number] and world.bank.read("pump") == 0
    assert result.is_error and result.text == (
        "water failed: soil above 50 within 3000 ms is not confirmed: it is 20"
    )
    (event,) = [event for event in world.events("tool.call") if event["tool"] == "water"]
    assert event["status"] == "error" and "not confirmed: it is 20" in event["confirm"]
    assert "is not confirmed" in trace_text(world.agent.image, event)
    assert world.told == [result.text + " (called by operator)"]
    world.soil, world.told = 60, []
    world.begin()  # a person's own call is told, and not blocked
    world.move(1, 50)
    world.finish()
    assert not world.results[1].is_error and not world.told


def test_the_safe_state_may_be_high(tmp_path):
    """A relay that is on while its pin is low."""
    settings = PUMP + 'safe = 1\nconfirm = { reading = "soil", above = 50, within = "1s" }\n'
    world = Confirmed(tmp_path, settings=settings, more_tools=DIGITAL["tools"], hold=True)
    assert world.bank.read("pump") == 1
    for value, is_error in ((True, False), (False, True)):
        world.bank.write("pump", value)
        world.begin("digital-write", {"pin": "pump", "value": value})
        world.agent.complete(world.held.pop(0), (True, {"pin": "pump", "value": value}), world.ms)
        world.move(2, 50)
        assert world.results[-1].is_error is is_error, value
    assert world.bank.read("pump") == 1


def test_the_time_goes_on_when_the_handler_has_ended(tmp_path):
    world = Confirmed(tmp_path)
    world.begin()
    world.move(2, 50)
    assert world.acted and not world.results
    world.soil = 51
    world.move(1, 50)
    assert not world.results[0].is_error
    world.soil = 50  # the threshold itself is not above
    world.begin()
    world.bank.write("pump", 1)
    world.move(4, 50)
    assert world.results[1].is_error and world.bank.read("pump") == 0


@pytest.mark.parametrize(
    "soil, said",
    [
        (ClawError("no answer on the bus"), "because it fails: read-soil failed: no answer"),
        (HANGS, "because it fails: it did not answer in time"),
        (None, "because it fails: it returned no such value"),
        ("wet", 'is not confirmed: it is "wet"'),
    ],
)
def test_a_sensor_that_fails_is_no_confirmation(tmp_path, soil, said):
    world = Confirmed(tmp_path, hold=True)
    world.soil = soil
    world.begin()
    world.bank.write("pump", 1)
    world.move(4, 50)
    (result,) = world.results
    assert result.is_error and said in result.text, result.text
    assert world.bank.read("pump") == 0 and world.cancelled


def test_a_policy_that_refuses_the_reading_lets_nothing_be_confirmed(tmp_path):
    policy = [
        {"id": "blind", "action": "deny", "scope": "tool", "match": {"name": "read-soil"}},
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    world = Confirmed(tmp_path, policy=policy, hold=True)
    world.begin()
    world.move(4, 50)
    assert world.results[0].is_error and "rule blind blocks read-soil" in world.results[0].text


def test_the_rule_that_ran_it_rests_over_restarts_until_a_person_resumes_it(tmp_path):
    world = Confirmed(
        tmp_path,
        RULE.replace('at = "09:00"', 'every = "1m"').replace('missed = "skip"\n', ""),
        hold=True,
    )
    world.move(60)
    assert len(world.acted) == 1
    world.move(5, 50)
    why = "soil above 50 within 3000 ms is not confirmed: it is 20"
    told = [text for text in world.told if "it is off now" in text]
    assert len(told) == 1 and why in told[0] and "/rules on r" in told[0], world.told
    assert not [text for text in world.told if "called by" in text]
    world.move(300)
    world.reset()
    world.move(300)
    assert len(world.acted) == 1
    assert any(why in line for line in world.commands.command(["/rules", "why", "r"]))
    world.commands.command(["/rules", "on", "r"])
    world.soil = 60
    world.move(70)
    assert len(world.acted) == 2
    world.move(2, 50)
    world.finish()
    assert world.events("rule.run")[-1]["status"] == "ok"


def test_a_handler_that_fails_by_itself_is_not_called_unconfirmed(tmp_path):
    world = Confirmed(tmp_path, hold=True)
    world.begin()
    world.finish(failed=True)
    assert world.results[0].text == "water failed: broken" and not world.told
    seen = len(world.looked)
    world.move(5, 50)
    assert len(world.looked) == seen and len(world.results) == 1


def test_a_call_that_is_cancelled_is_looked_at_no_more(tmp_path):
    world = Confirmed(tmp_path, hold=True)
    number = world.begin()
    world.agent.cancel(number, ClawError("stopped"), world.ms)
    world.settle()
    world.bank.write("pump", 1)  # by another call
    world.move(5, 50)
    assert world.bank.read("pump") == 1 and not world.told


def test_a_loop_that_stood_still_looks_once_more(tmp_path):
    """A function that runs in one piece for longer than the time, and has its effect at its end."""
    world = Confirmed(tmp_path, hold=True)
    world.begin()
    world.soil = 60
    world.move(10, 10000)
    world.move(1, 50)
    world.finish()
    assert not world.results[0].is_error, world.results[0].text


DIGITAL = {"tools": ["claw://registry/clawlite/digital-write@1.0.0"]}


def test_a_pin_is_confirmed_when_it_is_switched_on(tmp_path):
    settings = PUMP + 'confirm = { reading = "soil", above = 50, within = "1s" }\n'
    world = Confirmed(tmp_path, settings=settings, more_tools=DIGITAL["tools"], hold=True)
    for value, is_error in ((True, True), (False, False)):
        world.bank.write("pump", 1)
        world.begin("digital-write", {"pin": "pump", "value": value})
        world.agent.complete(world.held.pop(0), (True, {"pin": "pump", "value": value}), world.ms)
        world.move(2, 50)
        assert world.results[-1].is_error is is_error, value
    assert world.bank.read("pump") == 1
    world.begin("digital-write", {"pin": "door", "value": True})
    world.agent.complete(world.held.pop(0), (True, {"pin": "door", "value": True}), world.ms)
    assert not world.results[-1].is_error
