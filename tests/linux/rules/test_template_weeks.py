"""The templates with rules, each for a simulated week: its own tools.py on its own simulated
devices, through the real engine, pipeline and policy, with resets at random moments.
"""

import importlib.util
import random

import pytest
from rules_world import EPOCH_S, World

from clawlite.core.buses.bustable import BUSES, SIMULATED
from clawlite.core.image.image import PINS
from clawlite.core.image.pins import SimulatedPins
from clawlite.core.turns.handlers import Handlers
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.host.projects import new
from clawlite.linux.files.files import image_of
from clawlite.linux.hardware.buses import make_board

WEEK_S, HOUR_S, DAY_S = 7 * 86400, 3600, 86400


class Week(World):
    """An agent of the template *name*; the world that its devices measure outlives its resets."""

    def __init__(self, folder, name: str):
        new.new(str(folder / "project"), name, offline=True)
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
        self.functions, self.levels = vars(module), []
        self.start()

    def always_ms(self) -> int:
        """The time of the world, over resets."""
        return self.passed_ms + self.ms

    def start(self):
        self.handlers = Handlers({}, getattr(self, "functions", {}), self.board)
        self.board.off()
        super().start()
        self.rules.read_pin = self.rules._read_pin = self.board.read

    def reset(self, off_s: int = 0):
        self.passed_ms += self.ms + off_s * 1000 - 10000
        super().reset(off_s)

    def _carry_out(self, kind, *rest):
        from clawlite.core.base import effect as E

        if kind == E.CANCEL:
            self.handlers.cancel(rest[0])
            return
        if kind != E.RUN:
            super()._carry_out(kind, *rest)
            return
        task, tool, arguments, due_ms = rest
        self.acted.append((tool.name, arguments, self.now_s()))
        outcome = self.handlers.start(task, tool, arguments, due_ms, self.ms)
        if outcome is not None:
            self.agent.done(task, outcome, self.ms)

    def poll(self):
        for task, outcome in self.handlers.poll(self.ms):
            self.agent.done(task, outcome, self.ms)
        super().poll()

    def move(self, seconds: int, step_ms: int = 1000):
        """Let *seconds* pass; a handler that waits goes on when it wants to."""
        until = self.ms + seconds * 1000
        while self.ms < until:
            due_ms = self.handlers.deadline()
            self.ms = min(until, self.ms + step_ms, max(self.ms + 1, due_ms or until))
            self.agent.tick(self.ms)
            self.settle()
            self.poll()

    def acts(self, name: str) -> list:
        return [at for tool, _, at in self.acted if tool == name]

    def runs(self, name: str) -> list:
        return [event for event in self.events("rule.run") if event["rule"] == name]


@pytest.fixture
def week(tmp_path, request):
    made = []

    def make(name: str) -> Week:
        made.append(Week(tmp_path, name))
        return made[-1]

    yield make
    for one in made:
        one.rules._lock.release()
        one.rules.samples.close()


def test_weather_tells_of_frost_once_a_night_and_of_each_morning(week):
    world = week("weather")
    chance = random.Random(7)
    resets = sorted(chance.sample(range(0, WEEK_S, 60), 50))
    began = world.now_s()
    for at in resets:
        world.move(max(0, began + at - world.now_s()), 60000)
        world.reset(chance.choice((0, 0, 30, 900)))
    world.move(began + WEEK_S - world.now_s(), 60000)
    mornings = [text for text in world.told if "Good morning" in text]
    # 12 degrees, 11 of swing: below 2 once in each of the seven nights
    frosts = [text for text in world.told if "Frost" in text]
    assert len(mornings) == 7 and 6 <= len(frosts) <= 8, world.told
    assert not [text for text in world.told if "read-weather" in text]
    said = [float(text.split("Frost: ")[1].split(" ")[0]) for text in frosts]
    assert all(degrees < 2 for degrees in said)


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


def test_door_rings_once_for_each_press_over_resets(week):
    world = week("door")
    presses = 0
    for hour in range(7 * 24):
        # the simulated button is pressed at the end of each hour of the world
        left = HOUR_S * 1000 - (world.always_ms() - 10000) % (HOUR_S * 1000)
        world.move(left // 1000 - 10, 10000)
        if hour % 4 == 3:
            world.reset()
        world.move(12, 20)
        presses += 1
    assert len(world.acts("ring")) == presses
    assert sum("Somebody is at the door" in text for text in world.told) == presses
    assert world.acts("open-door") == [] and world.board.read("bell") == 0


def test_thermostat_keeps_the_room_between_its_limits(week):
    world = week("thermostat")
    chance, degrees = random.Random(11), []
    for _ in range(7 * 24):
        world.move(HOUR_S, 10000)
        degrees.append(world.board._simulator.world.value(0))
        if chance.random() < 0.3:
            world.reset(chance.choice((0, 20, 300)))
    assert 18.0 < min(degrees[3:]) and max(degrees) < 21.6, degrees
    runs = world.runs("cold")
    # about 2.4 hours to cool by 2 degrees and half an hour to heat: no relay that chatters
    assert 30 < len(world.acts("heat")) < 120 and runs
    assert {run["status"] for run in runs} <= {"ok", "cut"}


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
