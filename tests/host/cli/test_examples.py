"""Examples of README and of the pages directly below docs/ (tutorials and how-to pages are played:
test_tutorials.py): data fits its schema, code compiles, and each command is one that there is.

1. TOML is of clawlite.toml or of the rules file; YAML is a document, or a part of one, which is put
   where its keys belong.
2. Commands are played (test_pages.py, test_tutorials.py).  Of one that is not, the verb, the
   options and the number of words are looked at.
"""

import ast
import json
import shlex
import tomllib

import documents
import jsonschema
import pytest
import tutorials
import yaml
from agents import ROOT

from clawlite import command_line
from clawlite.host.builder import editor_schemas

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCHEMAS = {what: editor_schemas.make(what) for what in ("claw", "clawlite", "rules")}
HEAD = {"claw": "0.3.0", "metadata": {"name": "x", "version": "1.0.0"}}


def list_blocks(*languages) -> list:
    """Return the text of each block in one of *languages*, with its page and line as its id."""
    return [
        pytest.param(block.body, id="%s:%d" % (path.name, block.line))
        for path in PAGES
        for block in tutorials.list_blocks(path.read_text("utf-8"))
        if block.language in languages
    ]


def list_lines(language: str) -> list:
    """Return each line of the blocks in a language."""
    return [line for block in list_blocks(language) for line in block.values[0].splitlines()]


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


@pytest.mark.parametrize("text", [*list_blocks("json"), *list_lines("jsonl")])
def test_data_can_be_read(text):
    json.loads(text)


@pytest.mark.parametrize("text", list_blocks("python"))
def test_code_can_be_read(text):
    ast.parse(text)


def list_commands() -> list:
    """Return the words behind ``clawlite`` of each command that no test plays."""
    found = []
    for path in documents.list_documents():
        for block in tutorials.list_blocks(path.read_text("utf-8")):
            for part in tutorials.list_commands(block) if block.name else ():
                words = shlex.split(tutorials.read_command(part).command)
                if words[0] == "clawlite":
                    found.append(pytest.param(words[1:], id=" ".join(words)))
    return found


@pytest.mark.parametrize("words", list_commands())
def test_commands_that_are_not_played_are_there(words):
    verb, rest = command_line.find(words)
    command_line.parse(verb, rest)
