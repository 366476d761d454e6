"""clawlite.toml: a schema with lines, did-you-mean, refusals by name, and no secrets."""

import re

import pytest
from agents import ROOT

from clawlite.host.base.document import MAX_BYTES
from clawlite.host.base.problems import ManifestErrors, Problems
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.documents.sources import Sources
from clawlite.host.manifest import settings

TOML_HINT = " - check this line: a text needs quotes, a list or a table its closing bracket"
FULL = """\
# the greenhouse
reflex = "rules.toml"
replay = "demo/turns.jsonl"

[console]
wire = "stdio"
prompt = "greenhouse> "

[[pins]]
name = "soil"
pin = 26
kind = "adc"
simulate = { start = 30000, per_second = -5 }

[[pins]]
name = "pump"
pin = 15
kind = "output"
[pins.simulate]
raises = "soil"
per_second = 400
"""


def load(folder, text=None):
    """Return (Settings, [text of each problem without the folder])."""
    if text is not None:
        (folder / "clawlite.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    problems = Problems()
    found = settings.load(Sources(str(folder)), problems)
    return found, [problem.text().replace(str(folder) + "/", "") for problem in problems.found]


def test_a_full_file(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "rules.toml").write_text("r")
    (tmp_path / "demo" / "turns.jsonl").write_text("t")
    found, problems = load(tmp_path, FULL)
    assert problems == []
    assert (found.reflex_text, found.replay_text, found.replay_file) == (
        "r",
        "t",
        str(tmp_path / "demo" / "turns.jsonl"),
    )
    assert found.console.prompt == "greenhouse> "
    assert [(pin.name, pin.pin, pin.kind) for pin in found.pins] == [
        ("soil", 26, "adc"),
        ("pump", 15, "output"),
    ]
    assert (found.pins[0].simulate.start, found.pins[0].simulate.per_second) == (30000, -5)
    assert (found.pins[1].simulate.raises, found.pins[1].simulate.start) == ("soil", 0)
    assert found.where("pins", 1, "simulate", "raises") == (str(tmp_path / "clawlite.toml"), 20)


def test_defaults_without_a_file(tmp_path):
    found, problems = load(tmp_path)
    assert (
        problems == []
        and found.pins == []
        and found.reflex_text is None
        and found.console.prompt == "> "
    )


@pytest.mark.parametrize(
    "text, said",
    [
        ('reflx = "a"', 'clawlite.toml:1: reflx: unknown field - did you mean "reflex"?'),
        (
            '[console]\nwire = "uart"',
            'clawlite.toml:2: console.wire: expected "stdio", found "uart"',
        ),
        (
            "[console]\nprompt = 1",
            'clawlite.toml:2: console.prompt: expected text, found 1 - put it in quotes: "1"',
        ),
        (
            '[[pins]]\nname = "a"\npin = -1\nkind = "adc"',
            "clawlite.toml:3: pins[0].pin: expected a whole number from 0 to 65535, found -1",
        ),
        (
            '[[pins]]\nname = "a"\npin = inf\nkind = "adc"',
            "clawlite.toml:3: pins[0].pin: expected a whole number from 0 to 65535, found inf",
        ),
        (
            '[[pins]]\nname = "a"\npin = 2026-01-01\nkind = "adc"',
            "clawlite.toml:3: pins[0].pin: expected a whole number from 0 to 65535, found a date",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "adc"\nopen_drain = true',
            'clawlite.toml:5: pins[0].open_drain: only a pin of kind "output" has it - remove '
            "open_drain, or change the kind",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "input"\nsafe = 1',
            "clawlite.toml:5: pins[0].safe: only an output has a safe state - remove it, or change "
            "the kind",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "pwm"\nfrequency_hz = [20, 90]\nsafe = 1',
            "clawlite.toml:6: pins[0].safe: the safe state of a tone is silence - remove it",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "output"\nsafe = 2',
            "clawlite.toml:5: pins[0].safe: expected 0 to 1, for this pin, found 2",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "pwm"\nsafe = 65536',
            "clawlite.toml:5: pins[0].safe: expected a whole number from 0 to 65535, found 65536",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "pwm"\npulse_us = [500, 2500]\n'
            "degrees = 180\nsafe = 181",
            "clawlite.toml:7: pins[0].safe: expected 0 to 180, for this pin, found 181",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "output"\nsettle = "5"',
            'clawlite.toml:5: pins[0].settle: expected a time such as "5ms", from 0ms to 500ms, '
            'found "5"',
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "output"\nsettle = "2s"',
            'clawlite.toml:5: pins[0].settle: expected a time such as "5ms", from 0ms to 500ms, '
            'found "2s"',
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "output"\nsettle = "5ms"\nopen_drain = true',
            "clawlite.toml:5: pins[0].settle: the level of an open drain output is not compared "
            "with what was written - remove settle, or open_drain",
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "outputs"',
            'clawlite.toml:4: pins[0].kind: expected "adc", "input", "output" or "pwm", found '
            '"outputs" '
            '- did you mean "output"?',
        ),
        (
            '[[pins]]\nname = "soil_1"\npin = 1\nkind = "adc"',
            "clawlite.toml:2: pins[0].name: expected 1 to 63 letters, digits and hyphens, no "
            'hyphen first, found "soil_1" '
            '- did you mean "soil-1"?',
        ),
        (
            '[[pins]]\nname = "a"\npin = 1\nkind = "adc"\n[[pins]]\nname = "a"\npin = 2\nkind = '
            '"adc"',
            'clawlite.toml:6: pins[1].name: a pin "a" is already there - give one of them another '
            "name",
        ),
        (
            '[[pins]]\nname = "pump"\npin = 1\nkind = "output"\n[[pins]]\nname = "soil"\npin = 2\n'
            "kind = "
            '"adc"\n[[pins]]\nname = "fan"\npin = 3\n'
            'kind = "pwm"\n[pins.simulate]\nraises = "soill"',
            'clawlite.toml:14: pins[2].simulate.raises: expected the name of an ADC pin; "soill" '
            "is no "
            'pin - did you mean "soil"?',
        ),
        (
            '[[pins]]\nname = "pump"\npin = 1\nkind = "output"\nsimulate = {raises = "pump"}',
            'clawlite.toml:5: pins[0].simulate.raises: expected the name of an ADC pin; "pump" is '
            "of "
            'kind "output" - declare a pin of kind "adc"',
        ),
        (
            '[gateway]\nurl = "x"',
            "clawlite.toml:2: gateway.url: unknown field - known here: wire, address, tls, "
            "obeys_stop_of, roles",
        ),
        (
            '[sandbox]\nrelaxed = ["memory"]',
            "clawlite.toml:2: sandbox.relaxed[0]: expected "
            '"cpu_shares", "max_open_files", "max_processes" or '
            '"memory_mb", found "memory" - did you mean "memory_mb"?',
        ),
        (
            '[sandbox]\nenvironment = ["A B"]',
            'clawlite.toml:2: sandbox.environment[0]: expected the name of a variable, found "A B"',
        ),
        (
            '[sandbox]\nwritable = ["notes"]',
            "clawlite.toml:2: sandbox.writable[0]: expected an "
            'absolute path, or $NAME, found "notes"',
        ),
        (
            '[sandbox]\nnamespaces = "docker"',
            'clawlite.toml:2: sandbox.namespaces: expected "bubblewrap", found "docker"',
        ),
        (
            '[search]\nendpoint = "https://s.example/"',
            "clawlite.toml:2: search.endpoint: expected an "
            "http or https URL with {query} in its path or "
            'query, found "https://s.example/"',
        ),
        ("a = [", "clawlite.toml:1: not TOML: invalid value" + TOML_HINT),
        (
            "a = 1\n\nb b = 2",
            "clawlite.toml:3: not TOML: expected '=' after a key in a key/value pair" + TOML_HINT,
        ),
        (
            "a = 1\na = 2",
            "clawlite.toml:2: not TOML: this name is here twice; the first stands above - "
            "remove one, or rename it",
        ),
        (
            b"a = '\xff'",
            "clawlite.toml:1: not UTF-8: byte 0xff at offset 5 - save the file as UTF-8",
        ),
        (
            "a" + ".a" * 40 + " = 1",
            "clawlite.toml: nested deeper than 32 levels - move inner values up, or split the file",
        ),
        (
            'reflex = "no.toml"',
            'clawlite.toml:1: reflex: the file "no.toml" does not exist - write '
            "it, or name one that is there",
        ),
        (
            'reflex = "*.toml"',
            "clawlite.toml:1: reflex: one file stands here, not a glob - name the file in full",
        ),
        (
            'replay = "/etc/hosts"',
            'clawlite.toml:1: replay: "/etc/hosts" is no file beside the manifest - write the '
            "path from "
            "the manifest's folder: ./...",
        ),
    ],
)
def test_one_mistake(tmp_path, text, said):
    assert load(tmp_path, text)[1] == [said]


@pytest.mark.parametrize("name", settings.NOT_BUILT)
def test_every_section_of_the_design_that_is_not_built_is_refused_by_name(tmp_path, name):
    assert load(tmp_path, f"[{name}]\n")[1] == [
        f"clawlite.toml:1: {name}: not supported by this version - remove it"
    ]


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "x"',
        '[console]\ntoken = "x"',
        '[telegram]\nbot-token = "x"',
        '[[pins]]\nPassword = "x"',
        'secrets = ["x"]',
        '[console]\napiKey = "x"',
    ],
)
def test_secrets_never_live_here(tmp_path, text):
    said = [line for line in load(tmp_path, text)[1] if "a secret has no place here" in line]
    assert len(said) == 1 and "secret_ref" in said[0]


def test_all_mistakes_at_once(tmp_path):
    said = load(
        tmp_path,
        'reflx = 1\nmqtt = "X"\n[console]\nwire = 3\n[[pins]]\nname = "a"\n[[pins]]\nname = "a"\n',
    )[1]
    assert len(said) == 8, said


def test_files_may_be_as_large_as_a_manifest(tmp_path, monkeypatch):
    assert Sources.read.__defaults__ == (MAX_BYTES,)
    limit = 1 << 16  # not 64 MiB: a test has little memory
    monkeypatch.setattr(Sources.read, "__defaults__", (limit,))
    for size in (limit - 1, limit, limit + 1):
        fits = size <= limit
        (tmp_path / "r.toml").write_bytes(b"#" * size)
        found, problems = load(tmp_path, 'reflex = "r.toml"')
        assert (problems == []) == fits == (found.reflex_text is not None)
        assert (load(tmp_path, "#" * size)[1] == []) == fits


def test_lines_of_keys():
    found = TOMLDocument(
        b'a.b = 1\n"c d" = """\nx = 1\n[[t]]\n"""\n[e."f.g"]\nh = [\n  1,\n  { i '
        b"= 2 },\n]\n[[t]]\nj = 1\n[t.k]\nl = 1\n[[t]]\nj = 2\n",
        "x",
    )
    lines = [
        (("a", "b"), 1),
        (("c d",), 2),
        (("e",), 6),
        (("e", "f.g", "h"), 7),
        (("e", "f.g", "h", 1, "i"), 7),
        (("t", 0, "j"), 12),
        (("t", 0, "k", "l"), 14),
        (("t", 1, "j"), 16),
        (("nope",), 1),
    ]
    assert [(path, found.where(path)[1]) for path, _ in lines] == lines


def test_damage_gives_settings_or_problems(tmp_path):
    import random

    numbers = random.Random(1)
    for _ in range(600):
        data = bytearray(FULL.encode())
        for _ in range(numbers.randint(1, 3)):
            data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        try:
            load(
                tmp_path,
                bytes(data[: numbers.randrange(len(data) + 1)] if numbers.random() < 0.3 else data),
            )
        except ManifestErrors:
            raise AssertionError("problems are collected, not raised")


PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if "```toml" in path.read_text())


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_are_settings(tmp_path, page):
    """Each as it stands: files that it names are not here, and nothing else is wrong."""
    for text in re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL):
        if not text.startswith(("[[rule]]", "[[reading]]")):
            problems = load(tmp_path, text)[1]
            assert all("does not exist" in problem for problem in problems), problems
