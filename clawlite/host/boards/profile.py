"""A board profile: the schema of ``boards/NAME.toml``.  Every mistake is reported with its file and
line.

A profile says what a board has and what this version of clawlite can do on it, no more.
``unchecked`` names the facts that nobody has checked on a board of that kind, ``sources`` says
where facts come from."""

import os
import re
from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.base.document import MAX_BYTES, Place
from clawlite.host.base.problems import ManifestErrors, Problem, Problems, did_you_mean, enquote
from clawlite.host.base.regular_file import open_regular
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.models.common import Amount, Count, Name, Strict, Text, text_like
from clawlite.host.models.walk import convert
from clawlite.protocols.image.features import ABILITIES, BOARDS, LINUX, NETWORKED

MAX_PIN = 65535
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")

USBId = Annotated[
    str,
    text_like(
        r"^[0-9A-F]{4}:[0-9A-F]{4}\Z",
        'vendor and product in hex, such as "2E8A:0005"',
        "2E8A:0005",
        lambda text: (
            f"write {enquote(text.upper())}"
            if re.fullmatch("[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}", text)
            else ""
        ),
    ),
]
Ability = Literal[tuple(sorted(ability.name for ability in ABILITIES))]  # type: ignore[valid-type]
Level = Literal["none", "process", "wasm", "container", "vm"]
Limit = Literal[
    "memory_mb", "cpu_shares", "max_processes", "max_open_files", "timeout_ms", "max_output_bytes"
]
Spans = list[Text]


class Console(Strict):
    """The line to a person; ``baud`` only where the line has a speed."""

    wire: Literal["stdio", "uart", "usb-cdc", "usb-serial-jtag"]
    baud: Annotated[int, Meta(ge=300, le=4000000)] | None = None


class Network(Strict):
    """The board's network.

    links      kinds of its connections
    tls        bool, its firmware or system has TLS
    tls_bytes  bytes of heap that one connection with TLS takes
    """

    links: list[Literal["ethernet", "wifi"]]
    tls: bool
    tls_bytes: Count | None = None


class Sandbox(Strict):
    """The isolation levels (5.7) and the limits that this version can enforce on the board.

    profiles  what its system has for level process (docs/sandbox.md): "N" for user namespaces, "L"
              for Landlock; None: unknown
    """

    levels: list[Level]
    limits: list[Limit]
    profiles: list[Literal["N", "L"]] | None = None


class Messages(Strict):
    """The longest message of a person or operator, and the most of a tool's result that it can
    hold.
    """

    max_message_bytes: Count
    max_result_bytes: Count


class Pins(Strict):
    """Pins by number: lists of "N" and "N-M".  input_only: pins that cannot be
    outputs; reserved: {"N-M": what they are for}.

    pwm_shared  {"N-M": "O-P"}: N and O are one channel of PWM, N+1 and O+1 the next, and so on
    pwm_most    how many pins can be driven as PWM at once, where that is fewer than there are
    """

    simulated: bool
    digital: Spans
    adc: Spans
    pwm: Spans
    input_only: Spans | None = None
    pwm_shared: dict[str, Text] | None = None
    pwm_most: Count | None = None
    reserved: dict[str, Text] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        shared_with = value.get("pwm_shared")
        for first, other in shared_with.items() if isinstance(shared_with, dict) else ():
            ours, theirs = span(first), span(other) if isinstance(other, str) else None
            if (
                isinstance(other, str)
                and ours
                and (theirs is None or _count(theirs) != _count(ours))
            ):
                report(
                    ("pwm_shared", first),
                    "",
                    f'as many pins as {first} are, such as "16-28" for "0-12"',
                    enquote(other),
                )
        for field in ("digital", "adc", "pwm", "input_only", "reserved", "pwm_shared"):
            spans = value.get(field)
            for index in (
                spans
                if isinstance(spans, dict)
                else range(len(spans))
                if isinstance(spans, list)
                else ()
            ):
                text = index if isinstance(spans, dict) else spans[index]
                if isinstance(text, str) and text and span(text) is None:
                    report(
                        (field, index),
                        "",
                        f'a pin or a range of pins up to {MAX_PIN}, such as "4" or "0-22"',
                        enquote(text),
                    )


class Profile(Strict):
    name: Name
    title: Text
    runtime: Literal["cpython", "micropython"]
    word_bits: Annotated[int, Meta(ge=32, le=64)]
    ram_bytes: Count
    console: Console
    network: Network
    sandbox: Sandbox
    messages: Messages
    pins: Pins
    sources: Annotated[list[Text], Meta(min_length=1)]
    # absent: all that this version has there, which a board without links has no network for
    abilities: list[Ability] | None = None  # type: ignore[valid-type]
    # free for our code and data when MicroPython has started
    heap_bytes: Count | None = None
    # of the file system that the agent lies in; absent: more than an agent needs
    flash_bytes: Amount | None = None
    stack_bytes: Count | None = None  # of C stack that Python code has (docs/adr/0080)
    usb: list[USBId] | None = None  # of its serial device
    # whose firmware it takes (host/flash/firmware_file.py)
    chip: Literal["rp2040", "rp2350", "esp32", "esp32s3", "esp32c3", "esp32c6"] | None = None
    api: Text | None = None  # the stub package of its firmware, in apis.json
    # how its pins lie: boards/headers (host/wiring/header.py)
    header: Name | None = None
    unchecked: list[Text] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        if value.get("word_bits") in range(33, 64):
            report(("word_bits",), "", "32 or 64", str(value["word_bits"]))
        if value.get("runtime") == "micropython" and "heap_bytes" not in value:
            report(
                (),
                'the field "heap_bytes" is missing',
                hint="MicroPython has one; name it in unchecked if nobody has measured it",
            )
        known = fields(Profile)
        unchecked = value.get("unchecked")
        for index, name in enumerate(unchecked if isinstance(unchecked, list) else ()):
            if isinstance(name, str) and name and name not in known:
                report(
                    ("unchecked", index),
                    f"a profile has no field {enquote(name)}",
                    hint=did_you_mean(name, known),
                )


def fields(struct: type) -> list[str]:
    """Return the names of a profile's fields, those of its tables as ``table.field``."""
    tables = {
        "console": Console,
        "network": Network,
        "sandbox": Sandbox,
        "messages": Messages,
        "pins": Pins,
    }
    names = []
    for name in struct.__struct_fields__:
        names.append(name)
        if struct is Profile and name in tables:
            names += [f"{name}.{inner}" for inner in tables[name].__struct_fields__]
    return names


def _count(pins: tuple) -> int:
    first, last = pins
    return last - first + 1


def span(text: str):
    """Return (first, last) of "N" or "N-M", or None when it is neither."""
    found = _RANGE.fullmatch(text)
    if not found:
        return None
    one, other = found.groups()
    first, last = int(one), int(other or one)
    return (first, last) if first <= last <= MAX_PIN else None


def is_in_spans(spans, pin: int) -> bool:
    """Return whether *pin* is in *spans*, a list of "N" and "N-M" or None."""
    return any(first <= pin <= last for first, last in map(span, spans or ()))


def find_lowest(spans, pin: int) -> int:
    """Return the lowest pin that is on one channel with *pin*, by *spans* {"N-M": "O-P"} or
    None.
    """
    for first, other in (spans or {}).items():
        if is_in_spans([other], pin):
            return span(first)[0] + pin - span(other)[0]
    return pin


def read(path: str) -> Profile:
    """Return the profile in the file *path*, whose stem is its name.  Raises ``ManifestErrors``
    with every mistake.
    """
    path = os.fspath(path)
    problems = Problems()
    try:
        with open(path, "rb", opener=open_regular) as file:
            document = TOMLDocument(file.read(MAX_BYTES + 1), path)
    except OSError as e:
        raise ManifestErrors(
            [Problem((), e.strerror, path, hint="check the path, and who may read it")]
        ) from None
    place = Place(document)
    profile = convert(
        document.data, Profile, lambda at, *args, **named: problems.add(place, at, *args, **named)
    )
    stem = os.path.basename(path).removesuffix(".toml")
    if profile and profile.name != stem:
        problems.add(
            place, ("name",), "", f"{enquote(stem)}, as the file is called", enquote(profile.name)
        )
    problems.raise_all()
    if profile.abilities is None:
        able = BOARDS if profile.runtime == "micropython" else LINUX
        lacking = () if profile.network.links else NETWORKED
        profile.abilities = [ability for ability in able if ability not in lacking]
    return profile
