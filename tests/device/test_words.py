"""Words as a board has them are words as a Pi has them, character by character, where a board
knows what they are.
"""

import json
import os
import subprocess
from pathlib import Path

import pico_stack

from clawlite.linux.memory.search import words

STORES = Path(__file__).parents[2] / "firmware-host/micropython/stores"
SPANS = (
    (1, 0x180),
    (0x218, 0x21C),
    (0x300, 0x34F),
    (0x350, 0x370),
    (0x386, 0x387),
    (0x388, 0x38B),
    (0x38E, 0x3A2),
    (0x3A3, 0x3CF),
    (0x400, 0x460),
    (0x5D0, 0x5EB),
    (0x2010, 0x2040),
    (0x4E00, 0x4E80),
    (0xAC00, 0xAC00),
    (0x1F600, 0x1F640),
)
OTHERS = "¼½¾ĲĳĿŀŉ"  # two letters, or none: docs/memory.md
WHOLE = {"日本 と 語。": ["日本", "と", "語"], "a😀b": ["a", "b"]}
SCRIPT = """
import json, sys
from words import words
print(json.dumps([[str(word, "utf-8") for word in words(text)] for text in json.loads(sys.stdin.read())]))
"""  # noqa: E501


def test_each_character_that_a_board_knows(micropython):
    texts = [
        "A%sy" % chr(n) for first, last in SPANS for n in range(first, last) if chr(n) not in OTHERS
    ]
    texts += [
        "Grüße aus Köln, 3 m²!",
        "L'été — «déjà» vu…",
        "ΤΙ ΚΆΝΕΤΕ; Ёлка и Йод",
        "snake_case-words 2026-11-22",
        "",
        " ",
        "日本 と 語。",
        "a😀b",
        "żółw ŁÓDŹ",
    ]
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script(SCRIPT)],
        input=json.dumps(texts, ensure_ascii=False).encode(),
        capture_output=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{pico_stack.compiled(STORES)}:.frozen"),
    )
    assert done.returncode == 0, done.stderr
    for text, found in zip(texts, json.loads(done.stdout)):
        # a board divides no script, and an emoji is no word there (docs/memory.md)
        expected = WHOLE.get(text) or (
            ["a", "y"]
            if text[1:2] >= "\U0001f600"
            else [text.lower()]
            if text[:1] == "A" and text[1:2] >= "\u4e00"
            else words(text)
        )
        assert found == expected, (text, found, expected)
