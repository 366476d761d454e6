"""What a row of the table of the command line is, and the rows of what starts an agent.

They stand apart from verbs.py, which has all others, because an agent reads them before it is
READY: making all rows takes longer than 1 % of its start.
"""


class Option:
    """An option of a verb; or, by its name in ``words``, what is to be known of a word.

    metavar  what its value is called; "" for a flag, "[PORT]" where it may be left out (it is ""
             then), two words for two values
    default  what the function gets without it; False for a flag, () where it is MANY
    kind     MANY: may be repeated; REQUIRED; (least, most): a number, whole where *least* is; or
             the words that it may be
    dest     the name of the function's argument
    place    HERE: not on a board; THERE: only with --port or --dir; HIDDEN: for programs
    """

    __slots__ = ("name", "metavar", "about", "default", "kind", "_dest", "place")

    def __init__(self, name, metavar="", about="", default=None, kind=None, dest="", place=""):
        self.name, self.metavar, self.about, self.default = name, metavar, about, default
        self.kind, self._dest, self.place = kind, dest, place

    @property
    def dest(self) -> str:
        return self._dest or self.name.lstrip("-").replace("-", "_").lower()


class Verb:
    """A verb: "run"; or "swarm run", which is below "swarm".

    group    under which the help lists it; "": the help of the verb above it does
    about    what it does; its first sentence is what lists say
    words    "TEXT [MANIFEST|IMAGE]"; "FOLDER..." is one or more, "[FOLDER]..." any number
    run      "linux.admin.trace:show", module and function; the first word is the layer that runs it
    there    the same, with --port or --dir; a verb without either has only verbs below it
    gives    names of what command.py gives to the function
    code     exit code of an error that names none
    windows  whether it runs there; unless it is said, what the host runs does
    """

    def __init__(
        self, name, group, about, words="", run="", *options,
        there="", gives=(), code=2, windows=None,
    ):  # fmt: skip
        self.name, self.group, self.about, self.words, self.run = name, group, about, words, run
        self.there, self.gives, self.code = there, gives, code
        self._options, self._windows = options, windows

    @property
    def options(self) -> list:
        return [one for one in self._options if one.name.startswith("-")]

    @property
    def words_by_name(self) -> dict:
        """{its name: what is known of a word}"""
        return {one.name: one for one in self._options if not one.name.startswith("-")}

    @property
    def windows(self) -> bool:
        return self.run.startswith("host.") if self._windows is None else self._windows


MANY, REQUIRED = "many", "required"
HERE, THERE, HIDDEN = "here", "there", "hidden"
TALK = "Talk to an agent"  # the other groups are in verbs.py
AGENT = "linux.admin.commands:run"  # command.py compiles a manifest first

# fmt: off
MANIFEST = "[MANIFEST|IMAGE]"
_SOCKET = Option("--socket", "",
    "open the control socket, for clawlite page; [page] in clawlite.toml does so, too", place=HERE)
_BUILT = Option("--built", place=HIDDEN)  # the image was compiled for this start, by command.py
_RECORD = Option("--record", "FILE",
    "append each turn, as the provider builtin:replay plays it", place=HERE)
PORT = Option("--port", "[PORT]", "of the agent on a board; alone at the end: the only board")

AGENTS = (
    Verb("run", TALK,
        "Talk to an agent on this terminal. /help there lists its commands. With --port it is "
        "built, flashed to a board, and runs there.",
        MANIFEST, AGENT,
        Option("--port", "[PORT]", "the board; alone at the end: the only board"),
        Option("--board", "BOARD", "check the agent for this board", place=THERE),
        Option("--yes", "", "do not ask before it is flashed", place=THERE),
        _SOCKET, _RECORD, _BUILT, there="host.cli.board:run", gives=("editor",)),
    Verb("ask", TALK, "Ask an agent once. Exit code 5 when policy, a sandbox or a person said no.",
        "TEXT " + MANIFEST, AGENT, PORT,
        Option("--approve", "", "approve every call that asks first"),
        Option("--timeout", "SECONDS",
            "how long the answer of a board may take", 120.0, (0.1, None), place=THERE),
        _RECORD, _BUILT, there="host.cli.board:ask"),
    Verb("serve", TALK,
        "Serve operators by CKP JSON-RPC. With --stdio on stdin and stdout, one JSON document a "
        "line. In a folder without an agent: the one of the manifest in claw.initialize, with "
        "inline primitives only.",
        MANIFEST, AGENT,
        Option("--stdio", "", "on stdin and stdout, with the rights of the owner"),
        Option("--listen", "ADDRESS:PORT",
            "start the page of this agent there, for people with tokens (clawlite people)"),
        Option("--tls-cert", "FILE", "as of clawlite page", dest="certificate"),
        Option("--tls-key", "FILE", "as of clawlite page", dest="key"),
        Option("--behind-proxy", "HOST", "as of clawlite page", dest="proxied"),
        Option("--host", "HOST", "as of clawlite page", kind=MANY, dest="names"),
        Option("--folder", "DIR",
            "by files in DIR/inbox and DIR/outbox, which are this user's alone", dest="exchange"),
        _SOCKET, _BUILT),
    Verb("mcp", TALK, "Serve the tools of an agent to MCP clients."),
    Verb("mcp serve", "",
        "Serve the agent's tools to an MCP client, which starts this command and talks on its "
        "stdin and stdout. Each call goes through policy, approval, sandbox and audit. Clients "
        "over HTTP send the agent's secret MCP_TOKEN as Bearer (clawlite secrets set MCP_TOKEN), "
        "or a token of this machine's gateway: clawlite gateway token NAME --for mcp.",
        MANIFEST, AGENT,
        Option("--http", "[ADDRESS:]PORT",
            "serve Streamable HTTP at http://ADDRESS:PORT/mcp, to this machine alone"),
        Option("--port", "PORT", "the tools of the agent that runs on a board"),
        _BUILT, there="host.cli.board:serve_tools"),
)
# fmt: on
