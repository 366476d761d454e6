"""clawlite.toml: what is clawlite's own and has no place in a CKP document.

1. The schema is the Structs below, checked by the same walker as the manifest; TOML's lines are
   found by a scan of its keys.
2. Sections of the design that this version does not build are refused by name.  Secrets are refused
   wherever they stand.
3. The files that ``reflex`` and ``replay`` name are read here and compiled elsewhere.
"""

import dataclasses
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from clawlite.core.policy.policy import normalise
from clawlite.core.teach.draft import read_at_most
from clawlite.core.teach.row_text import parse_duration
from clawlite.host.base.document import LinePlace, Place, decode
from clawlite.host.base.problems import (
    ManifestErrors,
    Problems,
    did_you_mean,
    one_of,
    quoted,
    value_text,
)
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.channels import channels
from clawlite.host.channels.approvals import Approvals
from clawlite.host.documents.sources import Refused, Sources, is_glob
from clawlite.host.hardware import devices
from clawlite.host.hardware.buses import Bus
from clawlite.host.hardware.devices import Quantity
from clawlite.host.memory.memory_settings import Memory
from clawlite.host.models.common import URI, Money, Name, Strict, Text, text_like
from clawlite.host.models.sandbox import Mount
from clawlite.host.models.walk import convert
from clawlite.host.policy.audits import AuditSettings
from clawlite.host.providers.local_settings import Local
from clawlite.host.providers.remotes import ENDPOINT, endpoint_problem, is_secure
from clawlite.host.providers.trust import TLS, Gateway, authorities
from clawlite.host.sandbox.credentials import Credential
from clawlite.host.services.grants import ServiceSettings
from clawlite.host.swarm.swarm_settings import SwarmSettings
from clawlite.host.tools.search_settings import Search

FILE = "clawlite.toml"
NOT_BUILT = ("logs",)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[!-~]([ -~]{0,1022}[!-~])?")
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")
# of requests to MCP servers: what this program says itself
_OWN_HEADERS = (
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
    "user-agent",
)
_PLACE = re.compile(r"/[^\0]*|\$[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"(?:^|[_-]|(?<=[a-z])(?=[A-Z]))(?i:(?:api|access|private)?(?:key|token|password|passwd|secret)s?)(?:$|[_-])"
)


class Simulate(Strict):
    """How a pin behaves on a virtual board: it starts at *start*; while it is on, what it *raises*,
    an ADC pin or a quantity PLACE.NAME of a simulated device, gains *per_second*.  *device*: what
    is at the pin (host/hardware/devices.py), with its *quantities*, or how often it is pressed.
    """

    start: Annotated[int, Meta(ge=0, le=65535)] = 0
    raises: Text | None = None
    per_second: Annotated[float, Meta(ge=-65535, le=65535)] = 0
    device: Name | None = None
    quantities: dict[str, Quantity] | None = None
    every_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None
    length_ms: Annotated[int, Meta(ge=1, le=60000)] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        speed, raises = value.get("per_second"), value.get("raises")
        if isinstance(speed, float) and speed != int(speed) and "." not in str(raises):
            report(("per_second",), "", "a whole number for an ADC pin", str(speed))


class Confirm(Strict):
    """What must follow a call: *reading* is above, or below, a number *within* a time of the
    handler's start; else *pins* go to their safe state (host/rules/confirms.py).
    """

    reading: Text
    within: Text
    above: float | None = None
    below: float | None = None
    pins: list[Name] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        sides = [key for key in ("above", "below") if key in value]
        if len(sides) != 1:
            found = " and ".join(sides) or "neither"
            report((), "a threshold has one side", "above or below", found)
        ms = parse_duration(value.get("within", "1s"))
        if isinstance(value.get("within"), str) and not (ms and 100 <= ms <= MAX_WITHIN_MS):
            wanted = 'a time such as "3s", from 100ms to 10m'
            report(("within",), "", wanted, quoted(value["within"]))


class Teach(Strict):
    """What rules may that people teach by talking: call *tools* alone, and run *at_most* so often
    each (docs/rules.md).
    """

    tools: list[Text] | None = None
    at_most: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        text = value.get("at_most", "1/day")
        if isinstance(text, str) and read_at_most(text) is None:
            wanted = 'a number for each minute, hour, day or week, such as "2/day"'
            report(("at_most",), "", wanted, quoted(text))


MAX_WITHIN_MS = 600000
MAX_SETTLE_MS = 500  # the loop stands still meanwhile


KINDS = ("adc", "input", "output", "pwm")


class Pin(Strict):
    """One pin.  *settle*: within this time an output has the level that was written to it, or the
    write is an error; an *open_drain* output may be held low by others.  *safe*: what an output has
    when nothing may run, 0 where it is left out; of a servo the angle, else it has no signal.
    """

    name: Name
    pin: Annotated[int, Meta(ge=0, le=65535)]
    kind: Literal[KINDS]  # type: ignore[valid-type]
    pull: Literal["up", "down"] | None = None
    open_drain: bool = False
    safe: Annotated[int, Meta(ge=0, le=65535)] | None = None
    settle: Text = "10ms"
    confirm: Confirm | None = None
    # what a servo takes (pulse_us, degrees), and what a tone may be: of a pin of kind "pwm"
    frequency_hz: list[Annotated[int, Meta(ge=10, le=1000000)]] | None = None
    pulse_us: list[Annotated[int, Meta(ge=100, le=10000)]] | None = None
    degrees: Annotated[int, Meta(ge=1, le=360)] | None = None
    simulate: Simulate | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field in ("frequency_hz", "pulse_us", "degrees"):
            if field in value and value.get("kind") != "pwm":
                report(
                    (field,),
                    'only a pin of kind "pwm" is a servo or a tone',
                    hint="remove it, or change the kind",
                    key=True,
                )
            elif isinstance(value.get(field), list) and (
                len(value[field]) != 2 or value[field][0] > value[field][1]
            ):
                report((field,), "", "[least, most]", value_text(value[field]))
        if ("pulse_us" in value) != ("degrees" in value):
            report((), "a servo has both pulse_us and degrees", hint="give both, or none")
        if "pull" in value and value.get("kind") != "input":
            report(
                ("pull",),
                'only a pin of kind "input" has a pull resistor',
                hint="remove pull, or change the kind",
                key=True,
            )
        for key in ("open_drain", "settle"):
            if value.get(key) and value.get("kind", "output") != "output":
                report(
                    (key,),
                    'only a pin of kind "output" has it',
                    hint=f"remove {key}, or change the kind",
                    key=True,
                )
        if value.get("open_drain") is True and "settle" in value:
            report(
                ("settle",),
                "the level of an open drain output is not compared with what was written",
                hint="remove settle, or open_drain",
                key=True,
            )
        _check_safe(value, report)
        ms = parse_duration(value.get("settle", "0ms"))
        if isinstance(value.get("settle"), str) and (ms is None or ms > MAX_SETTLE_MS):
            report(
                ("settle",),
                "",
                f'a time such as "5ms", from 0ms to {MAX_SETTLE_MS}ms',
                quoted(value["settle"]),
            )


def _check_safe(value: dict, report) -> None:
    """Compare the safe state of the pin *value* with what it is."""
    safe, kind = value.get("safe"), value.get("kind")
    if safe is None:
        return
    if kind not in ("output", "pwm"):
        wrong, hint = "only an output has a safe state", "remove it, or change the kind"
    elif "frequency_hz" in value and "pulse_us" not in value:
        wrong, hint = "the safe state of a tone is silence", "remove it"
    else:
        most = value.get("degrees", 65535) if kind == "pwm" else 1
        if isinstance(safe, int) and isinstance(most, int) and 65535 >= safe > most:
            report(("safe",), "", f"0 to {most}, for this pin", str(safe))
        return
    report(("safe",), wrong, hint=hint, key=True)


class Console(Strict):
    wire: Literal["stdio"] = "stdio"
    prompt: str = "> "


class Answer(Strict):
    """How long a provider may take: to the first byte of an answer, and to its end, with all
    attempts and pauses.
    """

    first_byte_ms: Annotated[int, Meta(ge=1000, le=3600000)] = 60000
    total_ms: Annotated[int, Meta(ge=1000, le=3600000)] = 180000


class Page(Strict):
    """The agent has a control socket, so that the page of its machine can reach it."""


class Reflex(Strict):
    """The rules, and whether one that fits answers before any provider is asked."""

    file: Text = "reflex.toml"
    first: bool = False


class Price(Strict):
    """What a model costs, in US dollars for a million tokens."""

    input: Money
    output: Money


class OAuth2(Strict):
    """Where the tokens of a provider with auth.type "oauth2" come from; the client's secret is
    what its secret_ref names.
    """

    endpoint: URI
    client_id: Text
    scope: Text | None = None


class Boot(Strict):
    """How a MicroPython board starts: a flash makes /boot.json of it
    (firmware-host/micropython/boot).
    """

    window_ms: Annotated[int, Meta(ge=100, le=60000)] | None = None
    safe_pin: Annotated[int, Meta(ge=0, le=255)] | None = None
    watchdog_ms: Annotated[int, Meta(ge=1000, le=8388)] | None = None


class Budget(Strict):
    """The budgets of one turn."""

    max_rounds: Annotated[int, Meta(ge=1, le=20)] | None = None
    total_timeout_ms: Annotated[int, Meta(ge=1000, le=86400000)] | None = None
    timeout_per_tool_ms: Annotated[int, Meta(ge=1, le=86400000)] | None = None
    max_tool_result_bytes: Annotated[int, Meta(ge=64, le=65536)] | None = None


class Sandbox(Strict):
    """What this machine adds to the manifest's Sandbox of level process.

    relaxed      limits that may be enforced only in part, where the kernel cannot enforce them
                 fully; for a limit that the manifest leaves out, there is then no default
    environment  variables of the agent that its tools get too
    writable     files and folders, beside the manifest's mounts; "$NAME" is that variable's value
    namespaces   "bubblewrap": bwrap makes them
    """

    relaxed: list[Literal["memory_mb", "cpu_shares", "max_processes", "max_open_files"]] | None = (
        None
    )
    environment: list[Text] | None = None
    writable: list[Text] | None = None
    namespaces: Literal["bubblewrap"] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field, form, wanted in (
            ("environment", _VARIABLE, "the name of a variable"),
            ("writable", _PLACE, "an absolute path, or $NAME"),
        ):
            for index, text in enumerate(
                value[field] if isinstance(value.get(field), list) else ()
            ):
                if isinstance(text, str) and text and not form.fullmatch(text):
                    report((field, index), "", wanted, quoted(text))


Registry = Annotated[
    str,
    text_like(
        r"^https://[^\s?#@/]+(/[^\s?#]*)?\Z",
        "an https:// URL without a query",
        "https://claw.example.com/registry",
    ),
]


class MCPOAuth2(Strict):
    """Where the tokens for an MCP server come from: the authorization server *issuer*, whose
    metadata a build reads, or the token *endpoint* alone.  By client credentials *credential* is
    the name of the client's secret; for a person who signs in (flow "device") it is the name under
    which the agent keeps their refresh token, and *client_credential* that of the client's secret,
    if it has one.
    """

    client_id: Text
    credential: Text
    issuer: Text | None = None
    endpoint: URI | None = None
    scope: Text | None = None
    flow: Literal["client_credentials", "device"] = "client_credentials"
    client_credential: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field in ("credential", "client_credential"):
            name = value.get(field)
            if isinstance(name, str) and name and not _VARIABLE.fullmatch(name):
                report((field,), "", "the name of a secret", quoted(name))
        if "client_credential" in value and value.get("flow") != "device":
            report(
                ("client_credential",),
                "with the flow client_credentials, credential names the client's secret",
                hint='remove client_credential, or use flow = "device"',
                key=True,
            )
        elif "client_credential" in value and value["client_credential"] == value.get("credential"):
            report(
                ("client_credential",),
                "credential stores the refresh token of the sign-in, which changes",
                hint="give the client's secret another name",
                key=True,
            )
        for field in ("endpoint", "issuer"):
            url = value.get(field)
            if isinstance(url, str) and url:
                wrong = endpoint_problem(url)
                if wrong:
                    report((field,), wrong, hint=ENDPOINT)
                elif not is_secure(url):
                    report((field,), "", "https://, or http:// to this machine", quoted(url))
        if "endpoint" not in value:
            return
        for field, is_odd in (
            ("issuer", "issuer" in value),
            ("flow", value.get("flow") == "device"),
        ):
            if is_odd:
                report(
                    ("endpoint",),
                    f"a build reads the metadata of the issuer; with endpoint there is no {field}",
                    hint="remove endpoint, and name the issuer",
                    key=True,
                )


def _check_folders(mounts, report) -> None:
    for index, mount in enumerate(mounts if isinstance(mounts, list) else ()):
        path = mount.get("path") if isinstance(mount, dict) else None
        if isinstance(path, str) and normalise(path, "/") != path:
            at = ("mount_paths", index, "path")
            report(at, "", "an absolute path without .., //, or / at its end", quoted(path))


class MCPServer(Strict):
    """The settings of an MCP server besides its URI.

    A program has arguments and the names of variables of the agent that it gets.  A server at a URL
    has headers for each request, and a source of its tokens.  *trust* says whether the server's
    own description of its tools is accepted at each start, instead of the pinned one; *mode*,
    whether this device calls it (native) or its gateway (mediated), then only for the named
    *devices* if there are any.  A program may reach only *hosts*, of those that the Sandbox allows.
    One that a gateway starts may have *mount_paths* of its own, in place of the Sandbox's.
    A server ends when no call has needed it for *idle_s*, *life_s* after its start, and at once
    when it has used *cpu_s* of processor time.
    """

    args: list[str] | None = None
    environment: list[Text] | None = None
    headers: dict[str, Text] | None = None
    oauth2: MCPOAuth2 | None = None
    trust: Literal["lock", "start"] | None = None
    mode: Literal["native", "mediated"] = "native"
    devices: list[Text] | None = None
    hosts: list[Text] | None = None
    mount_paths: list[Mount] | None = None
    idle_s: Annotated[int, Meta(ge=1, le=86400)] | None = None
    life_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None
    cpu_s: Annotated[int, Meta(ge=1, le=31536000)] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        is_mediated = value.get("mode") == "mediated"
        for field, why in (
            ("devices", "only a gateway asks which device calls"),
            ("mount_paths", "the Sandbox says which folders a server of this device sees"),
        ):
            if field in value and not is_mediated:
                report((field,), why, hint=f"remove {field}, or let a gateway call", key=True)
        _check_folders(value.get("mount_paths"), report)
        oauth2 = value.get("oauth2")
        is_person = isinstance(oauth2, dict) and oauth2.get("flow") == "device"
        if value.get("trust") == "start" and is_person:
            report(
                ("trust",),
                "a person would have to sign in at each start: builds keep no token",
                hint='remove trust, or use flow = "client_credentials"',
                key=True,
            )
        names = value.get("environment")
        for index, text in enumerate(names if isinstance(names, list) else ()):
            if isinstance(text, str) and text and not _VARIABLE.fullmatch(text):
                report(("environment", index), "", "the name of a variable", quoted(text))
        for field in ("args", "environment"):
            if "oauth2" in value and field in value:
                report(
                    (field,),
                    "a program gets it, and oauth2 is for a server at a URL",
                    hint=f"remove {field}, or oauth2",
                    key=True,
                )
        headers = value.get("headers")
        for name, text in headers.items() if isinstance(headers, dict) else ():
            path = ("headers", name)
            if name.lower() in _SECRET_HEADERS:
                report(
                    path,
                    "a credential must not be written into this file",
                    hint="name it under [[credentials]], with the server's host",
                    key=True,
                )
            elif not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
                report(path, "", "the name of a header that a request may set", quoted(name))
            elif isinstance(text, str) and not _VALUE.fullmatch(text):
                report(path, "", "printable ASCII, and no space at an end", quoted(text))


class File(Strict):
    reflex: Text | None = None
    replay: Text | None = None
    packages: list[Text] | None = None
    console: Console | None = None
    pins: list[Pin] | None = None
    confirm: dict[str, Confirm] | None = None
    teach: Teach | None = None
    buses: list[Bus] | None = None
    prices: dict[str, Price] | None = None
    oauth2: dict[str, OAuth2] | None = None
    dialect: dict[str, dict[str, str]] | None = None
    answer: Answer | None = None
    local: Local | None = None
    budget: Budget | None = None
    boot: Boot | None = None
    page: Page | None = None
    gateway: Gateway | None = None
    tls: TLS | None = None
    prefer: Literal["cost", "speed", "intelligence"] | None = None
    sandbox: Sandbox | None = None
    search: Search | None = None
    credentials: list[Credential] | None = None
    memory: Memory | None = None
    swarm: SwarmSettings | None = None
    audit: AuditSettings | None = None
    approvals: Approvals | None = None
    tenant_id: Name | None = None
    time_zone: Text | None = None
    # latitude and longitude
    place: list[float] | None = None
    mcp: dict[str, MCPServer] | None = None
    surfaces: list[Text] | None = None
    services: dict[str, ServiceSettings] | None = None
    # of each a Grant, or "..."
    tools: list[Any] | None = None
    tools_defaults: list[Any] | None = None
    feeds: list[Any] | None = None
    # namespace: base URL (host/documents/registries.py reads them before all else)
    registries: dict[str, Registry] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        place = value.get("place")
        if place is not None and not _is_on_earth(place):
            report(
                ("place",),
                "",
                "[latitude, longitude] in degrees, such as [52.5, 13.4], north and east positive",
                value_text(place),
            )
        if isinstance(value.get("registries"), dict) and "clawlite" in value["registries"]:
            report(
                ("registries", "clawlite"),
                "this registry is inside the package",
                key=True,
                hint="give yours another name",
            )


def _is_on_earth(place) -> bool:
    return (
        isinstance(place, list)
        and len(place) == 2
        and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in place)
        and abs(place[0]) <= 90
        and abs(place[1]) <= 180
    )


# {section: its Struct} of the channel types; a field of the file for each
_OF_CHANNELS = {one.kind.ability: one.settings for one in channels.TYPES.values() if one.settings}
WholeFile = msgspec.defstruct(
    "File",
    [(section, struct | None, None) for section, struct in _OF_CHANNELS.items()],
    bases=(File,),
    namespace={"check_rules": File.check_rules},
)


@dataclasses.dataclass
class Settings:
    """What clawlite.toml says.

    reflex_first              rules that fit answer before any provider is asked
    reflex, replay            file names relative to the folder, or None
    reflex_text, replay_text  their contents, or None; reflex_file, replay_file: as the user would
                              open them, or None
    packages                  names of Python packages that the device has, for tools.py
    console                   Console
    pins                      [Pin], in file order, names unique
    confirm                   {name of a tool: Confirm}
    teach                     Teach | None
    buses                     [Bus], in file order
    devices                   {name: devices.DeviceFile} of those that are simulated
    prices                    {model: Price}
    oauth2                    {name of a provider: OAuth2}
    dialect                   {name of a provider: {field of a request: its name there, "": none}}
    answer                    Answer
    local                     local_model.Local
    sentences                 bytes of its file of examples, or None; sentences_file: its name
    budget                    Budget
    boot                      Boot, or None
    page                      Page, or None
    gateway                   Gateway through which remote providers are asked, or None
    authorities               certificates (DER) of those whose signature counts, of [tls] ca
    prefer                    "cost", "speed", "intelligence", or None
    sandbox                   Sandbox
    search                    Search, or None
    credentials               [Credential], in file order
    memory                    Memory
    swarm                     SwarmSettings, or None
    audit                     AuditSettings
    approvals                 Approvals
    tenant_id                 what {tenant_id} stands for, or None
    time_zone                 of schedules: an IANA name or None
    location                  (latitude, longitude) for sunrise and sunset, or None
    mcp                       {name of an MCP server: MCPServer}
    surfaces, services        what the agent may reach, and {name: ServiceSettings}
    tools, tools_defaults, feeds   what it is granted of services; tools: None for the defaults
                              (host/services/grants.py)
    channels                  {section of a channel type: its Struct} (host/channels)
    place                     where problems of later stages are reported: ``where("pins", 0,
                              "kind")`` gives (file, line)
    """

    reflex: str = None
    reflex_first: bool = False
    reflex_text: str = None
    reflex_file: str = None
    replay: str = None
    replay_text: str = None
    replay_file: str = None
    packages: list = dataclasses.field(default_factory=list)
    console: Struct = dataclasses.field(default_factory=Console)
    pins: list = dataclasses.field(default_factory=list)
    confirm: dict = dataclasses.field(default_factory=dict)
    teach: Teach | None = None
    buses: list = dataclasses.field(default_factory=list)
    devices: dict = dataclasses.field(default_factory=dict)
    prices: dict = dataclasses.field(default_factory=dict)
    oauth2: dict = dataclasses.field(default_factory=dict)
    dialect: dict = dataclasses.field(default_factory=dict)
    answer: Struct = dataclasses.field(default_factory=Answer)
    local: Struct = dataclasses.field(default_factory=Local)
    sentences: bytes = None
    sentences_file: str = None
    budget: Struct = dataclasses.field(default_factory=Budget)
    boot: Struct = None
    page: Struct = None
    gateway: Struct = None
    authorities: list = dataclasses.field(default_factory=list)
    prefer: str = None
    sandbox: Struct = dataclasses.field(default_factory=Sandbox)
    search: Struct = None
    credentials: list = dataclasses.field(default_factory=list)
    memory: Struct = dataclasses.field(default_factory=Memory)
    swarm: Struct = None
    audit: Struct = dataclasses.field(default_factory=AuditSettings)
    approvals: Struct = dataclasses.field(default_factory=Approvals)
    mcp: dict = dataclasses.field(default_factory=dict)
    surfaces: list = dataclasses.field(default_factory=list)
    services: dict = dataclasses.field(default_factory=dict)
    tools: list = None
    tools_defaults: list = dataclasses.field(default_factory=list)
    feeds: list = dataclasses.field(default_factory=list)
    tenant_id: str = None
    time_zone: str = None
    location: tuple = None
    channels: dict = dataclasses.field(
        default_factory=lambda: {section: struct() for section, struct in _OF_CHANNELS.items()}
    )
    place: Place = dataclasses.field(default=LinePlace(FILE), repr=False)

    def where(self, *path) -> tuple:
        return self.place.where(path)


# fields of the file that are more than a value, or have another meaning there
_READ_APART = ("reflex", "replay", "place")


def load(sources: Sources, problems: Problems) -> Settings:
    """Return the Settings beside the manifest, defaults when there is no file; mistakes go to
    *problems*.
    """
    file_name = sources.shown(FILE)
    if not sources.exists(FILE):
        return _read_sentences(Settings(place=LinePlace(file_name)), sources, problems)
    try:
        document = TOMLDocument(sources.read(FILE), file_name)
    except Refused as e:
        problems.add(LinePlace(file_name), (), e.args[0], hint=e.args[1])
        return Settings(place=LinePlace(file_name))
    except ManifestErrors as e:
        problems.extend(e)
        return Settings(place=LinePlace(file_name))
    place = Place(document)
    known = {
        key: value
        for key, value in document.data.items()
        if key not in NOT_BUILT and not _SECRET.search(key)
    }
    rules = known.pop("reflex") if isinstance(known.get("reflex"), dict) else None
    file = convert(
        known,
        WholeFile,
        lambda path, *args, **named: _report(problems, place, path, *args, **named),
    )
    _refuse_by_name(document.data, place, problems)
    settings = Settings(place=place)
    if rules is not None:
        reflex = (
            convert(
                rules,
                Reflex,
                lambda path, *args, **named: _report(
                    problems, place, ("reflex", *path), *args, **named
                ),
            )
            or Reflex()
        )
        known["reflex"], settings.reflex_first = reflex.file, reflex.first
    for key in ("reflex", "replay"):
        if isinstance(known.get(key), str) and known[key]:
            setattr(settings, key, known[key])
            setattr(settings, key + "_file", sources.shown(known[key]))
            setattr(
                settings,
                key + "_text",
                _text(sources, known[key], _named(place, key, rules), problems),
            )
    if file is not None:
        for field in dataclasses.fields(Settings):
            value = getattr(file, field.name, None)
            if value is not None and field.name not in _READ_APART:
                setattr(settings, field.name, value)
        settings.devices = _devices(settings, sources, place, problems)
        if file.tls:
            settings.authorities = authorities(sources, file.tls.ca, place, problems)
        settings.location = tuple(file.place) if file.place else None
        for section in _OF_CHANNELS:
            settings.channels[section] = getattr(file, section) or settings.channels[section]
    _check_pins(known.get("pins"), place, problems)
    return _read_sentences(settings, sources, problems)


def _read_sentences(settings: Settings, sources: Sources, problems: Problems) -> Settings:
    """Add the examples of the local model to *settings*, where there are any; return it."""
    name = settings.local.examples
    if sources.exists(name) or name != Local().examples:
        settings.sentences_file = sources.shown(name)
        text = _text(sources, name, settings.place.below("local").below("examples"), problems)
        settings.sentences = text
    return settings


def _devices(settings: Settings, sources: Sources, place: Place, problems: Problems) -> dict:
    """Return {name: ``devices.DeviceFile``} of the simulated devices; what is none is reported."""
    wanted = [
        (one.device, ("buses", index, "simulated", number, "device"))
        for index, bus in enumerate(settings.buses)
        for number, one in enumerate(bus.simulated or [])
    ] + [
        (pin.simulate.device, ("pins", index, "simulate", "device"))
        for index, pin in enumerate(settings.pins)
        if pin.simulate and pin.simulate.device
    ]
    found = {}
    for name, path in wanted:
        if name not in found:
            found[name] = devices.read(name, sources, place, path, problems)
    return found


def _report(problems: Problems, place: Place, path: tuple, message: str, *args, **named) -> None:
    """Pass a problem on, but for a key that ``_refuse_by_name`` has a better sentence for."""
    if message != "unknown field" or not _SECRET.search(path[-1]):
        problems.add(place, path, message, *args, **named)


def _refuse_by_name(value, place: Place, problems: Problems, path: tuple = ()) -> None:
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        # max_tokens of a request is none
        if isinstance(key, str) and _SECRET.search(key) and path[:1] != ("dialect",):
            problems.add(
                place,
                path + (key,),
                "a secret has no place here",
                key=True,
                hint="settings are compiled into images; the manifest names a secret with "
                "secret_ref, its value stays on the device or the gateway",
            )
            continue
        if not path and key in NOT_BUILT:
            problems.add(place, (key,), "not supported by this version", key=True, hint="remove it")
        _refuse_by_name(item, place, problems, path + (key,))


def _named(place: Place, key: str, rules) -> Place:
    """Return the place of the name of a file: of reflex it may stand in a table."""
    return (
        place.below(key).below("file")
        if key == "reflex" and rules and "file" in rules
        else place.below(key)
    )


def _text(sources: Sources, name: str, place: Place, problems: Problems) -> str:
    try:
        if is_glob(name) and not sources.exists(name):
            raise Refused("one file stands here, not a glob", "name the file in full")
        sources.expand(name)
        return decode(sources.read(name), sources.shown(name))
    except Refused as e:
        problems.add(place, (), e.args[0], hint=e.args[1])
    except ManifestErrors as e:
        problems.extend(e)
    return None


def _check_pins(pins, place: Place, problems: Problems) -> None:
    """Check names against names; *pins* is raw data, whose own mistakes are reported elsewhere."""
    pins = [pin if isinstance(pin, dict) else {} for pin in pins] if isinstance(pins, list) else []
    kinds = {}
    for index, pin in enumerate(pins):
        name = pin.get("name")
        if isinstance(name, str) and name in kinds:
            problems.add(
                place,
                ("pins", index, "name"),
                f"a pin {quoted(name)} is already there",
                hint="give one of them another name",
            )
        elif isinstance(name, str):
            kinds[name] = pin.get("kind")
    if any("name" not in pin or "kind" not in pin for pin in pins):
        # which of them is meant is not known; what they lack is reported elsewhere
        return
    inputs = [name for name, kind in kinds.items() if kind == "adc"]
    for index, pin in enumerate(pins):
        simulate = pin.get("simulate")
        raises = simulate.get("raises") if isinstance(simulate, dict) else None
        # of a quantity, host/hardware/buses.py looks whether a device has it
        is_told = kinds.get(raises) not in (None, *KINDS) if isinstance(raises, str) else True
        if not is_told and raises not in inputs and "." not in raises:
            found = (
                f"{quoted(raises)} is no pin"
                if raises not in kinds
                else f"{quoted(raises)} is of kind {value_text(kinds[raises])}"
            )
            hint = did_you_mean(raises, inputs) or (
                "ADC pins here: " + one_of(inputs) if inputs else 'declare a pin of kind "adc"'
            )
            problems.add(
                place,
                ("pins", index, "simulate", "raises"),
                f"expected the name of an ADC pin; {found}",
                hint=hint,
            )
