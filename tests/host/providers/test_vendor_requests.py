"""Requests are held to the request types of the vendors and to templates that raise on wrong order
(tests/helpers/vendor_requests.py), after whatever may have happened in a conversation.
"""

import json
import pathlib
import random
import subprocess

import pytest
from provider_builds import build, opened, provider

from clawlite.core.base.effect import Result
from clawlite.core.image.image import WIRE
from clawlite.core.providers.anthropic import Codec as Anthropic
from clawlite.core.providers.dialogue import compose
from clawlite.core.providers.openai import Codec as OpenAI
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message
from clawlite.linux.io import jsontext

# a minute of processor time, on a machine that may share it with a dozen others
pytestmark = pytest.mark.limit(1800)
ROOT = pathlib.Path(__file__).parents[3]
PYTHON = ROOT / "build/vendors/bin/python"
APIS = {"openai": ("openai-compatible", OpenAI), "anthropic": ("anthropic-native", Anthropic)}
IDS = ("call_1", "call_1", "functions.add:0", "toolu_01A", "", "abcdefghi", "x" * 60, "caf\u00e9")
TOOLS = '''
def add(a: int) -> int:
    """Add."""
    return a


def read() -> str:
    """Read."""
    return ""
'''


def check(lines: list) -> list:
    if not (ROOT / "build/vendors/made").exists():
        pytest.skip("no packages of vendors: make vendors")
    done = subprocess.run(
        [PYTHON, ROOT / "tests/helpers/vendor_requests.py"],
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        timeout=1800,  # for packages that no Python has compiled before
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def beginnings(folder) -> dict:
    """Return the beginning of a request of each API."""
    found = {}
    for api, (protocol, _) in APIS.items():
        (folder / api).mkdir()
        image = opened(build(folder / api, provider("m", protocol=protocol), tools=TOOLS))
        found[api] = bytes(image.part(WIRE, *image.provider(0)[21][:2])).decode()
    return found


def written(api: str, begin: str, messages: list) -> dict:
    codec = APIS[api][1](jsontext.loads, jsontext.dumps)
    body = codec.messages(compose(messages, "me"))
    end = codec.end([(name, value) for name, value, *_ in codec.FIELDS] + [("stream", "true")])
    text = begin + codec.FIRST.decode() + ",".join(body) + end.decode()
    return {**json.loads(text), "max_tokens": 100}


def broken_talk(seed: int) -> list:
    """Return the context of a conversation in which turns failed, were cut short or fell back."""
    chance = random.Random(seed)
    history = History(100000)
    for turn in range(chance.randint(1, 6)):
        history.begin(Message("user", chance.choice(["hi", "what now?", " ", ""])))
        for _ in range(chance.randint(0, 3)):
            owner = chance.choice(["me", "other", ""])
            ids = chance.sample(IDS, chance.randint(1, 3))
            ids = [id if id != "" else history.new_id() for id in ids]
            if owner == "me":  # what a server gives it takes back
                ids = [id for id in ids if len(id) == 9] or ["abcdefghi"]
            calls = [(id, chance.choice(["add", "read"]), '{"a":1}') for id in ids]
            history.turn.append(Message("assistant", "", calls, owner=owner))
            for id in ids[: chance.choice([0, 1, 3, 3])]:
                history.turn.append(Message("tool", "done", id=id, result=Result("done", False)))
        if chance.random() < 0.6:
            history.turn.append(Message("assistant", chance.choice(["ok", "", "\n"])))
        history.is_void = chance.random() < 0.2
    history.begin(Message("user", "the last"))
    return history.context()


def test_every_request_fits_the_types_and_templates_of_the_vendors(tmp_path):
    begins = beginnings(tmp_path)
    talks = [broken_talk(seed) for seed in range(150)]
    lines = [
        {"api": api, "body": written(api, begins[api], talk)} for talk in talks for api in APIS
    ]
    for line, wrong in zip(lines, check(lines), strict=True):
        assert wrong == [], json.dumps(line)


def test_the_oracle_finds_what_vendors_refuse():
    user, tool = {"role": "user", "content": "a"}, {"role": "tool", "content": "r"}
    call = {"id": "call_1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    bad = [
        [user, user],
        [user, asks, user],
        [user, asks, {**tool, "tool_call_id": "call_1"}],
        [user, {"role": "assistant", "content": ""}, user],
        [user, {"role": "assistant", "content": 1}, user],
    ]
    lines = [{"api": "openai", "body": {"model": "m", "messages": each}} for each in bad]
    block = {"type": "tool_use", "id": "functions.add:0", "name": "t", "input": {}}
    answer = {"role": "assistant", "content": [block]}
    text = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    bodies = [[text, text], [text, answer, text], [{"role": "user", "content": [{"type": "odd"}]}]]
    lines += [
        {"api": "anthropic", "body": {"model": "m", "max_tokens": 1, "messages": each}}
        for each in bodies
    ]
    assert all(check(lines))
