"""``clawlite schema``: what editors complete and check by, held to files that ``check`` takes."""

import json
import tomllib

import jsonschema
import pytest
import yaml
from agents import ROOT, clawlite

from clawlite.host.builder import editor_schemas
from clawlite.host.projects.new import new, templates

VALIDATORS = {
    what: jsonschema.Draft202012Validator(editor_schemas.make(what))
    for what in editor_schemas.FILES
}


def find_errors(what: str, data) -> list:
    return ["%s: %s" % (list(e.path), e.message) for e in VALIDATORS[what].iter_errors(data)]


@pytest.mark.parametrize("what", editor_schemas.FILES)
def test_each_is_a_schema_of_2020_12_without_nulls(what):
    made = editor_schemas.make(what)
    jsonschema.Draft202012Validator.check_schema(made)
    assert '"null"' not in json.dumps(made) and "\\\\Z" not in json.dumps(made)


@pytest.mark.parametrize("template", templates())
def test_each_file_of_a_template_names_its_schema_and_fits_it(tmp_path, template):
    project = tmp_path / "one"
    for name in new(str(project), template, offline=True):
        text = (project / name).read_text()
        line = text.split("\n", 1)[0]
        if not name.endswith((".yaml", ".toml")):
            assert ".schema" not in line
            continue
        schema = (project / name).parent / line.replace("#:schema ", "$schema=").split("=", 1)[1]
        what = {one: key for key, one in editor_schemas.FILES.items()}[schema.name]
        assert json.loads(schema.read_text()) == VALIDATORS[what].schema
        data = yaml.safe_load(text) if name.endswith(".yaml") else tomllib.loads(text)
        assert find_errors(what, data) == [], name


@pytest.mark.parametrize("path", sorted((ROOT / "boards").glob("*.toml")), ids=lambda p: p.stem)
def test_a_board_profile_fits(path):
    assert find_errors("board", tomllib.loads(path.read_text())) == []


def make_claw(**spec) -> dict:
    spec = {"identity": "me.yaml", "providers": ["p.yaml"], **spec}
    return {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    "what, data, found",
    [
        ("claw", make_claw(), ""),
        ("claw", make_claw(tols=[]), "'tols' was unexpected"),
        ("claw", make_claw(providers=[]), "[] should be non-empty"),
        ("claw", make_claw(identity=None), "None is not of type"),
        ("claw", make_claw(sandbox={"inline": {"level": "process"}}), ""),
        ("claw", make_claw(sandbox={"inline": {"level": "strict"}}), "'strict' is not one of"),
        ("claw", make_claw(policies=[{"inlin": {}}]), "'inline' is a required property"),
        ("claw", make_claw(tools=[{"inline": {}}]), "'input_schema' is a required property"),
        ("claw", {**make_claw(), "kind": "Clw"}, "'Clw' is not one of"),
        ("claw", {**make_claw(), "claw": "0.4.0"}, "does not match"),
        ("clawlite", {"pins": [{"name": "p", "pin": 4, "kind": "output"}]}, ""),
        ("clawlite", {"pin": []}, "'pin' was unexpected"),
        ("clawlite", {"telegram": {"max_age": "10m"}, "cron": {"missed": "once"}}, ""),
        ("clawlite", {"telegram": {"max_ago": "10m"}}, "'max_ago' was unexpected"),
        ("clawlite", {"pins": {"name": "p"}}, "is not of type 'array'"),
        ("clawlite", {"reflex": {"file": "reflex.toml", "first": True}}, ""),
        ("clawlite", {"reflex": {"first": "yes"}}, "not valid"),
        ("rules", {"rule": [{"name": "w", "at": "07:00", "call": "water"}]}, ""),
        ("rules", {"rule": [{"name": "w", "at": "07:00", "every": "1h"}]}, "valid under each of"),
        ("rules", {"rule": [{"name": "w", "pin": "d", "edge": "up"}]}, "'up' is not one of"),
        ("rules", {"rule": [{"when": "x", "sya": "y"}]}, "'sya' was unexpected"),
        ("rules", {"readings": []}, "'readings' was unexpected"),
        ("board", {"name": "mine"}, "required property"),
    ],
)
def test_what_check_refuses_by_a_field_is_refused(what, data, found):
    errors = "\n".join(find_errors(what, data))
    assert (found in errors) if found else errors == ""


def test_the_command_prints_one_or_writes_them(tmp_path):
    done = clawlite("schema", cwd=tmp_path)
    assert json.loads(done.stdout)["title"].startswith("claw.yaml")
    done = clawlite("schema", "--write", cwd=tmp_path)
    assert "# yaml-language-server: $schema=.schema/claw.json" in done.stdout
    names = sorted(path.name for path in (tmp_path / ".schema").iterdir())
    assert names == ["claw.json", "clawlite.json", "rules.json"]
