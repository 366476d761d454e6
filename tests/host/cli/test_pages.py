"""Each command, output and dialogue on README and the pages directly below docs/ happens as it is
shown: every block is played in a world of its own (tutorials.py has the kinds of blocks).

1. A world is found by the page and the first line of its block; a block without one is played in an
   empty folder.
2. The files that a page names above a block are there.
"""

import contextlib
import re
from pathlib import Path

import documents
import pytest
import tutorials
from agents import ROOT
from page_worlds import WORLDS
from tutorials import World

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLAYED = ("console", "sh", "dialogue")
# blocks that tests of their own play
ELSEWHERE = {
    "README make run": "tests/host/cli/test_make_run.py",
    "line host": "tests/host/serial/test_line_cost.py",
    "proxy clawlite gateway token": "tests/host/proxy/test_proxy_document.py",
    "tasks > {": "tests/linux/tasks/test_documented.py",
}
KINDS = {
    "console": "commands and what they print",
    "sh": "commands",
    "dialogue": "a terminal on which an agent runs",
    "phone": "what a person sees and touches on a phone",
    "ckp": "requests of an operator (>) and answers (<)",
    "line": "what host and board write to their line",
    "toml": "settings or rules",
    "yaml": "documents of CKP",
    "json": "data",
    "jsonl": "data, one value a line",
    "python": "code",
    "dockerfile": "how a container is made",
    "text": "none of these: a drawing",
}
MOST_NOT_PLAYED = 0.05  # of the commands of all documents


def test_each_block_says_what_it_is():
    """No fence without a word, and no command or dialogue below a word that nobody plays."""
    pages = [path for path in documents.list_documents() if path.parent.name != "adr"]
    found = []
    for path in [*pages, ROOT / "CONTRIBUTING.md"]:
        for block in tutorials.list_blocks(path.read_text("utf-8")):
            is_command = re.search(r"^(\$|>|clawlite) ", block.body, re.M)
            if block.language not in KINDS or is_command and block.language == "text":
                found.append("%s:%d" % (path.name, block.line))
    assert found == []


def test_nearly_all_commands_are_played():
    pages = [path for path in documents.list_documents() if path.parent.name != "adr"]
    counts = [tutorials.count_commands(path.read_text("utf-8")) for path in pages]
    played, idle = (sum(column) for column in zip(*counts))
    assert played > 180 and idle <= MOST_NOT_PLAYED * (played + idle), (played, idle)


def test_each_world_has_a_block():
    keys = [
        make_key(path, block)
        for path in PAGES
        for block in tutorials.list_blocks(path.read_text("utf-8"))
    ]
    for table in (WORLDS, ELSEWHERE):
        assert [one for one in table if not any(key.startswith(one) for key in keys)] == []
    for key, name in ELSEWHERE.items():
        page, word, *_ = key.split()
        text = (ROOT / name).read_text()
        assert page + ".md" in text or '"%s"' % word in text, key


def make_key(path: Path, block) -> str:
    return "%s %s" % (path.stem, block.body.partition("\n")[0] + "\n")


def list_blocks() -> list:
    """Return (key, steps of the files above, block) of each block that is played here."""
    found = []
    for path in PAGES:
        files = []
        for block in tutorials.list_blocks(path.read_text("utf-8")):
            if block.language in PLAYED:
                key = make_key(path, block)
                if not block.name and not find_key(key, ELSEWHERE):
                    found.append(pytest.param(key, list(files), block, id=key.strip()))
            elif block.name:
                files += tutorials.read_block(block)
    return found


def find_key(key: str, table) -> str:
    """Return which key of *table* is the beginning of *key*, or ""."""
    return max((one for one in table if key.startswith(one)), key=len, default="")


@pytest.mark.parametrize("key, files, block", list_blocks())
def test_a_block_is_what_happens(key, files, block, tmp_path):
    make = WORLDS.get(find_key(key, WORLDS))
    with make(tmp_path) if make else contextlib.nullcontext((tmp_path, World())) as (here, one):
        tutorials.play_steps([*files, *tutorials.read_block(block)], here, one)
