"""Broken variants of a text, for fuzzing what makers write: the same seed gives the same variants on every machine."""
import random

# Tokens that mean something where they land: of each language, and what all of them find hard.
HARD = ["\0", "\t", "\r\n", "\x1b[31m", "\u202e", "\ufeff", "\ud7ff", "\U0010ffff", "\x85", "\u2028", "9" * 30, "-1", "1e999", "0x", "''", '""', "null", "true"]
TOKENS = {
    "yaml": ["{{", "}}", "[", "]", "{", "}", ": ", "- ", "? ", "&a ", "*a", "<<: *a", "!!int ", "!x ", "|", ">-", "%", "@", "`", "---\n", "...\n", "#",
             '"\\ud800"', '"\\x00"', '"\\U0010ffff"', "~", ".nan", ".inf", "0o777", "2026-01-01", "a: b: c", "\n  ", "\n\n", "claw://local/tool/x", "./tools/*.yaml"],
    "toml": ["[", "]", "[[", "]]", "{", "}", " = ", ".", '"""', "'''", "\\", "\\ud800", "inf", "nan", "1979-05-27", "0b1", "a.b.c = 1\n", "[pins]\n", "[[pins]]\n",
             "pins = 1\n", "\n", ",", "#"],
    "py": ["(", ")", "def f(", ":", "\n    ", "*", "**", "/", "=", "->", "'\\ud800'", "'\\x00'", "b'x'", "1j", "...", "None", "lambda: 0", "yield", "async ", "await ",
           "Literal['a']", "list[int]", "dict[str, int]", "int | str", "Optional[", "float('nan')", "1 << 70", "f'{x}'", '"""', "@x\n", "board", "\n\ndef g(x: int = 1) -> int:\n    \"x\"\n"],
}


def mutated(text: str, kind: str, seed: int) -> str:
    """Return *text* with 1 to 4 changes, drawn by *seed*; *kind* is a key of ``TOKENS``."""
    draw = random.Random(f"{kind} {seed}")
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        text = _changed(text, kind, draw)
    return text


def _changed(text: str, kind: str, draw) -> str:
    at = draw.randrange(len(text) + 1)
    end = min(len(text), at + draw.choice((1, 1, 2, 5, 20, 80)))
    what = draw.randrange(7)
    if what == 0:
        return text[:at] + text[end:]
    if what == 1:
        return text[:end] + text[at:]
    if what == 2:
        return text[:at] + chr(draw.choice((draw.randrange(32, 127), draw.randrange(32), draw.randrange(128, 0xd800)))) + text[at + 1:]
    if what in (3, 4):
        return text[:at] + draw.choice(HARD if what == 3 and draw.random() < 0.5 else TOKENS[kind]) + text[at:]
    words = text.split(" ")
    number = draw.randrange(len(words))
    if what == 5:                       # one word by another, or by a token
        words[number] = draw.choice((draw.choice(words), draw.choice(TOKENS[kind]), draw.choice(HARD)))
        return " ".join(words)
    lines = text.split("\n")
    here, there = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[here], lines[there] = lines[there], lines[here]
    return "\n".join(lines)
