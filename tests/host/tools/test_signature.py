"""tools.py: signatures to schemas, without an import."""

import textwrap

import pytest

from clawlite.host.base.problems import Problems
from clawlite.host.tools import signature


def read(text):
    problems = Problems()
    source = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    return signature.read(source, "tools.py", problems)[0], [
        problem.text() for problem in problems.found
    ]


def one(text):
    functions, problems = read(text)
    assert problems == [] and len(functions) == 1, problems
    return functions[0]


def parameter(annotation, default=""):
    return one(f'def f(a: {annotation}{" = " + default if default else ""}):\n    "D."\n').schema[
        "properties"
    ]["a"]


def test_a_whole_tool():
    found = one('''
        import machine

        def _helper(x):
            return x

        def water_plants(board, ms: int, zone: Literal["a", "b"] = "a", notes: list[str] | None = None):
            """Open the valve
            for a while.

            Longer words for people.

            ms: how long, in milliseconds,
                from 1 to 10,000
            zone: which bed
            nothing: no such parameter
            """
            yield 10
    ''')  # noqa: E501
    assert (found.name, found.function, found.line) == ("water-plants", "water_plants", 7)
    assert found.description == "Open the valve for a while."
    assert found.is_generator and found.has_board
    assert found.schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["ms"],
        "properties": {
            "ms": {"type": "integer", "description": "how long, in milliseconds, from 1 to 10,000"},
            "zone": {
                "type": "string",
                "enum": ["a", "b"],
                "description": "which bed",
                "default": "a",
            },
            "notes": {"type": ["array", "null"], "items": {"type": "string"}, "default": None},
        },
    }
    assert list(found.schema["properties"]) == ["ms", "zone", "notes"]


@pytest.mark.parametrize(
    "annotation, schema",
    [
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("str", {"type": "string"}),
        ("bool", {"type": "boolean"}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        (
            "dict[str, list[bool]]",
            {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "boolean"}},
            },
        ),
        ("int | None", {"type": ["integer", "null"]}),
        ("None | str", {"type": ["string", "null"]}),
        ("Literal['x']", {"type": "string", "enum": ["x"]}),
        ("typing.Literal[1, 2]", {"type": "integer", "enum": [1, 2]}),
        ("Literal['x'] | None", {"type": ["string", "null"], "enum": ["x", None]}),
    ],
)
def test_annotations(annotation, schema):
    assert parameter(annotation) == schema


@pytest.mark.parametrize(
    "annotation, default, value",
    [
        ("int", "-5", -5),
        ("float", "1", 1),
        ("float", "2.5", 2.5),
        ("str", "'x'", "x"),
        ("bool", "True", True),
        ("list", "[1, 'a']", [1, "a"]),
        ("list[int]", "[1]", [1]),
        ("dict[str, int]", "{'a': 1}", {"a": 1}),
        ("int | None", "None", None),
        ("Literal['x', 'y']", "'y'", "y"),
        ("Literal['x'] | None", "None", None),
    ],
)
def test_defaults(annotation, default, value):
    assert parameter(annotation, default)["default"] == value


KNOWN = (
    "int, float, str, bool, list, list[T], dict, dict[str, T], T | None, Literal[...], "
    'Annotated[T, "text"], or an Enum, TypedDict or dataclass of this file'
)


@pytest.mark.parametrize(
    "line, said",
    [
        (
            "def f(a: set): 'D.'",
            'tools.py:1: f.a: the annotation "set" has no JSON Schema here - use ' + KNOWN,
        ),
        (
            "def f(a: int | str): 'D.'",
            'tools.py:1: f.a: the annotation "int | str" is a union of '
            "types - use one type, or T | None",
        ),
        (
            "def f(a: dict[int, str]): 'D.'",
            'tools.py:1: f.a: the annotation "dict[int, str]" has no JSON Schema here - use '
            + KNOWN,
        ),
        (
            "def f(a: Literal['x', 1]): 'D.'",
            "tools.py:1: f.a: Literal takes texts, or whole numbers, "
            "or True and False, of one kind",
        ),
        (
            "def f(a: int = 'x'): 'D.'",
            "tools.py:1: f.a: the default \"'x'\" is not of the annotated type",
        ),
        (
            "def f(a: int = True): 'D.'",
            'tools.py:1: f.a: the default "True" is not of the annotated type',
        ),
        (
            "def f(a: int = None): 'D.'",
            'tools.py:1: f.a: the default "None" is not of the annotated '
            "type - write the type as T | None",
        ),
        (
            "def f(a: float = 1e999): 'D.'",
            'tools.py:1: f.a: the default "1e309" is not of the annotated type',
        ),
        (
            "def f(a: list = (1,)): 'D.'",
            'tools.py:1: f.a: the default "(1,)" is not of the annotated type',
        ),
        (
            "def f(a: list[int] = ['x']): 'D.'",
            "tools.py:1: f.a: the default \"['x']\" is not of the annotated type",
        ),
        (
            "def f(a: int = LIMIT): 'D.'",
            'tools.py:1: f.a: the default "LIMIT" is no literal - write the value itself',
        ),
        (
            "def f(a: int = 9223372036854775808): 'D.'",
            'tools.py:1: f.a: the default "9223372036854775808" is not of the annotated type',
        ),
        (
            "def f(a): 'D.'",
            "tools.py:1: f.a: this parameter has no annotation - write its type: a: int",
        ),
        (
            "def f(*a): 'D.'",
            "tools.py:1: f: *a: a tool's parameters are known by name - name each parameter",
        ),
        (
            "def f(**a): 'D.'",
            "tools.py:1: f: **a: a tool's parameters are known by name - name each parameter",
        ),
        (
            "def f(a: int, /): 'D.'",
            'tools.py:1: positional-only parameters ("/") do not run on a '
            'MicroPython board - remove the "/"',
        ),
        (
            "def f(): pass",
            "tools.py:1: f: a public function is a tool and needs a docstring: the "
            "model reads it - describe it, or begin its name "
            "with an underscore",
        ),
        (
            "async def f(): 'D.'",
            "tools.py:1: async def does not run on a MicroPython board - write a "
            "plain def; a tool that waits is a generator "
            "that yields between its steps",
        ),
        (
            "def _f(x):\n  match x:\n    case 1: pass",
            "tools.py:2: match does not run on a MicroPython board - use if and elif",
        ),
        (
            "def _f(a, /): pass",
            'tools.py:1: positional-only parameters ("/") do not run on a '
            'MicroPython board - remove the "/"',
        ),
        (
            "def f(): 'D.'\ndef f(): 'D.'",
            "tools.py:2: f: this name is already defined on line 1 - rename one of them",
        ),
        (
            "def " + "f" * 64 + "(): 'D.'",
            "tools.py:1: " + "f" * 64 + ": a tool's name has 1 to 63 "
            "letters, digits and underscores "
            "- rename the function",
        ),
        (
            "def \u00e4(): 'D.'",
            'tools.py:1: ["\u00e4"]: a tool\'s name has 1 to 63 letters, digits '
            "and underscores - rename the function",
        ),
        ("x = 1\ndef f(:", "tools.py:2: not Python: invalid syntax - mend that line"),
        (
            "x = '\0'",
            "tools.py: not Python: source code string cannot contain null bytes - mend that line",
        ),
    ],
)
def test_problems_say_what_to_do(line, said):
    assert read(line)[1] == [said]


def test_nothing_is_run():
    found = one("raise SystemExit('this file was run')\ndef f():\n    'D.'\n")
    assert found.schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_yield_of_an_inner_function_is_not_its_own():
    assert not one(
        "def f():\n  'D.'\n  def g():\n    yield 1\n  return [x for x in g()]\n"
    ).is_generator
    assert one(
        "def f():\n  'D.'\n  for x in (1, 2):\n    if x:\n      yield from (x,)\n"
    ).is_generator


def test_only_a_bare_board_is_given_by_the_runtime():
    found = one("def f(board: str, *, deep: int = 1):\n  'D.'\n")
    assert (
        not found.has_board
        and found.schema["required"] == ["board"]
        and "deep" in found.schema["properties"]
    )


def test_all_problems_of_a_file_at_once():
    assert len(read("def f(a, b: set, *c):\n  pass\nasync def g(): pass\n")[1]) == 5


def test_the_number_of_tools_is_bounded():
    for count, fits in (
        (signature.MAX_TOOLS - 1, True),
        (signature.MAX_TOOLS, True),
        (signature.MAX_TOOLS + 1, False),
    ):
        assert (read("".join(f"def f{i}(): 'D.'\n" for i in range(count)))[1] == []) == fits


def test_damage_gives_functions_or_problems():
    import random

    numbers = random.Random(1)
    text = (
        b'def water(board, ms: int = 5, z: Literal["a"] = "a") -> dict:\n    """Open.\n\n    '
        b'ms: how long\n    """\n    yield {"a": [1, -2.5]}\n'
    )
    for end in range(len(text)):
        read(text[:end])
    for _ in range(1500):
        data = bytearray(text)
        for _ in range(numbers.randint(1, 3)):
            data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        read(bytes(data))
    read("(" * 5000)
    read("x = " + "-" * 50_000 + "1")
    read("def f(a: " + "list[" * 500 + "int" + "]" * 500 + "): 'D.'")
    read("def f(a: int = " + "[" * 90 + "]" * 90 + "): 'D.'")


TYPES = """
import enum
from dataclasses import dataclass, field
from typing import Annotated, NotRequired, Optional, TypedDict, Union

class Mode(enum.Enum):
    DRY = "dry"
    WET = "wet"

class Bed(TypedDict):
    number: int
    name: NotRequired[str]

class Loose(TypedDict, total=False):
    bed: Bed

@dataclass
class Plan:
    mode: Mode
    seconds: int = 3
    beds: list[int] = field(default_factory=list)

def f(%s):
    'D.'
"""
BED = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "name": {"type": "string"}},
    "additionalProperties": False,
    "required": ["number"],
}
MODE = {"type": "string", "enum": ["dry", "wet"]}


@pytest.mark.parametrize(
    "annotation, schema",
    [
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("Union[str, None]", {"type": ["string", "null"]}),
        ("Optional[Mode]", {"type": ["string", "null"], "enum": ["dry", "wet", None]}),
        ("Annotated[int, 'how long', 5]", {"type": "integer", "description": "how long"}),
        ("'int'", {"type": "integer"}),
        ("Mode", MODE),
        ("list[Mode]", {"type": "array", "items": MODE}),
        ("Bed", BED),
        (
            "Loose",
            {"type": "object", "properties": {"bed": BED}, "additionalProperties": False},
        ),
        (
            "Plan",
            {
                "type": "object",
                "properties": {
                    "mode": MODE,
                    "seconds": {"type": "integer", "default": 3},
                    "beds": {"type": "array", "items": {"type": "integer"}},
                },
                "additionalProperties": False,
                "required": ["mode"],
            },
        ),
    ],
)
def test_types_of_the_standard_library_have_schemas(annotation, schema):
    assert one(TYPES % ("a: " + annotation)).schema["properties"]["a"] == schema


def test_a_default_may_be_a_member_of_an_enum():
    found = one(TYPES % "a: Mode = Mode.WET").schema
    assert found["properties"]["a"] == {**MODE, "default": "wet"} and "required" not in found


def test_an_enum_that_has_no_schema_is_a_problem_where_it_stands():
    source = "class Mode(Enum):\n    A = auto()\ndef f(a: Mode): 'D.'\n"
    assert read(source)[1] == [
        'tools.py:1: f.a: the values of the Enum "Mode" are not all texts, or all whole numbers - '
        'write each value: DRY = "dry"'
    ]
    # one that no tool uses is the file's own affair
    assert read("class Mode(Enum):\n    A = auto()\ndef f(a: int): 'D.'\n")[1] == []


@pytest.mark.parametrize(
    "body, fields",
    [
        ("-> dict:\n    return {'a': 1, 'b': 2}", {"a", "b"}),
        (":\n    if 1: return {'a': 1}\n    return {'c': 2}", {"a", "c"}),
        ("-> dict:\n    return made()", None),
        ("-> dict:\n    return {**made()}", None),
        (":\n    return 5 if x else {'a': 1}", None),
        ("-> str:\n    return made()", set()),
        ("-> Bed:\n    return made()", {"number", "name"}),
        ("-> 'Bed':\n    return made()", {"number", "name"}),
        (":\n    def inner(): return {'x': 1}\n    return {'a': inner()}", {"a"}),
    ],
)
def test_the_fields_of_a_result_are_known_as_far_as_the_text_tells(body, fields):
    source = TYPES.split("def f")[0] + "def f() " + body.replace(":\n", ":\n    'D.'\n", 1)
    assert one(source).fields == fields
