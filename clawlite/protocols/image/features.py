"""What an image may require of the machine that runs it: abilities, provider APIs (CKP 0.2.0, 5.2),
and the kinds of channels (5.3) and exporters (5.10).  The compiler and the Linux shell must agree
on them.

Each is one row here, and the tables of both sides are made from the rows.  CONTRIBUTING.md says
what else a new one needs.  No board loads this module: the loader of its firmware and the core have
their own numbers and names, and tests compare those with the rows.
"""


class Package:
    """A package that only the agents with one kind of channel need.

    module  the module that is imported, which has ``__version__``
    name    the name of the package in its index
    major   the lowest major version that will do
    extra   the extra of clawlite that installs it (pyproject.toml)
    """

    def __init__(self, module: str, name: str, major: int, extra: str) -> None:
        self.module, self.name, self.major, self.extra = module, name, major, extra


class Kind:
    """One kind of channel; its number in images is its place in ``KINDS``.

    type      the ``type`` of such a Channel
    ability   the ability that an image requires; also the module in linux/channels, and the section
              of clawlite.toml
    triggers  bool, its messages are events: each begins a run of its own, without a conversation
    carries   bool, the tool ``message`` may write to it
    package   the ``Package`` that its module needs and that STARTING checks for, or None
    board     bool, boards have it without a gateway
    personal  bool, what comes is a person's own words
    """

    def __init__(
        self,
        type: str,
        ability: str,
        triggers: bool,
        carries: bool,
        package=None,
        board: bool = False,
        personal: bool = False,
    ) -> None:
        self.board, self.personal = board, personal
        self.type, self.ability, self.triggers, self.carries = type, ability, triggers, carries
        self.package = package


KINDS = (  # images contain these numbers: add a new one at the end
    Kind("cli", "access", False, True),
    Kind("cron", "cron", True, False, board=True),
    Kind("webhook", "webhook", False, False),
    Kind("telegram", "telegram", False, True, personal=True),
    Kind("queue", "mqtt", True, True, Package("paho.mqtt", "paho-mqtt", 2, "mqtt")),
)
APPROVALS = 28  # the section of an image that says who is asked (host/channels/approvals.py)
MAX_AUDIT_MB = 64  # that an audit may have when clawlite.toml says nothing
CLI = 0  # the console, which has no source of its own


class Api:
    """One HTTP API of remote models; its number in images is 2 and its place in ``APIS``.

    protocol  the ``protocol`` of such a Provider
    codec     the name of its module in core/providers and in host/providers; a board's slot has the
              former only when it is used
    """

    def __init__(self, protocol: str, codec: str) -> None:
        self.protocol, self.codec = protocol, codec


APIS = (  # images have the numbers: a new one goes to the end
    Api("openai-compatible", "openai"),
    Api("anthropic-native", "anthropic"),
)
API_NUMBERS = {api.protocol: 2 + place for place, api in enumerate(APIS)}
LOCAL_API = 100  # of builtin:local, in the place of an API's number: it has no codec
# the values of a Provider's ``protocol``; "custom" is for providers that need no network
PROTOCOLS = tuple([api.protocol for api in APIS]) + ("custom",)


class ExporterType:
    """One kind of telemetry exporter (5.10).

    needs      the field that such an exporter must have in the manifest: "path", "endpoint" or ""
    is_remote  bool, its data leaves this machine
    """

    def __init__(self, name: str, needs: str = "") -> None:
        self.name, self.needs, self.is_remote = name, needs, needs == "endpoint"


EXPORTERS = (  # images have the position: a new one goes to the end
    ExporterType("console"),
    ExporterType("file", "path"),
    ExporterType("sqlite", "path"),
    ExporterType("webhook", "endpoint"),
    ExporterType("otlp", "endpoint"),
)


class Ability:
    """Something that an image may require of a machine.

    linux, board  bool, which machines have it; a board's profile may name fewer
    network       bool, only a board with a network has it
    tools         categories of the built-in tools that need it (host/documents/registry)
    """

    def __init__(
        self,
        name: str,
        linux: bool = True,
        board: bool = False,
        network: bool = False,
        tools: str = "",
    ) -> None:
        self.name, self.linux, self.board, self.network = name, linux, board, network
        self.tools = tuple(tools.split())


ABILITIES = (
    Ability("audit", board=True),
    Ability("buses", board=True, tools="bus"),
    Ability("delegate", tools="swarm"),
    Ability("encryption"),
    Ability("files", tools="filesystem memory"),
    Ability("gateway", board=True),
    Ability("guard", board=True),
    Ability("guard-model"),
    Ability("http", board=True, network=True),
    Ability("https", board=True, network=True),
    Ability("lan", board=True, network=True),
    Ability("local"),
    Ability("log", board=True),
    Ability("mcp"),
    Ability("mediated", board=True, network=True),
    Ability("mediated-line", linux=False, board=True),
    Ability("memory", board=True),
    Ability("messages", tools="messaging"),
    Ability("page"),
    Ability("pins", board=True),
    Ability("process"),
    # channels that the gateway of a board carries
    Ability("relayed", linux=False, board=True),
    Ability("reflex", board=True),
    Ability("replay", board=True),
    Ability("rules", board=True),
    Ability("services"),
    Ability("shell", tools="shell"),
    Ability("swarm", board=True),
    Ability("stop-of-swarm", linux=False, board=True),
    Ability("teach", tools="rules"),
    Ability("telemetry"),
    Ability("tool-providers"),
    Ability("tools", board=True),
    Ability("tools.py", board=True),
    Ability("web", tools="network"),
) + tuple([Ability(kind.ability, board=kind.board) for kind in KINDS])

# sorted names, each
LINUX = tuple(sorted([ability.name for ability in ABILITIES if ability.linux]))
BOARDS = tuple(sorted([ability.name for ability in ABILITIES if ability.board]))  # as loader.py has
NETWORKED = tuple([ability.name for ability in ABILITIES if ability.network])


def read_approvals(image) -> tuple:
    """Return (names of the channels that are asked or None: all, what ``notify.Notify`` is given or
    None, whether a gateway may speak for admins) of *image*.
    """
    to, notify, *may_admin = image.section(APPROVALS) or (None, None)
    return to, notify, may_admin == [True]


def audit_mb(audit: list) -> int:
    """Return the MiB that the *audit* of a ``ScanConfig`` may use on Linux, 0: no bound."""
    return [*audit, MAX_AUDIT_MB][6]
