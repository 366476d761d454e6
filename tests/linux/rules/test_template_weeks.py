"""The templates with rules, each for a simulated week: its own tools.py on its own simulated
devices, through the real engine, pipeline and policy, with resets at random moments.
"""

import importlib.util
import json

import pytest
from rules_world import EPOCH_S, World
from template_weeks import DOOR_RESTS, JUDGES, compare_rehearsal, judge, live_a_week

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.buses.bustable import BUSES, SIMULATED
from clawlite.core.image.image import PINS
from clawlite.core.image.pins import SimulatedPins
from clawlite.core.rules.rehearsal import OF_LINUX
from clawlite.core.turns.handlers import Handlers
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.host.projects import new
from clawlite.linux.audit import audit, files
from clawlite.linux.audit.chain import verify
from clawlite.linux.files.files import image_of
from clawlite.linux.hardware.buses import make_board
from clawlite.linux.tools.scan_support import guard_of

WEEK_S, HOUR_S = 7 * 86400, 3600


class Week(World):
    """An agent of the template *name*; the world that its devices measure outlives its resets."""

    def __init__(self, folder, name: str, keep: str = 'keep = "2d"'):
        new.new(str(folder / "project"), name, offline=True)
        policy = folder / "project/policy.yaml"
        text = policy.read_text()
        policy.write_text(text.replace("  rules:\n", "  audit: { destination: file }\n  rules:\n"))
        reflex = folder / "project/reflex.toml"
        reflex.write_text(reflex.read_text().replace('keep = "2d"', keep))
        self.folder, self.hold, self.hold_stores, self.edges = folder, False, False, None
        self.data = compiler.build(manifest.load(folder / "project")).data
        self.ms, self.wall_s, self.passed_ms = 10000, EPOCH_S, 0
        self.acted, self.told, self.logged, self.kept = [], [], [], []
        self.agent = self.rules = None
        image = image_of(self.data, "test")
        self.own_bank = SimulatedPins(image.section(PINS) or [], self.always_ms)
        self.board = make_board(
            self.own_bank, image.section(BUSES), image.section(SIMULATED), self.always_ms, False
        )
        self.pins = {pin: None for pin in self.own_bank.names}
        spec = importlib.util.spec_from_file_location("t", folder / "project/tools.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.functions, self.levels, self.name = vars(module), [], name
        store = files.FileStore(str(folder / "audit"), name)
        self.audit = audit.Audit(image, guard_of(image), store)
        self.start()

    def make_setup(self, image):
        setup = Setup(image)
        setup.is_recorded = True
        return setup

    def always_ms(self) -> int:
        """The time of the world, over resets."""
        return self.passed_ms + self.ms

    def start(self):
        self.handlers = Handlers({}, getattr(self, "functions", {}), self.board)
        self.board.off()
        super().start()
        self.rules.read_pin = self.rules._read_pin = self.board.read

    def reset(self, off_s: int = 0):
        self.board.off()  # without power nothing is on
        self.passed_ms += self.ms + off_s * 1000 - 10000
        super().reset(off_s)

    def _carry_out(self, kind, *rest):
        if kind == E.CANCEL:
            self.handlers.cancel(rest[0])
            return
        if kind == E.RECORD:
            self.audit.begins(rest[1], rest[2], None)
            assert self.audit.flush()
            self.agent.complete(rest[0], (True, None), self.ms)
            return
        if kind == E.LOG:
            self.audit.write(dict(rest[0], timestamp=iso8601(self.now_s())))
            assert self.audit.flush()
        if kind != E.RUN:
            super()._carry_out(kind, *rest)
            return
        task, tool, arguments, due_ms = rest
        self.acted.append((tool.name, arguments, self.now_s()))
        outcome = self.handlers.start(task, tool, arguments, due_ms, self.ms)
        if outcome is not None:
            self.agent.complete(task, outcome, self.ms)

    def poll(self):
        for task, outcome in self.handlers.poll(self.ms):
            self.agent.complete(task, outcome, self.ms)
        super().poll()

    def move(self, seconds: int, step_ms: int = 1000):
        """Let *seconds* pass; a handler that waits goes on when it wants to."""
        self.move_ms(seconds * 1000, step_ms)

    def move_ms(self, ms: int, step_ms: int):
        until = self.ms + ms
        while self.ms < until:
            due = [self.handlers.deadline()]
            if self.name != "door":  # whose pin is looked at, 50 times a second
                due.append(self.rules.deadline())
            due_ms = min([at for at in due if at is not None], default=until)
            self.ms = min(until, self.ms + step_ms, max(self.ms + 1, due_ms))
            self.agent.tick(self.ms)
            self.settle()
            self.poll()

    def acts(self, name: str) -> list:
        return [at for tool, _, at in self.acted if tool == name]

    def live(self, seconds: int, off_s: int):
        """As template_weeks.py has it."""
        self.pass_time(seconds)
        self.reset(off_s)

    def pass_time(self, seconds: int):
        """Let time pass; the door's button is looked at 50 times a second while it is pressed."""
        every, first, last = DOOR_RESTS
        until = self.ms + seconds * 1000
        while self.ms < until and self.name == "door":
            phase = (self.always_ms() - 10000) % every
            if first <= phase < last:
                self.move_ms(min(last - phase, until - self.ms), 10000)
            else:
                self.move_ms(min(20, until - self.ms), 20)
        self.move_ms(until - self.ms, 10000)

    def audit_folder(self) -> str:
        return str(self.folder / "audit")

    def chain(self) -> list:
        lines, head, _ = files.read(self.audit_folder())
        lines = list(lines)
        assert verify(lines, head, self.name)["problems"] == []
        return [json.loads(line) for line in lines]

    def list_samples(self, reading: str) -> list:
        samples = self.rules.samples.since(0)
        return [(at_s, value) for at_s, name, value in samples if name == reading]

    def runs(self, name: str) -> list:
        return [event for event in self.events("rule.run") if event["rule"] == name]


@pytest.fixture
def week(tmp_path, request):
    made = []

    def make(name: str, *more) -> Week:
        made.append(Week(tmp_path, name, *more))
        return made[-1]

    yield make
    for one in made:
        one.rules._lock.release()
        one.rules.samples.close()


class Told:
    """What template_weeks.py wants of a *week*."""

    def __init__(self, week: Week):
        self.now_s, self.live, self.chain = week.now_s, week.live, week.chain
        self.acts, self.list_samples, self._week = week.acts, week.list_samples, week

    @property
    def told(self) -> str:
        return "\n".join(self._week.told)


@pytest.mark.parametrize("name", JUDGES)
def test_a_week_of_a_template_with_resets_and_its_rehearsal(week, name):
    world = week(name, 'keep = "14d"')
    told = Told(world)
    judge(name, told, live_a_week(told, 7))
    compare(world)


@pytest.mark.parametrize("name", JUDGES)
def test_a_rehearsal_of_a_templates_week_is_what_happened(week, name):
    world = week(name, 'keep = "14d"')
    world.pass_time(WEEK_S)
    compare(world)


def compare(world: Week):
    samples = world.rules.samples
    samples.write(world.now_s(), True)
    record = samples.since(0), samples.spread_edges(0), samples.lives_since(0)
    compare_rehearsal(world.data, record, world, EPOCH_S, 2, OF_LINUX)


def test_freezer_beeps_when_it_is_warm_and_is_silent_before(week):
    world = week("freezer")
    world.move(30 * HOUR_S, 30000)
    assert world.acts("sound-alarm") == []
    world.move(WEEK_S - 30 * HOUR_S, 30000)
    warm = world.runs("warm")
    assert warm and {run["status"] for run in warm} == {"ok"}
    assert all("The freezer is at -1" in text for text in world.told if "[rule warm]" in text)
    # it got warm within the week, and the alarm came within 20 minutes
    first = world.acts("sound-alarm")[0]
    assert world.board.read("beeper") == 0 and first > EPOCH_S + 30 * HOUR_S


def test_freezer_says_that_its_thermometer_is_silent(week):
    world = week("freezer")
    world.move(HOUR_S, 10000)
    for _, chip in world.board._simulator.chips:
        chip.fault = "noise"
    world.move(3 * HOUR_S, 10000)
    told = [text for text in world.told if "does not answer. " in text]
    assert 2 <= len(told) <= 3, world.told


def test_thermostat_is_off_when_its_thermometer_fails(week):
    world = week("thermostat")
    while not world.acts("heat"):
        world.move(60, 10000)
    world.move(60, 10000)
    assert world.board.read("heater") == 1
    for _, chip in world.board._simulator.chips:
        chip.fault = "missing"
    world.move(120, 1000)
    assert world.board.read("heater") == 0
    assert "does not answer" in world.told[-1] or "nobody is on the wire" in world.told[-1]
    heats = len(world.acts("heat"))
    world.move(6 * HOUR_S, 10000)
    assert len(world.acts("heat")) <= heats + 1  # without a reading nothing heats
