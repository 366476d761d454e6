"""Examples of README and of the pages directly below docs/ (tutorials and how-to pages are played:
test_tutorials.py): data fits its schema, code compiles, and each command is one that there is.

1. TOML is of clawlite.toml or of the rules file; YAML is a document, or a part of one, which is put
   where its keys belong.
2. Of a command the verb, the options and the number of words are looked at: nothing is run.
"""

import ast
import json
import re
import shlex
import textwrap
import tomllib

import jsonschema
import pytest
import yaml
from agents import ROOT

from clawlite import command_line
from clawlite.host.builder import editor_schemas

BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.M | re.S)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCHEMAS = {what: editor_schemas.make(what) for what in ("claw", "clawlite", "rules")}
COMMAND = re.compile(r"^(?:\$ |> )?(?:[A-Z_]+=\S+ )*(clawlite [^\n]*)", re.M)
PIPED = re.compile(r"\| (clawlite [^|\n]*)")
HEAD = {"claw": "0.3.0", "metadata": {"name": "x", "version": "1.0.0"}}


def list_blocks(*languages) -> list:
    """Return the text of each block in one of *languages*, with its page and line as its id."""
    found = []
    for path in PAGES:
        text = path.read_text("utf-8")
        for match in BLOCK.finditer(text):
            if match[2] in languages:
                line = text.count("\n", 0, match.start()) + 1
                place = "%s:%d" % (path.name, line)
                found.append(pytest.param(textwrap.dedent(match[3]), id=place))
    return found


def list_problems(schema: dict, value) -> list:
    """Return what is wrong with *value*, but not what a part leaves out."""
    validator = jsonschema.Draft202012Validator(schema)
    return [
        "%s: %s" % (one.json_path, one.message)
        for one in flatten(validator.iter_errors(value))
        if one.validator != "required"
    ]


def flatten(errors) -> list:
    """Return *errors*, and in the place of "fits none of these" what the nearest one says."""
    found = []
    for one in errors:
        if one.context:
            ways: dict = {}
            for part in one.context:
                ways.setdefault(part.schema_path[0], []).append(part)
            least = min((flatten(way) for way in ways.values()), key=count_real)
            found += least
        else:
            found.append(one)
    return found


def count_real(errors: list) -> int:
    return sum(one.validator != "required" for one in errors)


@pytest.mark.parametrize("text", list_blocks("toml"))
def test_settings_fit_their_schema(text):
    value = tomllib.loads(text)
    ways = [list_problems(SCHEMAS[what], value) for what in ("clawlite", "rules")]
    assert min(ways, key=len) == []


def place_fragment(value) -> dict:
    """Return the document that a part belongs to."""
    if isinstance(value, list) and "inline" in value[0]:
        value = {"channels": value}
    elif isinstance(value, list):
        value = {"memory": {"inline": {"stores": value}}}
    if "claw" in value:
        return value
    kind = "Swarm" if "coordination" in value else "Claw"
    return {**HEAD, "kind": kind, "spec": value.get("spec", value)}


@pytest.mark.parametrize("text", list_blocks("yaml"))
def test_manifests_fit_their_schema(text):
    assert list_problems(SCHEMAS["claw"], place_fragment(yaml.safe_load(text))) == []


@pytest.mark.parametrize("text", list_blocks("json", "python"))
def test_data_and_code_can_be_read(text):
    try:
        json.loads(text)
    except ValueError:
        ast.parse(text)


def list_commands() -> list:
    """Return the words behind ``clawlite`` of each command in a block."""
    found = []
    for block in list_blocks("", "sh", "console", "text"):
        (text,) = block.values
        for line in COMMAND.findall(text) + PIPED.findall(text):
            line = line.partition(" #")[0].partition(" | ")[0].rstrip(" &")
            line = re.split(r"  +", line)[0]  # a list of commands, with what each does
            if re.match(r"clawlite [a-z-]+(\s|$)", line):  # and not "clawlite: an error"
                words = shlex.split(line)[1:]
                found.append(pytest.param(words, id="%s %s" % (block.id, " ".join(words))))
    return found


@pytest.mark.parametrize("words", list_commands())
def test_commands_are_there(words):
    verb, rest = command_line.find([word for word in words if word not in ("|", "...")])
    command_line.parse(verb, rest)
