"""Board profiles: those of the package are right, a maker's own are checked, and an image that a
board cannot honour is refused.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from agents import clawlite

from clawlite.core.base.errors import ClawError
from clawlite.core.image import image as layout
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.boards import profile as board_profile
from clawlite.host.boards import text as board_text
from clawlite.host.builder import build, check
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest
from clawlite.host.sandbox import sandboxes
from clawlite.host.tools import tool_records
from clawlite.protocols.image import features

ROOT = Path(__file__).resolve().parents[3]
NAMES = [
    "esp32",
    "esp32-c3",
    "esp32-c6",
    "esp32-s3",
    "esp32-s3-psram",
    "linux",
    "pico",
    "pico-w",
    "pico2",
    "pico2-w",
    "rpi-3b-plus",
    "rpi-4",
    "rpi-5",
    "rpi-zero-2-w",
    "rpi-zero-w",
    "sim",
]
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: sample, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are a sample." } }
  providers:
    - { inline: { name: first, protocol: %s, endpoint: "%s", model: m, auth: { type: none } } }
  channels:
    - { inline: { type: cli, transport: stdio, auth: { secret_ref: C }, processing: { max_message_length: %d } } }
  sandbox:
    inline:
      level: %s
      resource_limits:
        %s: %d
  policies:
    - inline: { rules: [{ id: all, action: allow, scope: all }] }
"""  # noqa: E501
REFLEX = ("custom", "builtin:reflex", 4096, "none", "max_output_bytes", 1024)


def project(folder: Path, *values, pins: str = "", **files: str) -> Path:
    """Write a manifest with *values* in CLAW; *pins*: rows of (number, kind)."""
    (folder / "claw.yaml").write_text(CLAW % (values or REFLEX))
    (folder / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n'
        + "".join(
            '[[pins]]\nname = "p%d"\npin = %s\nkind = "%s"\n' % (index, *pin.split())
            for index, pin in enumerate(pins.split(", ") if pins else ())
        )
    )
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hello"\nsay = "Hello!"\n')
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def refused(folder: Path, board: str, run=build.build) -> list:
    """Return the problems of a build for *board*, a line each, without the folder."""
    with pytest.raises(ManifestErrors) as caught:
        run(str(folder), board=board)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


# -- the profiles of the package


def test_the_boards_that_are_known():
    assert boards.names() == NAMES == [profile.name for profile in boards.load_all()]


def test_the_loader_of_boards_takes_what_is_declared_for_them():
    source = ROOT / "firmware-host/micropython/runtime/loader.py"
    tables = [
        ast.literal_eval(node.value)
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "ABILITIES"
    ]
    assert [tuple(table.split()) for table in tables] == [features.BOARDS]
    assert len({ability.name for ability in features.ABILITIES}) == len(features.ABILITIES)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_says_what_this_version_can_do(name):
    profile = boards.profile(name)
    line = 8192 if profile.runtime == "micropython" else 1048576
    if profile.runtime == "micropython":
        able = features.BOARDS
    else:
        able = features.LINUX
    assert profile.abilities == [
        ability
        for ability in able
        if profile.network.links or ability not in ("http", "https", "lan", "mediated")
    ]
    assert (
        profile.messages.max_message_bytes == line
        and profile.messages.max_result_bytes <= tool_records.MAX_OUTPUT
    )
    assert profile.sandbox.levels == ["none", "process"][
        : 1 + ("process" in able)
    ] and profile.pins.simulated == (name in ("linux", "sim"))
    assert profile.sandbox.limits == (
        list(sandboxes.LIMITS) if "process" in able else ["max_output_bytes"]
    )
    assert bool(profile.unchecked) == (name not in ("linux", "sim")), "no board was at hand"
    assert set(profile.unchecked or ()) <= set(board_profile.fields(board_profile.Profile))
    for source in profile.sources:
        assert not source.startswith("/") and "shared" not in source


@pytest.mark.parametrize("name", NAMES)
def test_pins_of_a_profile_fit_each_other(name):
    pins = boards.profile(name).pins
    numbers = {
        field: {pin for pin in range(200) if board_profile.is_in_spans(getattr(pins, field), pin)}
        for field in ("digital", "adc", "pwm", "input_only", "reserved")
    }
    assert numbers["pwm"] | numbers["adc"] | numbers["input_only"] <= numbers["digital"]
    assert (
        not numbers["reserved"] & numbers["digital"] and not numbers["pwm"] & numbers["input_only"]
    )


@pytest.mark.parametrize("name", ["pico", "pico-w", "pico2", "pico2-w", "rpi-4", "rpi-5"])
def test_pins_on_one_channel_of_pwm_are_those_of_the_datasheets(name):
    """RP2040 4.5.2, RP2350 12.5.2: GPIO n is on slice (n / 2) mod 8, A or B.  BCM2711 5.3:
    PWM0_0 on 12 and 18, PWM0_1 on 13 and 19.
    """
    pins = boards.profile(name).pins
    channel = {"rpi-4": {12: 0, 18: 0, 13: 1, 19: 1}.get, "rpi-5": lambda pin: pin}.get(
        name, lambda pin: (pin // 2 % 8, pin % 2)
    )
    numbers = [pin for pin in range(48) if board_profile.is_in_spans(pins.pwm, pin)]
    for one in numbers:
        for other in numbers:
            assert (
                board_profile.find_lowest(pins.pwm_shared, one)
                == board_profile.find_lowest(pins.pwm_shared, other)
            ) == (channel(one) == channel(other)), (one, other)


def test_the_documentation_has_the_profiles_facts():
    rows = [
        line
        for line in (ROOT / "docs/boards.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    for profile in boards.load_all():
        (row,) = [row for row in rows if f"`{profile.name}`" in row.split("|")[1]]
        for fact in (
            str(profile.word_bits),
            f"{profile.heap_bytes:,}" if profile.heap_bytes else "-",
            f"{profile.flash_bytes:,}" if profile.flash_bytes else "-",
        ):
            assert f"| {fact} |" in row, (profile.name, fact)


# -- a profile with mistakes


def mistakes(tmp_path, old: str, new: str) -> str:
    (tmp_path / "boards").mkdir()
    text = (ROOT / "boards/esp32.toml").read_text().replace('name = "esp32"', 'name = "mine"')
    assert old in text
    (tmp_path / "boards/mine.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ManifestErrors) as caught:
        boards.load("mine", str(tmp_path))
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    "old, new, said",
    [
        (
            '"mine"',
            '"other"',
            'boards/mine.toml:2: name: expected "mine", as the file is called, found "other"',
        ),
        (
            '"micropython"',
            '"micropithon"',
            'boards/mine.toml:4: runtime: expected "cpython" or '
            '"micropython", found "micropithon" - did you mean '
            '"micropython"?',
        ),
        (
            "word_bits = 32",
            "word_bits = 48",
            "boards/mine.toml:5: word_bits: expected 32 or 64, found 48",
        ),
        (
            "heap_bytes = ",
            "heap_byte = ",
            'boards/mine.toml:7: heap_byte: unknown field - did you mean "heap_bytes"?',
        ),
        (
            "10C4:EA60",
            "10c4:ea60",
            "boards/mine.toml:9: usb[0]: expected vendor and product in hex, "
            'such as "2E8A:0005", found "10c4:ea60" - write "10C4:EA60"',
        ),
        ("unchecked = [", 'abilities = ["logs"]\nunchecked = [', 'did you mean "log"?'),
        (
            '"ram_bytes", "heap_bytes"',
            '"ram_byte", "heap_bytes"',
            "boards/mine.toml:12: unchecked[0]: "
            'a profile has no field "ram_byte" '
            '- did you mean "ram_bytes"?',
        ),
        (
            'adc = ["32-39"]',
            'adc = ["39-32"]',
            "boards/mine.toml:46: pins.adc[0]: expected a pin or a "
            'range of pins up to 65535, such as "4" or "0-22", '
            'found "39-32"',
        ),
        (
            "[pins.reserved]",
            '[pins.pwm_shared]\n"12-13" = "18-20"\n\n[pins.reserved]',
            'pins.pwm_shared["12-13"]: '
            "expected as "
            "many pins as "
            "12-13 are, "
            "such as "
            '"16-28" for '
            '"0-12", found '
            '"18-20"',
        ),
        ('"6-11" =', '"6..11" =', 'pins.reserved["6..11"]: expected a pin or a range of pins'),
        (
            'links = ["wifi"]',
            'links = ["lora"]',
            'boards/mine.toml:31: network.links[0]: expected "ethernet" or "wifi", found "lora"',
        ),
        ("[network]", "[network", "boards/mine.toml:30: not TOML: "),
    ],
)
def test_mistakes_in_a_profile(tmp_path, old, new, said):
    assert said in mistakes(tmp_path, old, new)
    assert [profile.name for profile in boards.load_all(str(tmp_path))] == NAMES, (
        "one broken profile is in nobody else's way"
    )


def test_a_board_that_is_not_known():
    with pytest.raises(ClawError) as caught:
        boards.load("picow")
    assert caught.value.hint == 'did you mean "pico-w"?' and "pico2-w" in caught.value.message


# -- what a board cannot honour

HTTP, HTTPS = (
    ("openai-compatible", "http://127.0.0.1:9/v1"),
    ("openai-compatible", "https://127.0.0.1:9/v1"),
)
REST = REFLEX[2:]


@pytest.mark.parametrize(
    "board, values, pins, said",
    [
        (
            "pico",
            HTTP + REST,
            "",
            [
                "claw.yaml:7: spec.providers[0].inline.endpoint: pico has no "
                "network - [gateway] in clawlite.toml, a built-in provider, or "
                "another board: esp32, "
            ],
        ),
        (
            "pico",
            HTTPS + REST,
            "",
            [
                "claw.yaml:7: spec.providers[0].inline.endpoint: pico has no "
                "network - [gateway] in clawlite.toml, a built-in provider, or "
                "another board: linux, rpi-3b-plus, "
            ],
        ),
        (
            "pico-w",
            HTTPS + REST,
            "",
            [
                "claw.yaml:7: spec.providers[0].inline.endpoint: pico-w has no "
                "list of certificate authorities - name the one of this host: "
                "[tls]"
            ],
        ),
        (
            "esp32",
            REFLEX[:3] + ("process", "memory_mb", 64),
            "",
            [
                "claw.yaml:12: spec.sandbox.inline.level: esp32 cannot isolate tools at level "
                '"process" - '
                "level none, or another board: linux, r",
                "claw.yaml:14: spec.sandbox.inline.resource_limits.memory_mb: esp32 cannot keep "
                "this "
                "limit - remove it, or another board: linux, r",
            ],
        ),
        (
            "pico",
            REFLEX[:3] + ("none", "timeout_ms", 64),
            "",
            [
                "claw.yaml:14: "
                "spec.sandbox.inline.resource_limits.timeout_ms: "
                "pico cannot keep this limit - set "
                "timeout_ms on"
            ],
        ),
        (
            "pico",
            REFLEX[:4] + ("max_output_bytes", 16385),
            "",
            [
                "claw.yaml:14: "
                "spec.sandbox.inline.resource_limits.max_output_bytes: "
                "expected at most 16384 on pico, "
                "found 16385 - set it to"
            ],
        ),
        (
            "pico",
            REFLEX[:2] + (8193,) + REFLEX[3:],
            "",
            [
                "claw.yaml:9: "
                "spec.channels[0].inline.processing.max_message_length: "
                "expected at most 8192 on pico, found 8193 - "
                "set"
            ],
        ),
        (
            "pico",
            REFLEX,
            "25 output, 23 output",
            [
                "clawlite.toml:8: pins[1].pin: pin 23 of pico is "
                "reserved: selects the mode of the power supply - "
                "pins for output on pico: 0-22, 25-28"
            ],
        ),
        (
            "pico",
            REFLEX,
            "28 adc, 22 adc",
            [
                "clawlite.toml:9: pins[1].kind: pin 22 of pico cannot be "
                "read as ADC - pins for adc on pico: 26-28"
            ],
        ),
        (
            "pico",
            REFLEX,
            "40 input",
            [
                "clawlite.toml:4: pins[0].pin: pico has no pin 40 - pins for "
                "input on pico: 0-22, 25-28"
            ],
        ),
        (
            "esp32",
            REFLEX,
            "33 output, 34 output",
            ["clawlite.toml:9: pins[1].kind: pin 34 of esp32 is an input only - "],
        ),
        (
            "esp32",
            REFLEX,
            "34 input, 34 pwm",
            ["clawlite.toml:9: pins[1].kind: pin 34 of esp32 cannot be driven as PWM - "],
        ),
        (
            "pico",
            REFLEX,
            "3 pwm, 2 pwm, 19 pwm",
            [
                "clawlite.toml:12: pins[2].pin: pins 3 (p0) and 19 "
                "of pico are one PWM channel: both would get the "
                "same signal - free for PWM: 0, 1, 4, 5, "
            ],
        ),
        (
            "pico2-w",
            REFLEX,
            "28 pwm, 12 pwm",
            ["clawlite.toml:8: pins[1].pin: pins 28 (p0) and 12 of pico2-w are one PWM channel"],
        ),
        (
            "rpi-4",
            REFLEX,
            "18 pwm, 13 pwm, 12 pwm",
            [
                "clawlite.toml:12: pins[2].pin: pins 18 (p0) and "
                "12 of rpi-4 are one PWM channel: both would get "
                "the same signal - no channel is left: drive"
            ],
        ),
        (
            "rpi-zero-w",
            REFLEX,
            "13 pwm, 19 pwm",
            [
                "clawlite.toml:8: pins[1].pin: pins 13 (p0) and 19 "
                "of rpi-zero-w are one PWM channel: both would get "
                "the same signal - free for PWM: 12, 18"
            ],
        ),
        (
            "esp32-c3",
            REFLEX,
            "0 pwm, 1 pwm, 2 pwm, 3 pwm, 4 pwm, 5 pwm, 6 pwm",
            [
                "clawlite.toml:28: "
                "pins[6].pin: "
                "esp32-c3 drives 6 "
                "pins as PWM, and "
                "this is one more - "
                "drive it as an "
                "output"
            ],
        ),
        (
            "pico",
            REFLEX,
            "3 pwm, 3 output",
            ["clawlite.toml:8: pins[1].pin: pin 3 is p0 already - what is driven has one name"],
        ),
        (
            "rpi-5",
            REFLEX,
            "4 input, 4 output",
            ["clawlite.toml:8: pins[1].pin: pin 4 is p0 already"],
        ),
        (
            "rpi-5",
            REFLEX,
            "4 adc, 12 pwm, 13 output",
            [
                "clawlite.toml:5: pins[0].kind: pin 4 of rpi-5 "
                "cannot be read as ADC - no pin of kind adc, "
                "or another board: esp32, "
            ],
        ),
    ],
)
def test_what_a_board_cannot_honour(tmp_path, board, values, pins, said):
    project(tmp_path, *values, pins=pins)
    lines = refused(tmp_path, board)
    assert len(lines) == len(said), lines
    assert [line[: len(start)] for line, start in zip(lines, said)] == said
    assert refused(tmp_path, board, check.check) == lines, "check says the same"
    assert not (tmp_path / "claw.cbor").exists()


def test_the_last_that_is_honoured(tmp_path):
    project(
        tmp_path,
        *REFLEX[:2],
        8192,
        "none",
        "max_output_bytes",
        16384,
        pins="28 adc, 0 input, 22 output, 25 pwm",
    )
    found = build.build(str(tmp_path), board="pico")
    assert found["board"] == "pico" and found["word_bits"] == 32 and "pico" in found["fits"]
    assert found["warnings"] == []
    assert [
        (Path(w["file"]).name, w["line"], w["message"])
        for w in build.build(str(tmp_path), board="sim")["warnings"]
    ] == [("clawlite.toml", 2, "this version drives no pin of sim: they are simulated")]


@pytest.mark.parametrize(
    "board, pins",
    [
        ("rpi-5", "12 pwm, 13 pwm, 18 pwm, 19 pwm"),
        ("rpi-4", "12 pwm, 19 pwm, 18 output"),
        ("pico", "2 pwm, 3 pwm, 20 pwm, 19 output, 28 adc, 12 pwm"),
        ("pico", "5 input, 5 input"),
        ("esp32-c3", "0 pwm, 1 pwm, 2 pwm, 3 pwm, 4 pwm, 5 pwm, 6 output"),
    ],
)
def test_channels_of_pwm_that_fit_beside_each_other(tmp_path, board, pins):
    """RP1 has a channel for each; A and B of a slice have one frequency, which is the same for
    every pin here.
    """
    project(tmp_path, *REFLEX, pins=pins)
    check.check(str(tmp_path), board)


def test_a_sandbox_may_let_its_children_say_more_than_a_result_holds(tmp_path):
    """10 MB is what CKP's own example of a Sandbox has."""
    project(tmp_path, *REFLEX[:2], 8192, "process", "max_output_bytes", 10485760)
    for board in ("linux", "rpi-4", "rpi-zero-w"):
        check.check(str(tmp_path), board)


BOXED = """\
claw: "0.3.0"
kind: Claw
metadata: { name: sample, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are a sample." } }
  providers:
    - { inline: { name: first, protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }
  tools: ["claw://registry/clawlite/%s@1.0.0"]
  sandbox:
    inline:
      level: process
      capabilities:
        shell: { mode: full }
        filesystem:
          mode: scoped
          mount_paths: [{ path: /srv/data, permissions: %s }, { path: /srv/data/kept, permissions: %s }]
          denied_paths: [%s]
  policies:
    - inline: { rules: [{ id: all, action: allow, scope: all }] }
"""  # noqa: E501


def test_what_landlock_cannot_express_is_refused_for_a_board_that_has_nothing_else(tmp_path):
    project(tmp_path)
    own = boards.new("mine", "rpi-4", str(tmp_path))
    profile = Path(own).read_text()
    whole = re.search(r"profiles = \[[^]]*\]", profile).group()

    def build_for(profiles, *values):
        Path(own).write_text(profile.replace(whole, profiles))
        (tmp_path / "claw.yaml").write_text(BOXED % values)
        build.build(str(tmp_path), board="mine", output=str(tmp_path / "made.cbor"))

    denied = ("exec-shell", "rw", "rw", "/srv/data/private")
    with pytest.raises(ManifestErrors) as caught:
        build_for('profiles = ["L"]', *denied)
    said = str(caught.value)
    assert 'denied_paths[0]: "/srv/data/private" lies in "/srv/data", which tools may' in said
    assert "mine has only Landlock" in said and 'move it out of "/srv/data"' in said
    with pytest.raises(ManifestErrors, match='"/srv/data/kept", mounted to be read, lies in'):
        build_for('profiles = ["L"]', "exec-shell", "rw", "ro", "/etc/x")
    for profiles, *values in (
        ('profiles = ["N", "L"]', *denied),
        ('profiles = ["N"]', *denied),
        ("", *denied),
        ('profiles = ["L"]', "exec-shell", "ro", "rw", "/srv/data/private"),
        ('profiles = ["L"]', "exec-shell", "rw", "rw", "/srv/other"),
        ('profiles = ["L"]', "read-file", "rw", "rw", "/srv/data/private"),
    ):
        build_for(profiles, *values)


def test_what_cannot_be_built_is_refused_for_a_board(tmp_path):
    project(tmp_path, *REFLEX[:2], 8192, "process", "memory_mb", 64)
    file = tmp_path / "claw.yaml"
    whole = file.read_text()
    file.write_text(whole.replace("level: process", "level: vm"))
    with pytest.raises(ManifestErrors, match='level "vm" is not supported'):
        check.check(str(tmp_path))
    with pytest.raises(ManifestErrors, match='cannot isolate tools at level "vm"'):
        check.check(str(tmp_path), "linux")
    file.write_text(whole.replace("builtin:reflex", "builtin:other"))
    for board in (None, "linux"):
        with pytest.raises(ManifestErrors, match="other custom providers"):
            check.check(str(tmp_path), board)


def test_a_pull_resistor_where_there_is_one(tmp_path):
    project(tmp_path, pins="4 input, 34 input")
    settings = tmp_path / "clawlite.toml"
    settings.write_text(settings.read_text().replace('"input"', '"input"\npull = "up"'))
    (line,) = [line for line in refused(tmp_path, "esp32") if ".pull" in line]
    assert (
        line
        == "clawlite.toml:11: pins[1].pull: pin 34 of esp32 has no pull resistor - put one on the "
        "board, or choose another pin"
    )
    settings.write_text(settings.read_text().replace('"input"', '"output"'))
    with pytest.raises(ManifestErrors, match='only a pin of kind "input" has a pull resistor'):
        check.check(str(tmp_path))


def test_all_problems_come_at_once(tmp_path):
    project(tmp_path, *HTTPS, 9000, "wasm", "max_output_bytes", 20000, pins="22 adc, 29 output")
    assert [line.split(" ")[0] for line in refused(tmp_path, "pico")] == [
        "claw.yaml:7:",
        "claw.yaml:9:",
        "claw.yaml:12:",
        "claw.yaml:14:",
        "clawlite.toml:5:",
        "clawlite.toml:8:",
    ]


def test_what_is_built_nowhere_is_said_with_the_rest(tmp_path):
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(
        text.replace("level: none", "level: process") + "  "
        "memory: "
        "{ "
        "inline: "
        "{ "
        "stores: "
        "[{ name: "
        "kv, "
        "type: "
        "key-value, "
        "backend: "
        "qdrant "
        "}] } }\n"
    )
    lines = refused(tmp_path, "pico")
    assert [line.split(" ")[0] for line in lines if ":12:" in line] == ["claw.yaml:12:"], lines
    assert any(
        'backend "qdrant" of a key-value store is not supported' in line for line in lines
    ), lines


@pytest.mark.parametrize("level", ["wasm", "container", "vm"])
def test_a_level_that_is_built_nowhere_is_told_with_what_would_do(tmp_path, level):
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(text.replace("level: none", "level: " + level))
    said = clawlite("build", cwd=tmp_path)
    assert (
        said.returncode == 2
        and 'level "%s" is not supported by this version of clawlite, expected "none" or "process"'
        % level
        in said.stderr
    )
    assert (
        " - process works on linux, rpi-3b-plus, rpi-4, rpi-5, rpi-zero-2-w, rpi-zero-w, none on "
        "every board\n" in said.stderr
    )


def test_a_provider_that_exists_nowhere_is_no_boards_fault(tmp_path):
    project(tmp_path, "custom", "builtin:oracle", *REST)
    assert [line.split(": ")[:2] for line in refused(tmp_path, "pico")] == [
        ["claw.yaml:7", "spec.providers[0].inline.endpoint"]
    ]
    project(tmp_path, "openai-compatible", "ws://h/v1", *REST)
    assert [line.split(": ")[:2] for line in refused(tmp_path, "pico")] == [
        ["claw.yaml:7", "spec.providers[0].inline.endpoint"]
    ]


def test_an_odd_escape_in_tools_py_is_not_said_twice(tmp_path):
    project(tmp_path, tools_py='def look() -> str:\n    """Look."""\n    return "\\d"\n')
    assert "Warning" not in clawlite("build", "--board", "pico", cwd=tmp_path).stderr


def test_a_store_that_is_larger_than_the_flash(tmp_path):
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(
        text + "  memory: { inline: { stores: [{ name: a, type: "
        "workspace, max_size_mb: 2 }, { name: b, type: "
        "workspace, max_size_mb: 1 }] } }\n"
    )
    found = [line for line in refused(tmp_path, "pico") if "max_size_mb" in line]
    assert [line.partition(" - ")[0] for line in found] == [
        "claw.yaml:17: spec.memory.inline.stores[0].max_size_mb: pico has 1,441,792 bytes of "
        "flash, found 2,097,152 bytes"
    ]
    assert not board_fit.board_problems(manifest.load(tmp_path), boards.profile("linux"))


def test_tokens_come_over_the_network_too(tmp_path):
    project(tmp_path)
    claw = (
        (tmp_path / "claw.yaml")
        .read_text()
        .replace(
            'protocol: custom, endpoint: "builtin:reflex"',
            'protocol: openai-compatible, endpoint: "http://h/v1"',
        )
    )
    (tmp_path / "claw.yaml").write_text(
        claw.replace("auth: { type: none }", "auth: { type: oauth2, secret_ref: S }")
    )
    (tmp_path / "clawlite.toml").write_text(
        '[oauth2.first]\nendpoint = "https://h/token"\nclient_id = "c"\n'
    )
    assert [line.split(" - ")[0] for line in refused(tmp_path, "pico2-w")] == [
        "clawlite.toml:2: oauth2.first.endpoint: pico2-w has no list of certificate authorities"
    ]


@pytest.mark.parametrize("endpoint", ["http://h/v1", "https://h/v1"])
def test_a_gateway_stands_in_for_a_network(tmp_path, endpoint):
    project(tmp_path, "openai-compatible", endpoint, *REFLEX[2:])
    assert "pico has no network - [gateway] in clawlite.toml" in refused(tmp_path, "pico")[0]
    (tmp_path / "clawlite.toml").write_text("[gateway]\n")
    report = build.build(str(tmp_path), board="pico")
    image = (tmp_path / "claw.cbor").read_bytes()
    assert (
        layout.Image(lambda at, size: image[at : at + size], len(image)).requires == ["gateway"]
        and report
    )


def test_a_board_is_on_the_page_of_its_gateway(tmp_path):
    project(tmp_path)
    toml = (tmp_path / "clawlite.toml").read_text()
    (tmp_path / "clawlite.toml").write_text(toml + "[page]\n")
    assert "remove [page]: with [gateway], the page of its" in refused(tmp_path, "pico")[0]


def test_an_ability_that_a_board_lacks(tmp_path):
    mine = (ROOT / "boards/pico.toml").read_text().replace('"pico"', '"mine"')
    mine = mine.replace("unchecked = [", 'abilities = ["replay"]\nunchecked = [', 1)
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards/mine.toml").write_text(mine)
    project(
        tmp_path, pins="4 input", tools_py='def look() -> str:\n    """Look."""\n    return "x"\n'
    )
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(text.replace("action: allow", "action: audit-only"))
    assert [line.split(" - ")[0] for line in refused(tmp_path, "mine")] == [
        "claw.yaml:7: spec.providers[0].inline.endpoint: this needs reflex, which mine does not "
        "have",
        "claw.yaml:16: spec.policies[0].inline.rules[0].action: this needs log, which mine does "
        "not have",
        "clawlite.toml:2: pins[0]: this needs pins, which mine does not have",
        "tools.py:1: look: this needs tools, which mine does not have",
        "tools.py:1: look: this needs tools.py, which mine does not have",
    ]


def test_a_built_in_tool_that_a_board_lacks_is_told_where_the_manifest_names_it(tmp_path):
    names = ("sleep", "read-file", "exec-shell", "write-file")
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(
        text
        + "  tools:\n"
        + "".join(f'    - "claw://registry/clawlite/{name}@1.0.0"\n' for name in names)
    )
    first = text.count("\n") + 2
    found = [line for line in refused(tmp_path, "pico") if "spec.tools" in line]
    linux = (
        "leave it out, or another board: linux, rpi-3b-plus, rpi-4, rpi-5, rpi-zero-2-w, rpi-zero-w"
    )
    assert found == [
        f"claw.yaml:{first + 1}: spec.tools[1]: this needs files, which pico does not have - "
        f"{linux}",
        f"claw.yaml:{first + 2}: spec.tools[2]: this needs shell, which pico does not have - "
        f"{linux}",
        f"claw.yaml:{first + 3}: spec.tools[3]: this needs files, which pico does not have - "
        f"{linux}",
    ]


@pytest.mark.parametrize("board, count", [("pico-w", 760), ("pico-w", 100), ("pico", 700)])
def test_entries_that_do_not_fit_into_the_flash(tmp_path, board, count):
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(
        text + "  memory: { inline: { stores: [{ name: a, type: "
        "semantic, retention: { max_entries: %d } }] } }\n" % count
    )
    if (board, count) == ("pico-w", 760):
        [line] = refused(tmp_path, board)
        assert (
            "bytes of flash, and pico-w has 868,352 - fewer entries: retention.max_entries, or "
            "another board: esp32" in line
        )
    else:
        found = [build.build(str(tmp_path), board=board)["flash_bytes"]]
        (tmp_path / "claw.yaml").write_text(
            (tmp_path / "claw.yaml").read_text().replace(f"max_entries: {count}", "max_entries: 1")
        )
        found.append(build.build(str(tmp_path), board=board)["flash_bytes"])
        assert found[0] - found[1] == 2 * 350 * count - 65536


def test_a_size_that_no_board_knows_has_a_way_out_that_works(tmp_path):
    project(tmp_path)
    text = (tmp_path / "claw.yaml").read_text()
    (tmp_path / "claw.yaml").write_text(
        text + "  memory: { inline: { stores: [{ name: a, type: semantic, max_size_mb: 9 }] } }\n"
    )
    [line] = [line for line in refused(tmp_path, "pico-w") if "max_size_mb" in line]
    assert line.endswith(
        "found 9,437,184 bytes - retention.max_entries in its place: a semantic "
        "store is counted in entries"
    )


@pytest.mark.parametrize(
    "field, said",
    [
        ("heap_bytes", "bytes of heap, and mine has"),
        ("flash_bytes", "bytes of flash, and mine has"),
    ],
)
def test_an_image_that_does_not_fit(tmp_path, field, said):
    project(tmp_path)
    found = build.build(str(tmp_path), board="pico")
    assert (
        30000 < found["held_bytes"] < found["heap_bytes"] < 100000 < found["flash_bytes"] < 868352
    )
    (tmp_path / "boards").mkdir()
    old = [
        line
        for line in (ROOT / "boards/pico.toml").read_text().splitlines()
        if line.startswith(field)
    ][0]
    for size in (found[field], found[field] - 1):
        text = (
            (ROOT / "boards/pico.toml")
            .read_text()
            .replace('"pico"', '"mine"')
            .replace(old, f"{field} = {size}")
        )
        (tmp_path / "boards/mine.toml").write_text(text)
        if size == found[field]:
            assert build.build(str(tmp_path), board="mine")["board"] == "mine"
    (line,) = refused(tmp_path, "mine")
    assert (
        line.startswith(
            f"claw.yaml:1: the agent needs about {found[field]:,} {said} {found[field] - 1:,} - "
        )
        and "another board: " in line
    )
    assert refused(tmp_path, "mine", check.check) == [line]
    assert build.build(str(tmp_path))["fits_not"] == ["mine"]


def test_every_hint_names_only_boards_that_are_free_of_that_problem(tmp_path):
    project(tmp_path, *HTTPS, *REST, pins="4 adc")
    loaded = manifest.load(str(tmp_path))
    known = boards.load_all()
    problems = {
        board.name: {p.path for p in board_fit.board_problems(loaded, board)} for board in known
    }
    for board in known:
        for problem in board_fit.board_problems(loaded, board, known):
            named = problem.hint.partition("another board: ")[2].partition(" and ")[0]
            for other in [name for name in named.split(", ") if name]:
                assert problem.path not in problems[other] or problem.path[0] == "pins", (
                    board.name,
                    other,
                )


# -- the command line


@pytest.fixture
def greenhouse(tmp_path):
    assert clawlite("new", "g", cwd=tmp_path).returncode == 0
    return tmp_path / "g"


def test_build_says_of_each_board_whether_it_fits(greenhouse):
    done = clawlite("build", cwd=greenhouse)
    lines = done.stdout.splitlines()
    at = lines.index("  boards that it fits")
    assert [line.split()[0] for line in lines[at + 1 :]] == NAMES
    assert [line.split()[0] for line in lines[at + 1 :] if line.split()[1] == "yes"] == [
        "linux",
        "pico-w",
        "pico2-w",
        "sim",
    ]
    number = (greenhouse / "clawlite.toml").read_text().splitlines().index("pin = 26") + 1
    assert (
        f"    esp32-c3        no: clawlite.toml:{number}: pins[0].pin: esp32-c3 has no pin 26"
        in lines
    )
    text = (greenhouse / "claw.yaml").read_text()
    asks = 1 + text[: text.index(" endpoint: ")].count("\n")
    assert (
        f"    pico            no: claw.yaml:{asks}: spec.providers[0].inline.endpoint: pico has no "
        "network" in lines
    )
    found = json.loads(clawlite("build", "--json", cwd=greenhouse).stdout)
    assert (
        list(found["why_not"])
        == found["fits_not"]
        == [name for name in NAMES if name not in found["fits"]]
    )
    done = clawlite("build", "--board", "esp32-c3", cwd=greenhouse)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.splitlines()[0]
        == f"clawlite.toml:{number}: pins[0].pin: esp32-c3 has no pin 26 - pins for adc on "
        f"esp32-c3: 0-4"
    )
    done = clawlite("build", "--board", "pico-w", "--json", cwd=greenhouse)
    assert done.returncode == 0 and json.loads(done.stdout)["board"] == "pico-w"
    done = clawlite("check", "--board", "pico", "--json", cwd=greenhouse)
    assert (
        done.returncode == 2
        and json.loads(done.stdout)["error"]["data"]["problems"][0]["line"] == asks
    )


def test_the_lines_about_boards():
    assert board_text.fit_lines(["c", "a"], {"b": "too small"}) == [
        "boards that it fits",
        "  a               yes",
        "  b               no: too small",
        "  c               yes",
    ]


def test_boards_lists_them_within_80_columns(tmp_path):
    done = clawlite("boards", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "") and max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1:-1]] == NAMES
    found = json.loads(clawlite("boards", "--json", cwd=tmp_path).stdout)
    assert [board["name"] for board in found] == NAMES
    assert {tuple(board) for board in found} == {(*board_profile.Profile.__struct_fields__, "file")}
    assert (
        found[0]["network"] == {"links": ["wifi"], "tls": True, "tls_bytes": 46080}
        and found[0]["pins"]["reserved"]["6-11"] == "wired to the flash"
    )


def test_one_board(tmp_path):
    done = clawlite("boards", "esp32", cwd=tmp_path)
    assert (
        done.returncode == 0
        and "  heap_bytes                 ? 134544\n" in done.stdout
        and "nobody has checked" in done.stdout
    )
    assert (
        json.loads(clawlite("boards", "esp32", "--json", cwd=tmp_path).stdout)["heap_bytes"]
        == 134544
    )
    done = clawlite("boards", "esp", cwd=tmp_path)
    assert done.returncode == 2 and "unknown board esp" in done.stderr and done.stdout == ""


def test_a_profile_of_ones_own(greenhouse):
    done = clawlite("boards", "new", "mine", "--from", "pico-w", cwd=greenhouse)
    assert (done.returncode, done.stdout) == (0, "") and done.stderr.startswith(
        "Made boards/mine.toml after pico-w.\n"
    )
    mine, theirs = boards.load("mine", str(greenhouse)), boards.load("pico-w")
    different = {key for key in mine if mine[key] != theirs[key]}
    assert (
        different == {"name", "title", "sources", "unchecked"} and "heap_bytes" in mine["unchecked"]
    )
    before = (greenhouse / "boards/mine.toml").read_bytes()
    done = clawlite("boards", "new", "mine", "--from", "pico", cwd=greenhouse)
    assert done.returncode == 2 and "boards/mine.toml is there already" in done.stderr
    assert (greenhouse / "boards/mine.toml").read_bytes() == before
    assert clawlite("build", "--board", "mine", cwd=greenhouse).returncode == 0
    assert "    mine            yes" in clawlite("build", cwd=greenhouse).stdout.splitlines()
    assert "boards/mine.toml" in clawlite("boards", "mine", cwd=greenhouse).stdout


def test_ones_own_come_before_those_of_the_package_and_are_found_from_elsewhere(greenhouse):
    assert clawlite("boards", "new", "pico", "--from", "pico-w", cwd=greenhouse).returncode == 0
    assert clawlite("build", "--board", "pico", cwd=greenhouse).returncode == 0
    assert clawlite("build", "g", "--board", "pico", cwd=greenhouse.parent).returncode == 0
    (greenhouse / "boards/pico.toml").write_text("name = 1\n")
    done = clawlite("build", "g", "--board", "pico", cwd=greenhouse.parent)
    assert done.returncode == 2 and "g/boards/pico.toml:1: name: expected" in done.stderr
    assert clawlite("build", cwd=greenhouse).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["new", "new", "--from", "pico"],
        ["new", "../x", "--from", "pico"],
        ["new", "x", "--from", "nano"],
        ["new", "x"],
        ["new"],
    ],
    ids=" ".join,
)
def test_a_profile_that_cannot_be_begun(tmp_path, words):
    done = clawlite("boards", *words, cwd=tmp_path)
    assert (
        done.returncode == 2
        and done.stdout == ""
        and "Traceback" not in done.stderr
        and not (tmp_path / "boards").exists()
    )


def test_the_package_needs_no_board_to_be_listed_by_hand():
    """Every name of the design has its file, and no other is there."""
    assert sorted(path.stem for path in (ROOT / "boards").glob("*.toml")) == NAMES
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from clawlite.host.boards import boards; print(len(boards.rows()))",
        ],
        cwd="/",
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    assert done.stdout == f"{len(NAMES)}\n", done.stderr


def test_the_page_says_whose_firmware_checks_dates_of_certificates():
    """As the sources of the port say, which are not here."""
    text = " ".join((Path(__file__).parents[3] / "docs/boards.md").read_text().split())
    assert "ESP32's stock firmware is built with the check of dates" in text
    assert "`CONFIG_MBEDTLS_HAVE_TIME_DATE=y` in `ports/esp32/boards/sdkconfig.base`" in text
    assert not re.search(r"ESP32[^.]* (has no|without the) check of dates", text)
