"""What docs/tutorials and docs/howto say is what happens: commands, files, outputs are played."""

import contextlib
import functools
import os
import re
import tempfile
from pathlib import Path

import browsers
import pytest
import tutorials
from agents import ROOT, eventually
from bot_server import TOKEN, BotServer
from llm_server import Server, calls, say

FOUND = sorted((ROOT / "docs/tutorials").glob("*.md")) + sorted((ROOT / "docs/howto").glob("*.md"))
PERSON = 1234567


@contextlib.contextmanager
def open_plain():
    yield tutorials.World()


@contextlib.contextmanager
def open_model():
    """A server that answers as a model might."""

    def answer(request):
        messages = request.body["messages"]
        asked = [one["content"] for one in messages if one["role"] == "user"][-1]
        if messages[-1]["role"] == "tool":
            return say("The basil had water for 5 seconds.")
        if "drink" in str(asked):
            return calls(("water", {"seconds": 5}))
        return say("Let me look at the soil first. Ask me to measure it.")

    with Server(answer) as server:
        yield tutorials.World({"127.0.0.1:8080": "127.0.0.1:%d" % server.port})


@contextlib.contextmanager
def open_phone():
    """A Telegram server, and a person with the app."""
    with BotServer(TOKEN) as server:

        def use(text: str):
            for line in text.splitlines():
                if re.fullmatch(r"\[\w+\]", line):
                    server.tap(PERSON, line[1:-1], find_question(server))
                else:
                    eventually(lambda: shows(server, line))

        yield tutorials.World({"https://api.telegram.org": server.url}, use)


def find_question(server) -> int:
    """Return the number of the first message with buttons."""
    return [number for number, one in enumerate(server.sent) if "reply_markup" in one][0]


def shows(server, line: str) -> bool:
    pattern = re.escape(line).replace(r"\.\.\.", ".*")
    texts = [one["text"] for one in server.sent] + [text for _, text in server.edits()]
    return any(re.match(pattern, text, re.S) for text in texts)


@contextlib.contextmanager
def open_page():
    """A browser as small as a phone, before the page that was started last."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        world = tutorials.World()
        world.phone = functools.partial(use_page, world, stack, Path(folder))
        yield world


def use_page(world, stack, folder: Path, text: str) -> None:
    address = re.compile(r"http://127\.0\.0\.1:\d+")
    eventually(lambda: address.search(world.running[-1].errors()))
    url = address.search(world.running[-1].errors())[0]
    browser = stack.enter_context(browsers.open_browser(url, folder))
    browser.show(browsers.PHONE)
    browser.log_in(re.search(r"^ann:\S+$", "\n".join(world.seen), re.M)[0])
    for line in text.splitlines():
        if line.startswith("> "):
            browser.open("talk")
            browser.find("#message").send_keys(line[2:])
            browser.touch("Send")
            browser.until(lambda: browser.texts(".count") == ["1"])
            browser.open("approve")
        elif re.fullmatch(r"\[\w+\]", line):
            browser.touch(line[1:-1])
            browser.open("talk")
        else:
            browser.until(lambda: any(line.strip(".") in one for one in browser.texts("main")))


@contextlib.contextmanager
def open_service():
    """Root says whose service it is to be, as sudo tells by itself."""
    yield tutorials.World({"--dry-run": "--dry-run --as nobody"} if os.getuid() == 0 else {})


WORLDS = {"service": open_service, "approve": open_page, "model": open_model, "phone": open_phone}


@pytest.mark.parametrize("path", FOUND, ids=["%s-%s" % (p.parent.name, p.stem) for p in FOUND])
def test_a_page_works_word_for_word(path, tmp_path):
    with WORLDS.get(path.stem, open_plain)() as world:
        assert tutorials.play(path, tmp_path, world) >= (0 if path.parent.name == "howto" else 5)


def test_a_tutorial_is_short():
    words = {path.name: len(path.read_text().split()) for path in FOUND}
    assert {name: count for name, count in words.items() if count > 700} == {}


def test_a_wrong_output_is_noticed():
    assert tutorials.fits("a ... c\n", "a b c\n") and tutorials.fits("...\nx\n", "1\n2\nx\n")
    assert not tutorials.fits("a\n", "b\n") and not tutorials.fits("a\n", "a\nb\n")
    assert not tutorials.fits("", "something\n") and tutorials.fits("", "")
    written = "at 2026-01-02T03:04:05Z\n"
    assert tutorials.fits(written, "at 2027-12-31T23:59:59Z\n")
    assert not tutorials.fits(written, "at noon\n")
    steps = tutorials.read_steps(
        "```console\n$ a b # exit code 3\nout\n$ c &\n> typed\n```\n```toml x.toml\ny\n```\n"
        "```console no-run: a board\n$ d\n```\n```sh\ne 'f\ng'  # h\n```\n"
    )
    assert [(s.command, s.output, s.code, s.file, s.typed) for s in steps] == [
        ("a b", "out\n", 3, "", ""),
        ("c &", "", 0, "", "typed\n"),
        ("", "y\n", 0, "x.toml", ""),
        ("e 'fg'", "...\n", 0, "", ""),
    ]
