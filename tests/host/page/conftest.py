"""A page in this process, before a real greenhouse with people of each role, or before a garden
with rules, stores and a day of readings.
"""

import math
import sqlite3
import time

import pytest
from agents import Agent, clawlite, eventually, linux, make_greenhouse
from pages import AGENT, RunningPage
from rules_world import ASK, READING, project

from clawlite.linux.secrets import people

# a reading each second is a call, too: 300 a minute are never used up
RULES = READING.replace("60s", "1s") + (
    '[[rule]]\nname = "morning-water"\nat = ["07:00", "19:00"]\nif = "soil < 30"\ncall = "water"\n'
    "arguments = { seconds = 3 }\n"
)
SETTINGS = '[[pins]]\nname = "pump"\npin = 15\nkind = "output"\n'
STORES = [
    {"name": "notes", "type": "semantic", "backend": "sqlite", "scope": "global"},
    {"name": "facts", "type": "key-value", "backend": "sqlite", "scope": "global"},
]
AUDIT = {"log_inputs": True, "log_outputs": True, "log_approvals": True, "destination": "file"}
POLICY = {"rules": ASK, "audit": AUDIT, "rate_limits": {"tool_calls_per_minute": 300}}


@pytest.fixture(scope="session")
def greenhouse_image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / AGENT)


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture
def add_person(state):
    """Return a function that makes a person of the greenhouse, and returns their token."""

    def add(name: str, role: str, agent: str = AGENT) -> str:
        token, digest = people.make_token(name)
        people.add(str(state / agent), name, role, digest)
        return token

    return add


@pytest.fixture
def tokens(add_person):
    return {name: add_person(name, role) for name, role in ROLES.items()}


ROLES = {"ada": "admin", "bea": "user", "vic": "viewer"}


@pytest.fixture
def page(state, tokens):
    with RunningPage(state) as running:
        yield running


@pytest.fixture
def greenhouse(greenhouse_image, state, tmp_path):
    """The greenhouse runs, and can be reached."""
    env = {"CLAWLITE_STATE": state}
    words = linux("serve", greenhouse_image, "--socket")
    with Agent(words, tmp_path / "home", cwd=tmp_path, env=env) as agent:
        eventually((state / AGENT / "control.sock").exists)
        yield agent


@pytest.fixture(scope="session")
def garden_image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("garden")
    memory = {"inline": {"name": "m", "stores": STORES}}
    project(folder, RULES, settings=SETTINGS, policies=[{"inline": POLICY}], memory=memory)
    made = clawlite("build", "-o", "claw.cbor", cwd=folder)
    assert made.returncode == 0, made
    return folder / "claw.cbor"


def fill_day(folder):
    """Put a day of samples on record, before the agent starts."""
    folder.mkdir(parents=True, exist_ok=True)
    now_s = int(time.time())
    rows = [
        ("soil", at, round(34 - 12 * math.sin((now_s - at) / 14000), 1))
        for at in range(now_s - 86000, now_s, 60)
    ]
    with sqlite3.connect(folder / "readings.db") as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(
            "CREATE TABLE sample(reading TEXT NOT NULL, at_s INTEGER NOT NULL, value,"
            " PRIMARY KEY(reading, at_s)) WITHOUT ROWID"
        )
        db.executemany("INSERT INTO sample VALUES(?, ?, ?)", rows)
    db.close()


@pytest.fixture
def garden(garden_image, state, tmp_path):
    fill_day(state / "ruled")
    words = linux("serve", garden_image, "--socket", "--stdio")
    env = {"CLAWLITE_STATE": state}
    with Agent(words, tmp_path / "home", cwd=tmp_path, env=env).initialize() as agent:
        eventually((state / "ruled" / "control.sock").exists)
        yield agent
