"""A rule asks, and what changes before the answer comes counts: whoever answers, by whichever way,
lets nothing run that may not run by now.  Everything is on record, with who answered.
"""

from types import SimpleNamespace

import pytest
from channel_world import Source
from rules_world import ASK, READING, RULE, World, project

from clawlite.core.base.errors import ClawError
from clawlite.core.policy.access import ADMIN, USER
from clawlite.core.protocol.console import Console
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.channels import channel
from clawlite.linux.files.files import image_of
from clawlite.linux.io.jsontext import loads
from clawlite.linux.tasks.operator_line import Person, RoleSession
from clawlite.linux.tasks.watch_group import WatchGroup

ROLES = [{"id": "1", "role": "admin"}, {"id": "2", "role": "user"}]
DESK = {
    "name": "desk",
    "type": "telegram",
    "transport": "polling",
    "auth": {"secret_ref": "T"},
    "access_control": {"mode": "role-based", "roles": ROLES},
}
ONCE = READING + RULE + 'at = "08:01"\nif = "soil < 30"\n'
DENY = [{"id": "no", "action": "deny", "scope": "all"}]


class Garden(World):
    """An agent whose rule waits for an answer, and the ways to it."""

    def start(self):
        super().start()
        self.console = Console(self.agent)
        self.role = {"ada": ADMIN, "bea": USER}

    def ask(self) -> dict:
        """Let the rule ask; return what names the question on the page."""
        self.move(61)
        approval = self.agent.waiting[0].approval
        return {"number": approval.number, "asked_ms": approval.since_ms}

    def say_at_console(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        before = len(self.told)
        self.console.line("y" if approves else "n", self.ms)
        return self._after(before)

    def number_at_console(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        before = len(self.told)
        verb = "/approve" if approves else "/deny"
        self.console.line("%s %d" % (verb, asked["number"]), self.ms)
        return self._after(before)

    def _after(self, before: int) -> str:
        self.settle()
        self.poll()
        return "\n".join(self.told[before:])

    def write_in_channel(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        source, actor = self.channels.all[0]._source, "2" if is_foreign else "1"
        before = len(source.sent)
        verb = "/approve" if approves else "/deny"
        source.channel.take_message(actor, "%s %d" % (verb, asked["number"]), actor)
        self._after(0)
        return "\n".join(text for to, text, _ in source.sent[before:] if to == actor)

    def touch_on_page(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        name, answers = "bea" if is_foreign else "ada", []
        person = Person(name, self.role[name])
        parts = SimpleNamespace(agent=self.agent, guard=None, watch_log=lambda _: None)
        session = RoleSession(self.agent, loads, person, answers.append)
        session.share(WatchGroup(parts))
        session._open = True
        message = {"jsonrpc": "2.0", "id": 1, "method": "claw.approval.answer"}
        session._one({**message, "params": {**asked, "is_approved": approves}}, answers.append, 0)
        session.close()
        self._after(0)
        (one,) = answers
        return str(one.get("error", one.get("result"))).replace("'", "")

    def call_method(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        return self._call_method({"name": "r", "is_approved": approves})

    def number_in_method(self, asked: dict, approves: bool, is_foreign: bool) -> str:
        params = {"name": "r", "is_approved": approves, "number": asked["number"]}
        return self._call_method(params)

    def _call_method(self, params: dict) -> str:
        try:
            done = self.commands.begin("claw.rule.answer", params)
        except ClawError as e:
            done = e.message
        self._after(0)
        return str(done)

    def use(self, rules: str, policy, maximum: int = 60):
        """From now on another image runs, as after a change that comes without a restart."""
        folder = self.folder / "other"
        project(folder, rules, policy, channels=[{"inline": DESK}])
        path = folder / "claw.yaml"
        path.write_text(path.read_text().replace('"maximum": 60', '"maximum": %d' % maximum))
        loaded = compiler.build(manifest.load(folder))
        self.agent.setup.image = image_of(loaded.data, "test")


WAYS = {
    "console": Garden.say_at_console,
    "console-number": Garden.number_at_console,
    "channel": Garden.write_in_channel,
    "page": Garden.touch_on_page,
    "method": Garden.call_method,
    "method-number": Garden.number_in_method,
}
# what a late answer is told
OVER = {
    "console-number": "Nothing was done now",
    "channel": "Nothing was done now",
    "page": "{acknowledged: False}",
    "method": "waits for no approval",
    "method-number": "waits for no approval",
}

# by whom it is on record; an operator's session puts it there, and "method" has none here
WHO = {"console-number": "console", "channel": "desk/1", "page": "ada"}


@pytest.fixture
def garden(tmp_path, monkeypatch):
    monkeypatch.setattr(channel, "source_of", lambda kind: Source)
    world = Garden(tmp_path, ONCE, ASK, channels=[{"inline": DESK}])
    yield world
    world.rules.close()


def approvals(world) -> list:
    return [(one["answer"], one.get("by")) for one in world.events("tool.approval")]


@pytest.mark.parametrize("way", WAYS)
def test_an_admin_lets_it_run_once(garden, way):
    asked = garden.ask()
    WAYS[way](garden, asked, True, False)
    assert len(garden.acted) == 1 and [how for how, _ in approvals(garden)] == ["approved"]
    assert approvals(garden)[0][1] in ("console", "desk/1", "ada", "operator")
    assert garden.events("tool.call")[-1]["approval"] == "approved"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["condition", "policy", "schema"])
def test_what_has_changed_meanwhile_stops_it(garden, way, what):
    asked = garden.ask()
    if what == "condition":
        garden.soil = 90
        garden.move(61)
    elif what == "policy":
        garden.use(ONCE, DENY)
    else:
        garden.use(ONCE.replace("seconds = 3", "seconds = 2"), ASK, 2)
    WAYS[way](garden, asked, True, False)
    assert garden.acted == [] and garden.agent.waiting == []
    wanted = {
        "condition": "approved, but by now",
        "policy": "rule no blocks",
        "schema": "at most 2",
    }
    assert any(wanted[what] in text for text in garden.told), garden.told
    run = garden.events("rule.run")[-1]
    assert run["status"] in ("refused", "error"), run
    assert [how for how, _ in approvals(garden)] == ["approved"]
    assert garden.events("tool.call")[-1]["status"] != "ok"


@pytest.mark.parametrize("way", WAYS)
def test_another_image_voids_the_question(garden, way):
    asked = garden.ask()
    garden.rebuild(ONCE.replace("seconds = 3", "seconds = 5"), ASK, channels=[{"inline": DESK}])
    garden.move(5)
    assert garden.agent.waiting == []
    WAYS[way](garden, asked, True, False)
    assert garden.acted == [] and garden.agent.waiting == []
    assert any("image" in str(one) for one in garden.logged + garden.told), garden.logged


@pytest.mark.parametrize("way", OVER)
@pytest.mark.parametrize("first", ["denied", "approved", "expired"])
def test_a_second_or_late_answer_does_nothing_and_is_told_so(garden, way, first):
    asked = garden.ask()
    if first == "expired":
        garden.move(601)
    else:
        WAYS["channel"](garden, asked, first == "approved", False)
    ran = len(garden.acted)
    for approves in (True, False):
        assert OVER[way] in WAYS[way](garden, asked, approves, False)
    assert len(garden.acted) == ran == (first == "approved")
    by = None if first == "expired" else "desk/1"
    ignored = [("ignored", WHO[way])] * 2 if way in WHO else []
    assert approvals(garden) == [(first, by), *ignored]


@pytest.mark.parametrize("way, said", [("channel", "Only an admin"), ("page", "admin")])
def test_who_is_no_admin_answers_nothing(garden, way, said):
    asked = garden.ask()
    for approves in (True, False):
        assert said in WAYS[way](garden, asked, approves, True)
    assert garden.acted == [] and len(garden.agent.waiting) == 1
    by = {"channel": "desk/2", "page": "bea"}[way]
    assert approvals(garden) == [("ignored", by)] * 2


@pytest.mark.parametrize("way, said", [("channel", "Only an admin"), ("page", "admin")])
def test_a_role_that_was_taken_away_meanwhile_answers_nothing(garden, way, said):
    asked = garden.ask()
    garden.role["ada"] = USER
    garden.channels.all[0].access._roles["1"] = USER
    assert said in WAYS[way](garden, asked, True, False)
    assert garden.acted == [] and len(garden.agent.waiting) == 1
    assert approvals(garden) == [("ignored", {"channel": "desk/1", "page": "ada"}[way])]
