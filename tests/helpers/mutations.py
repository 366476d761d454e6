"""Broken variants of what makers write, for fuzzing: a seed gives the same ones on every machine.

``mutated`` changes the characters of a text; most of what it gives is refused by the parser.
``reshaped`` changes the values of a text that has been parsed, and writes it again, so that the
checks behind the parser are reached as well.
"""

import ast
import copy
import functools
import json
import pickle
import random
import tomllib

import tomli_w
import yaml

# Tokens that mean something where they land: of each language, and what all of them find hard.
HARD = [
    "\0",
    "\t",
    "\r\n",
    "\x1b[31m",
    "\u202e",
    "\ufeff",
    "\ud7ff",
    "\U0010ffff",
    "\x85",
    "\u2028",
    "9" * 30,
    "-1",
    "1e999",
    "0x",
    "''",
    '""',
    "null",
    "true",
]
TOKENS = {
    "yaml": [
        "{{",
        "}}",
        "[",
        "]",
        "{",
        "}",
        ": ",
        "- ",
        "? ",
        "&a ",
        "*a",
        "<<: *a",
        "!!int ",
        "!x ",
        "|",
        ">-",
        "%",
        "@",
        "`",
        "---\n",
        "...\n",
        "#",
        '"\\ud800"',
        '"\\x00"',
        '"\\U0010ffff"',
        "~",
        ".nan",
        ".inf",
        "0o777",
        "2026-01-01",
        "a: b: c",
        "\n  ",
        "\n\n",
        "claw://local/tool/x",
        "./tools/*.yaml",
    ],
    "toml": [
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        " = ",
        ".",
        '"""',
        "'''",
        "\\",
        "\\ud800",
        "inf",
        "nan",
        "1979-05-27",
        "0b1",
        "a.b.c = 1\n",
        "[pins]\n",
        "[[pins]]\n",
        "pins = 1\n",
        "\n",
        ",",
        "#",
    ],
    "py": [
        "(",
        ")",
        "def f(",
        ":",
        "\n    ",
        "*",
        "**",
        "/",
        "=",
        "->",
        "'\\ud800'",
        "'\\x00'",
        "b'x'",
        "1j",
        "...",
        "None",
        "lambda: 0",
        "yield",
        "async ",
        "await ",
        "Literal['a']",
        "list[int]",
        "dict[str, int]",
        "int | str",
        "Optional[",
        "float('nan')",
        "1 << 70",
        "f'{x}'",
        '"""',
        "@x\n",
        "board",
        '\n\ndef g(x: int = 1) -> int:\n    "x"\n',
    ],
}
# Values that a reader of parsed data may not have thought of; of Python, expressions.
VALUES = [
    True,
    False,
    0,
    -1,
    1,
    2,
    65536,
    2**31,
    2**63 - 1,
    -(2**63),
    0.5,
    -0.0,
    1e300,
    "",
    " ",
    "x",
    "0",
    "-1",
    "1e9",
    "a" * 300,
    "\x7f",
    "\x1b[2J",
    "\u202eabc",
    "\U0001f980",
    "a\nb",
    "..",
    "/",
    "/workspace/../etc",
    "*",
    "**",
    "[",
    "(?=a)",
    "^(a+)+$",
    "\\",
    "%s",
    "{x}",
    "$ref",
    "http://[::1",
    "https://user:pw@h:99999/",
    "127.0.0.1/33",
    "1.2.3-\u0661",
    "9999999d",
    "5m",
    "61 * * * *",
    "* * 31 2 *",
    "builtin:reflex",
    "claw://local/tool/echo",
    [],
    [[]],
    [None],
    [1, "a"],
    {},
    {"": None},
    {"a": {"b": []}},
]
REFERENCES = [
    "./claw.yaml",
    "claw.yaml",
    "./tools",
    "./tools/*.yaml",
    "**",
    "**/*",
    "**/*.yaml",
    "*",
    "?",
    "[",
    "[!]",
    "*.[y]aml",
    "../x.yaml",
    "../*.yaml",
    "./loop.yaml",
    "./dangling.yaml",
    "./out.yaml",
    "./pipe.yaml",
    "./folder.yaml",
    "./bytes.yaml",
    "./empty.yaml",
    "./list.yaml",
    "./deep.yaml",
    "/etc/passwd",
    "/dev/zero",
    "~",
    "~root/x",
    ".",
    "..",
    "",
    " ",
    "\0",
    "a\0b",
    "\\",
    "a" * 300,
    "a/" * 400 + "b",
    "./x.yaml\n",
    "file:///etc/passwd",
    "C:\\x",
    "mcp://x",
    "claw://",
    "claw:///",
    "claw://local",
    "claw://local/tool/",
    "claw://local/tool/x@",
    "claw://local/policy/x",
    "claw://registry/clawlite/read-file@1.0.0",
    "claw://registry/clawlite/read-file",
    "claw://registry/none/x@1.0.0",
    "claw://registry/clawlite/" + "x" * 300 + "@1.0.0",
    "claw://local/tool/%00",
    "claw://local/tool/\u0661",
    "claw://x/y/z@1.0.0",
    "./policy.yaml",
    "./tools.py",
    "./clawlite.toml",
]
EXPRESSIONS = [
    "-1",
    "[1, 'a']",
    "{'a': 1}",
    "{1, 2}",
    "'\\x7f'",
    "2**80",
    "x.y[z]",
    "(1, 2)",
    "-'a'",
    "1e999",
    "str",
    "list",
    "dict",
]


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
        return (
            text[:at]
            + chr(
                draw.choice(
                    (draw.randrange(32, 127), draw.randrange(32), draw.randrange(128, 0xD800))
                )
            )
            + text[at + 1 :]
        )
    if what in (3, 4):
        return (
            text[:at]
            + draw.choice(HARD if what == 3 and draw.random() < 0.5 else TOKENS[kind])
            + text[at:]
        )
    words = text.split(" ")
    number = draw.randrange(len(words))
    if what == 5:  # one word by another, or by a token
        words[number] = draw.choice(
            (draw.choice(words), draw.choice(TOKENS[kind]), draw.choice(HARD))
        )
        return " ".join(words)
    lines = text.split("\n")
    here, there = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[here], lines[there] = lines[there], lines[here]
    return "\n".join(lines)


def reshaped(text: str, kind: str, seed: int) -> str:
    """Return *text* with 1 to 3 of its values replaced, dropped, moved or doubled.

    text  valid, and of *kind* ("yaml", "toml" or "py"); seed draws the changes
    """
    draw = random.Random(f"{kind} shape {seed}")
    if kind == "py":
        return _reshaped_python(text, draw)
    root = [_parsed(text, kind)]
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        reshape(root, draw)
    if kind == "toml":
        return tomli_w.dumps(_for_toml(root[0]) if isinstance(root[0], dict) else {"pins": 1})
    return json.dumps(root[0], ensure_ascii=draw.random() < 0.5, indent=1)  # JSON is YAML


@functools.lru_cache(256)
def _pickled(text: str, kind: str) -> bytes:
    return pickle.dumps(tomllib.loads(text) if kind == "toml" else yaml.safe_load(text))


def _parsed(text: str, kind: str):
    """Return the data in *text*, the caller's own: most variants are made of few texts."""
    return pickle.loads(_pickled(text, kind))


def referring(text: str, seed: int) -> str:
    """Return the YAML *text* with 1 to 3 of its texts replaced by references, as *seed* draws them.

    Most of those replaced named a file or a URI.
    """
    draw = random.Random(f"reference {seed}")
    root = [_parsed(text, "yaml")]
    for _ in range(draw.choice((1, 1, 2, 3))):
        texts = [place for place in _places(root) if isinstance(place[0][place[1]], str)]
        named = [place for place in texts if place[0][place[1]].startswith(("./", "claw://"))]
        inside, key = draw.choice(named if named and draw.random() < 0.8 else texts)
        other = draw.choice(REFERENCES)
        inside[key] = other if draw.random() < 0.7 else _joined(inside[key], other, draw)
    return json.dumps(root[0], ensure_ascii=False, indent=1)


def _joined(text: str, other: str, draw) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice((other, draw.choice("*?[]/\\.@:%#\0 ~"))) + text[at:]


def _places(root: list) -> list:
    """Return [(container, key or index)] of every value below *root*."""
    found, todo = [], [root]
    while todo:
        inside = todo.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        found += [(inside, key) for key in keys]
        todo += [inside[key] for key in keys if isinstance(inside[key], (dict, list))]
    return found


def flipped(data: bytes, draw) -> bytes:
    """Return *data* with 1 to 4 of its bytes changed, added or lost, as *draw* (a Random) says."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at:at] = bytes([draw.randrange(256)])
        elif kind == 2:
            del data[at : at + draw.randint(1, 8)]
        elif kind == 3:
            data[at:at] = data[at : at + draw.randint(1, 40)]
        elif draw.random() < 0.1:
            del data[at:]
        elif data:
            data[at % len(data)] = draw.choice(
                (0, 1, 0x18, 0x1B, 0x40, 0x5F, 0x7F, 0x80, 0x9F, 0xA0, 0xF6, 0xFF)
            )
    return bytes(data)


def reshape(root: list, draw) -> None:
    """Replace, drop, move or double one value in the only item of *root*, as *draw* (a Random)
    says.
    """
    places = _places(root)
    inside, key = draw.choice(places)
    what = draw.randrange(6)
    if what <= 2:
        inside[key] = copy.deepcopy(draw.choice(VALUES) if what else draw.choice([None, *VALUES]))
    elif what == 3 and inside is not root:
        del inside[key]
    elif what == 4:
        there, other = draw.choice(places)
        inside[key] = copy.deepcopy(there[other])
    elif isinstance(inside, dict):
        other = draw.choice(places)[1]
        inside[other if isinstance(other, str) else draw.choice(HARD)] = copy.deepcopy(inside[key])
    else:
        inside.append(copy.deepcopy(inside[key]))


def _for_toml(data):
    if isinstance(data, dict):
        return {key: _for_toml(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [_for_toml(value) for value in data if value is not None]
    return data


def _reshaped_python(text: str, draw) -> str:
    """Return *text* with parts of its syntax tree exchanged for others of it, or for tokens."""
    tree = ast.parse(text)
    spare = [
        ast.parse(token, mode="eval").body for token in TOKENS["py"] + EXPRESSIONS if _parses(token)
    ]
    for _ in range(draw.choice((1, 1, 2, 3))):
        fields = [
            (node, name)
            for node in ast.walk(tree)
            for name, value in ast.iter_fields(node)
            if isinstance(value, (ast.expr, list)) and value
        ]
        node, name = draw.choice(fields)
        value = getattr(node, name)
        if isinstance(value, ast.expr):
            others = [other for other in ast.walk(tree) if isinstance(other, ast.expr)]
            new = draw.choice(spare if draw.random() < 0.6 else others)
            setattr(node, name, copy.deepcopy(new))
        elif draw.random() < 0.5 and len(value) > 1:
            value.pop(draw.randrange(len(value)))
        else:
            value.append(copy.deepcopy(draw.choice(value)))
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, TypeError, AttributeError, RecursionError):  # it has no spelling
        return text


def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
        return True
    except (SyntaxError, ValueError):
        return False
