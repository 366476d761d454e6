"""clawlite.toml: what is clawlite's own and has no place in a CKP document.

1. The schema is the Structs below and those of the features' rooms, checked by the same walker as
   the manifest; TOML's lines are found by a scan of its keys.
2. Sections of the design that this version does not build are refused by name.  Secrets are refused
   wherever they stand.
3. The files that ``reflex`` and ``replay`` name are read here and compiled elsewhere.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from clawlite.host.base.document import LinePlace, Place, decode
from clawlite.host.base.problems import ManifestErrors, Problems, value_text
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.channels import channels
from clawlite.host.channels.approvals import Approvals
from clawlite.host.documents.sources import Refused, Sources, is_glob
from clawlite.host.hardware import devices
from clawlite.host.hardware.buses import Bus
from clawlite.host.hardware.pin_settings import Confirm, Pin, check_names
from clawlite.host.mcp.mcp_settings import MCPServer
from clawlite.host.memory.memory_settings import Memory
from clawlite.host.models.common import URI, Money, Name, Strict, Text, text_like
from clawlite.host.models.walk import convert
from clawlite.host.policy.audits import AuditSettings
from clawlite.host.providers.local_settings import Local
from clawlite.host.providers.trust import TLS, Gateway, authorities
from clawlite.host.rules.teach_settings import Teach
from clawlite.host.sandbox.credentials import Credential
from clawlite.host.sandbox.sandbox_settings import Sandbox
from clawlite.host.services.grants import ServiceSettings
from clawlite.host.swarm.swarm_settings import SwarmSettings
from clawlite.host.tools.search_settings import Search

FILE = "clawlite.toml"
NOT_BUILT = ("logs",)
_SECRET = re.compile(
    r"(?:^|[_-]|(?<=[a-z])(?=[A-Z]))(?i:(?:api|access|private)?(?:key|token|password|passwd|secret)s?)(?:$|[_-])"
)


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


Registry = Annotated[
    str,
    text_like(
        r"^https://[^\s?#@/]+(/[^\s?#]*)?\Z",
        "an https:// URL without a query",
        "https://claw.example.com/registry",
    ),
]


class File(Strict):
    """The fields of the file; docs/settings.md says what each does."""

    reflex: Text | None = None
    replay: Text | None = None
    packages: list[Text] = []  # of Python that the device has, for tools.py
    console: Console = field(default_factory=Console)
    pins: list[Pin] = []  # in file order, names unique
    confirm: dict[str, Confirm] = {}  # of a tool
    teach: Teach | None = None
    buses: list[Bus] = []
    prices: dict[str, Price] = {}  # of a model
    oauth2: dict[str, OAuth2] = {}  # of a provider
    # of a provider: {field of a request: its name there, "": none}
    dialect: dict[str, dict[str, str]] = {}
    answer: Answer = field(default_factory=Answer)
    local: Local = field(default_factory=Local)
    budget: Budget = field(default_factory=Budget)
    boot: Boot | None = None
    page: Page | None = None
    gateway: Gateway | None = None  # through which remote providers are asked
    tls: TLS | None = None
    prefer: Literal["cost", "speed", "intelligence"] | None = None
    sandbox: Sandbox = field(default_factory=Sandbox)
    search: Search | None = None
    credentials: list[Credential] = []
    memory: Memory = field(default_factory=Memory)
    swarm: SwarmSettings | None = None
    audit: AuditSettings = field(default_factory=AuditSettings)
    approvals: Approvals = field(default_factory=Approvals)
    tenant_id: Name | None = None  # what {tenant_id} stands for
    time_zone: Text | None = None  # of schedules: an IANA name
    # latitude and longitude, for sunrise and sunset
    location: list[float] | None = field(default=None, name="place")
    mcp: dict[str, MCPServer] = {}
    # what the agent may reach, and what it is granted of it (host/services/grants.py)
    surfaces: list[Text] = []
    services: dict[str, ServiceSettings] = {}
    # of each a Grant, or "..."; tools: None for the defaults
    tools: list[Any] | None = None
    tools_defaults: list[Any] = []
    feeds: list[Any] = []
    # namespace: base URL (host/documents/registries.py reads them before all else)
    registries: dict[str, Registry] = {}

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


class Settings(File):
    """What clawlite.toml says, and what was read beside it.

    reflex, replay            file names relative to the folder, or None
    reflex_first              rules that fit answer before any provider is asked
    reflex_text, replay_text  their contents, or None; reflex_file, replay_file: as the user would
                              open them, or None
    devices                   {name: devices.DeviceFile} of those that are simulated
    sentences                 bytes of the file of examples of the local model, or None;
                              sentences_file: its name
    authorities               certificates (DER) of those whose signature counts, of [tls] ca
    channels                  {section of a channel type: its Struct} (host/channels)
    place                     where problems of later stages are reported: ``where("pins", 0,
                              "kind")`` gives (file, line)
    """

    reflex_first: bool = False
    reflex_text: str | None = None
    reflex_file: str | None = None
    replay_text: str | None = None
    replay_file: str | None = None
    devices: dict = {}
    sentences: bytes | None = None
    sentences_file: str | None = None
    authorities: list = []
    channels: dict = field(
        default_factory=lambda: {section: struct() for section, struct in _OF_CHANNELS.items()}
    )
    place: Any = field(default_factory=lambda: LinePlace(FILE), name="read from")

    def where(self, *path) -> tuple:
        return self.place.where(path)


def load(sources: Sources, problems: Problems) -> Settings:
    """Return the Settings beside the manifest, defaults when there is no file; mistakes go to
    *problems*.
    """
    file_name = sources.find_path(FILE)
    if not sources.exists(FILE):
        return _read_sentences(Settings(place=LinePlace(file_name)), sources, problems)
    try:
        document = TOMLDocument(sources.read(FILE), file_name)
    except Refused as e:
        problems.add(LinePlace(file_name), (), e.message, hint=e.hint)
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
            setattr(settings, key + "_file", sources.find_path(known[key]))
            setattr(
                settings,
                key + "_text",
                _text(sources, known[key], _find_place(place, key, rules), problems),
            )
    if file is not None:
        for name in File.__struct_fields__:
            if name not in ("reflex", "replay"):
                setattr(settings, name, getattr(file, name))
        settings.devices = _devices(settings, sources, place, problems)
        if file.tls:
            settings.authorities = authorities(sources, file.tls.ca, place, problems)
        for section in _OF_CHANNELS:
            settings.channels[section] = getattr(file, section) or settings.channels[section]
    check_names(known.get("pins"), place, problems)
    return _read_sentences(settings, sources, problems)


def _read_sentences(settings: Settings, sources: Sources, problems: Problems) -> Settings:
    """Add the examples of the local model to *settings*, where there are any; return it."""
    name = settings.local.examples
    if sources.exists(name) or name != Local().examples:
        settings.sentences_file = sources.find_path(name)
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


def _find_place(place: Place, key: str, rules) -> Place:
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
        return decode(sources.read(name), sources.find_path(name))
    except Refused as e:
        problems.add(place, (), e.message, hint=e.hint)
    except ManifestErrors as e:
        problems.extend(e)
    return None
