"""The table of the command line: every verb, what it takes, and what runs it.

1. The parser (command_line.py), the help and the completion (command_help.py) and docs/commands.md
   are made from it.  A verb is one row here and one function in linux/ or host/.
2. The function gets each option and each word of the verb as a named argument: ``--dry-run`` as
   ``dry_run``, MANIFEST as ``manifest``, or as ``dest``, where a name says more.
3. agent_verbs.py says what a row is, and has those of ``run``, ``ask``, ``serve`` and ``mcp``.
"""

from clawlite.agent_verbs import (
    AGENTS,
    HERE,
    HIDDEN,
    MANIFEST,
    MANY,
    PORT,
    REQUIRED,
    TALK,
    Option,
    Verb,
)

MAKE, BOARDS, LOOK = "Make an agent", "Bring it to a board", "Look after an agent"
TOGETHER, ITSELF = "Connect agents and devices", "clawlite itself"
GROUPS = (TALK, MAKE, BOARDS, LOOK, TOGETHER, ITSELF)
SHELLS = ("bash", "zsh", "fish")
SAME = {"gateway serve": "gateway"}  # another name of a verb

# fmt: off
_JSON = Option("--json", "", "one JSON document on stdout", dest="as_json")
_PORT = Option("--port", "PORT",
    "a device, a link to one, or an id of clawlite ports; else the only board")
_DIR = Option("--dir", "DIR", "a folder in its place: the --fs of a virtual board", dest="folder")
_FITS = Option("--board", "BOARD", "refuse what this board cannot do")
_BOARD = Option("--board", "BOARD",
    "check the agent for this board; else for that at the port")
_ALLOW = Option("--allow-folder", "DIR",
    "files of the manifest may also be here", kind=MANY, dest="allowed")
_YES = Option("--yes", "", "do not ask")
_NAMED = Option("--agent", "AGENT", "of this agent, whose image is not needed", place=HERE)
_OF_AGENTS = Option("--agent", "AGENT",
    "of this agent, whose image is not needed", kind=MANY, dest="agents")
_OF_GATEWAY = Option("--gateway", "", "of the boards of this machine's gateway")
_NUMBER = Option("NUMBER", "",
    "as the list has it; CHANNEL/NUMBER when several channels have that number")
_LAST = Option("-n", "N", "how many of the last", 20, (1, None), "count")
_DRY = Option("--dry-run", "", "show what would change, and change nothing")
_ID = Option("ID", "", "of a task; its first characters are enough")

TABLE = (
    *AGENTS,
    Verb("new", MAKE, "Make a project in the folder NAME. It builds and runs as it is.",
        "NAME", "host.cli.project:new",
        Option("--template", "TEMPLATE", "what it begins as", "greenhouse"),
        Option("--endpoint", "URL",
            "ask this server with an OpenAI-compatible API before the rules; else "
            "http://127.0.0.1:11434/v1"),
        Option("--model", "MODEL", "the name of the model on that server; else llama3.2"),
        Option("--offline", "", "use only rules; no model is asked"),
        Option("--board", "BOARD",
            "use pins of this board, and a gateway if it has no network")),
    Verb("check", MAKE,
        "Validate a manifest. Every problem has its file, its line and what was expected.",
        "[MANIFEST]", "host.cli.project:check", _FITS, _ALLOW, _JSON),
    Verb("build", MAKE,
        "Compile a manifest to an image. Shows sizes, dead and shadowed rules. Runs what the "
        "manifest names, as you and without a sandbox, to list its tools: programs of MCP "
        "servers, and tool providers in tools.py. Build only what you trust.",
        "[MANIFEST]", "host.cli.project:build",
        Option("-o", "FILE",
            "where the image goes; else claw.cbor beside the manifest", dest="output"),
        _FITS,
        Option("--key-file", "FILE", "sign the image with this device key"),
        Option("--refresh", "",
            "fetch again what came from other registries; refuse what has changed"),
        Option("--accept", "NAME",
            "ask the MCP server NAME again, and take what it has changed",
            kind=MANY, dest="accepted"),
        _ALLOW, _JSON),
    Verb("add", MAKE,
        "Add a driver to a project. From mip's index by NAME or NAME@VERSION, from "
        "github:ORG/REPO@TAG or gitlab:, the URL of a package.json or a .py, or a file here. It "
        "goes to the folder drivers, with those it needs, and its hash to clawlite.lock.",
        "DRIVER [MANIFEST]", "host.cli.project:add",
        Option("--index", "URL",
            "another index of mip; else $CLAWLITE_MIP_INDEX, else that of MicroPython"),
        Option("--replace", "", "also where the file, or what is pinned, is another one"),
        _DRY, _JSON),
    Verb("remove", MAKE, "Remove a driver from a project. Files that were changed here stay.",
        "DRIVER [MANIFEST]", "host.cli.project:remove",
        _DRY, _JSON),
    Verb("drivers", MAKE,
        "List the drivers of a project. With sources, sizes and hashes. Exit code 1 when a file is "
        "not what is pinned.",
        "[MANIFEST]", "host.cli.project:drivers", _JSON),
    Verb("discover", MAKE,
        "Ask MCP servers for the tools of services. Writes them to .claw-tools.json.",
        "[MANIFEST]", "host.cli.project:discover",
        Option("--service", "NAME", "only this one of clawlite.toml", kind=MANY, dest="names"),
        Option("--dry-run", "", "show what differs, and write nothing"),
        _JSON),
    Verb("inspect", MAKE, "Show what an image holds.",
        "IMAGE", "host.cli.project:inspect", _JSON),
    Verb("tools", MAKE,
        "Show every tool that an agent has. With arguments, sandbox, handler, and what policy "
        "will say.",
        MANIFEST, "host.cli.project:tools",
        Option("--may", "TOOL",
            "show only what policy says of this tool; with a manifest also of one that it lacks"),
        _JSON),
    Verb("boards", BOARDS, "Show the boards that are known. With BOARD, that one in full.",
        "[BOARD]", "host.cli.project:boards",
        _JSON),
    Verb("boards new", "",
        "Begin a profile of your own. Writes boards/NAME.toml after another board's.",
        "NAME", "host.cli.project:new_board",
        Option("--from", "BOARD", "the board to start from", kind=REQUIRED, dest="source")),
    Verb("ports", BOARDS, "Show what is attached. Ports, boards, who has them open.",
        "", "host.cli.board:ports",
        Option("--watch", "", "a line for each change, until Ctrl-C"),
        Option("--json", "", "one JSON document on stdout; with --watch one a line",
            dest="as_json")),
    Verb("flash", BOARDS,
        "Write an agent to a board, and see it boot. MANIFEST may be an image. What the board "
        "runs stays until the new one is whole, and is there to fall back to.",
        "[MANIFEST]", "host.cli.board:flash", _PORT,
        Option("--dir", "DIR",
            "write to this folder instead: a mounted card, the --fs of a virtual board",
            dest="folder"),
        Option("--ssh", "HOST",
            "a Raspberry Pi or other Linux machine, as ssh takes it: pi@raspberrypi.local"),
        Option("--firmware", "FILE",
            "MicroPython itself: UF2 onto a board's drive, an ESP image through esptool"),
        _BOARD,
        Option("--device-key", "FILE",
            "sign the image with this key; the board then runs only images that are signed with it",
            dest="key"),
        _DRY, _YES, _JSON),
    Verb("console", BOARDS,
        "Talk to a board over its serial port. Ctrl-] leaves, Ctrl-C and Ctrl-D go to the board. "
        "Without a terminal the lines of stdin go in one by one, as the board's prompt comes back.",
        "", "host.cli.board:console", _PORT,
        Option("--records", "", "show machine records too"),
        Option("--log", "FILE", "append all input and output to this file, with times"),
        Option("--prompt", "TEXT",
            "the prompt of the board, if it is not the default one", kind=MANY, dest="prompts"),
        Option("--timeout", "SECONDS",
            "how long a script waits for the board's prompt", 120.0, (0.1, None)),
        Option("--line", "MODE",
            "frames with checksums; auto: where the board has a UART",
            "auto", ("auto", "plain", "reliable"), "mode"), gives=("editor",)),
    Verb("wifi", BOARDS,
        "Let a board join the network SSID. Without SSID, show which it may join. The password "
        "comes from stdin, or is asked for without being shown. The board tries its networks in "
        "the order in which they came.",
        "[SSID]", "host.cli.board:wifi",
        Option("--port", "[PORT]", "the board; alone at the end: the only board"), _DIR,
        Option("--country", "CC",
            "the country of the board, two letters; it decides which radio channels are allowed"),
        Option("--open", "", "a network without a password", dest="is_open"),
        Option("--remove", "", "forget this network"),
        _JSON),
    Verb("logs", BOARDS,
        "Show a saved log of a board. Its tracebacks are decoded. FILE is what clawlite console "
        "--log or another terminal program saved; - is stdin.",
        "FILE", "host.cli.board:logs"),
    Verb("sim", BOARDS,
        "Start a virtual board. It is real MicroPython on a pseudo-terminal; Ctrl-C ends it.",
        "", "host.cli.board:sim",
        Option("--board", "BOARD", "the board to simulate, with its heap", "sim"),
        Option("--heap", "N", "size of the heap, such as 96k; words have 64 bits here"),
        Option("--pty-link", "PATH",
            "make this symbolic link to the port, which then stays the same", dest="link"),
        Option("--fs", "DIR",
            "keep the board's files in this folder; else they are removed at the end",
            dest="folder"),
        _JSON, windows=False),
    Verb("firmware", BOARDS,
        "Write what every MicroPython board gets. Into DIR: for mip, and for freezing into "
        "firmware of your own.",
        "DIR", "host.cli.board:firmware",
        Option("DIR", dest="folder"),
        _JSON),
    Verb("trace", LOOK,
        "Show why a past tool call ended as it did. Each rule that was looked at, and what "
        "decided. CALL is its number counted from the end (1, or last, is the last one), or the "
        "request_id of an operator. A board's call comes from its audit, or its log; the board is "
        "reset for that.",
        "[CALL] " + MANIFEST, "linux.admin.trace:show", PORT, _DIR, _JSON,
        gives=("board",), code=1),
    Verb("rehearse", LOOK,
        "Play the rules of an agent against recorded readings, in simulated time. It shows what "
        "would have run, when, and what policy decides. Nothing acts, and what an act would have "
        "changed is not simulated. Questions are answered as the log has it.",
        MANIFEST, "linux.admin.rehearse:show",
        Option("--since", "TIME", "how long ago it begins: 12h, 2d", "2d"),
        Option("--readings", "FILE",
            'samples in place of this machine\'s, lines of {"at", "reading", "value"}'),
        Option("--answer", "WORD", "what a person answers each question", None, ("yes", "no")),
        _JSON, code=1),
    Verb("audit", LOOK,
        "Show what is on record of an agent. Each call, what decided and what came of it. A board "
        "is reset for it.",
        MANIFEST, "linux.admin.audit:show",
        Option("--last", "N", "how many records, 0 for all", 20, (0, None)),
        PORT, _DIR, _JSON, gives=("board",), code=1),
    Verb("audit verify", "",
        "Look whether records were changed, removed, moved or cut off. Exit code 1 when something "
        "is wrong.",
        MANIFEST, "linux.admin.audit:show_verdict",
        Option("--anchor", "N:HASH",
            "also, whether record N is the one that was noted earlier, from what verify prints"),
        PORT, _DIR, _JSON, gives=("board",), code=1),
    Verb("audit take", "",
        "Move the records of a board to a file here. Verifies them, writes them to the new file "
        "AGENT-audit-FIRST-LAST.jsonl, and then removes them from the board, to make room.",
        MANIFEST, "linux.admin.audit:take",
        Option("--anchor", "N:HASH", "as for verify"),
        PORT, _DIR, _JSON, gives=("board",), code=1),
    Verb("secrets", LOOK, "Keep secrets of an agent or a board. By the names of secret_ref."),
    Verb("secrets set", "",
        "Keep a secret. Its value comes from stdin, or is asked for without being shown; with "
        "$CLAWLITE_SECRETS_KEY_FILE the store is encrypted (aes-256-gcm).",
        "NAME " + MANIFEST, "linux.admin.secrets:set_value", _NAMED, PORT, _DIR, _JSON,
        there="host.cli.board:set_secret", gives=("name_of",), code=1, windows=True),
    Verb("secrets login", "",
        'Sign a person in at an MCP server. ([mcp.NAME.oauth2] flow = "device") What lasts of it '
        "is kept under the name of its credential. It needs the image: clawlite build. Where a "
        "gateway calls the server, sign in on its machine, for all devices or, with NAME.DEVICE, "
        "for one.",
        "NAME " + MANIFEST, "linux.admin.secrets:login", _JSON, code=1, windows=True),
    Verb("secrets list", "", "List the names of the secrets.",
        MANIFEST, "linux.admin.secrets:show_names", _NAMED, PORT, _DIR, _JSON,
        there="host.cli.board:list_secrets", gives=("name_of",), code=1, windows=True),
    Verb("secrets remove", "", "Forget a secret.",
        "NAME " + MANIFEST, "linux.admin.secrets:remove", _NAMED, PORT, _DIR, _JSON,
        there="host.cli.board:remove_secret", gives=("name_of",), code=1, windows=True),
    Verb("people", LOOK,
        "Who may use an agent beyond stdio. By the page, or as an operator over HTTP or WebSocket, "
        "with the rights of a role."),
    Verb("people add", "",
        "Let a person use agents; a new token if they have one. NAME:TOKEN is printed this once. "
        "It logs them in at the page, and is the bearer of an operator.",
        "NAME " + MANIFEST, "linux.admin.people:add",
        Option("--role", "ROLE",
            "viewer: look; user: talk and call tools; admin: approve, stop, and all else",
            kind=("viewer", "user", "admin"), default="user"),
        _OF_AGENTS, _OF_GATEWAY, _JSON, gives=("name_of",), code=1),
    Verb("people list", "", "List who may use an agent.",
        MANIFEST, "linux.admin.people:show", _OF_AGENTS, _OF_GATEWAY, _JSON,
        gives=("name_of",), code=1),
    Verb("people remove", "",
        "Forget a person. Their token opens nothing more, and their sessions end.",
        "NAME " + MANIFEST, "linux.admin.people:remove", _OF_AGENTS, _OF_GATEWAY, _JSON,
        gives=("name_of",), code=1),
    Verb("channels", LOOK, "See messages that an agent has given up."),
    Verb("channels relay", "",
        "Speak to the platforms of the channels of boards. clawlite gateway starts it, and speaks "
        "to it by JSON.",
        "", "linux.channels.relay:run", code=1),
    Verb("channels dead", "",
        "List messages of queues that the agent has given up. Each time that it began one of "
        "them, the agent ended without warning.",
        MANIFEST, "linux.admin.dead_letters:show", _JSON, code=1),
    Verb("channels dead retry", "",
        "Run a message again. Within 10 s when the agent is running, otherwise when it starts.",
        "NUMBER " + MANIFEST, "linux.admin.dead_letters:retry", _NUMBER, _JSON, code=1),
    Verb("channels dead drop", "", "Delete a message.",
        "NUMBER " + MANIFEST, "linux.admin.dead_letters:drop", _NUMBER, _JSON, code=1),
    Verb("service", LOOK, "Let systemd start an agent."),
    Verb("service install", "",
        "Make systemd start an agent. One with channels besides its console, or in a swarm, runs "
        "from boot on, and is started again when it ends. With --tty, any agent runs so, on that "
        "terminal. Any other agent starts when somebody connects to its socket, one at a time. "
        "Run as root, the command makes units of the system, else units of your own.",
        "[IMAGE]", "linux.admin.service:install_unit",
        Option("--tty", "DEVICE", "serve this terminal"),
        Option("--as", "USER",
            "whom units of the system run as; else who called sudo", dest="user"),
        Option("--writable", "DIR",
            "a folder that a system service may write to, besides its state", kind=MANY),
        _DRY, _JSON),
    Verb("service remove", "", "Remove the service of an agent. Its state stays.",
        "NAME", "linux.admin.service:remove_unit", _DRY, _JSON),
    Verb("service status", "", "Show the services that are installed.",
        "[NAME]", "linux.admin.service:show_status", _JSON),
    Verb("service talk", "",
        "Connect to the socket of an agent. Passes lines between it and stdin and stdout.",
        "NAME", "linux.admin.service:relay_lines"),
    Verb("doctor", LOOK,
        "Show what is wrong here, and the command that mends it. Exit code 1 when something is.",
        "", "linux.doctor.doctor:show",
        Option("--port", "PORT", "look at that port"),
        _JSON),
    Verb("swarm", TOGETHER,
        "Agents that give each other tasks. MANIFEST or IMAGE is any agent of the swarm, built "
        "before, or the folder that holds their folders; without it, the current folder."),
    Verb("swarm up", "",
        "Start the agents in these folders. (Those of the current folder, unless named.) One "
        "process for each, started again when it ends; Ctrl-C ends all.",
        "[FOLDER]...", "linux.swarm_commands.up:up", Option("FOLDER", dest="folders"), code=1),
    Verb("swarm run", "",
        "Give the swarm a task, and wait for its report. Exit code 1 when it was not completed.",
        "TASK " + MANIFEST, "linux.swarm_commands.commands:run",
        Option("--to", "IDENTITY", "the member that gets it"),
        Option("--input", "JSON", "what the task works on"),
        _JSON, code=1),
    Verb("swarm status", "", "Show who is there, and the last tasks.",
        MANIFEST, "linux.swarm_commands.commands:show_status", _JSON, code=1),
    Verb("swarm trace", "", "Show what became of a task.",
        "ID " + MANIFEST, "linux.swarm_commands.commands:trace", _ID, _JSON, code=1),
    Verb("swarm dead", "", "List tasks that were given up.",
        MANIFEST, "linux.swarm_commands.commands:show_dead", _JSON, code=1),
    Verb("swarm dead retry", "", "Start a task again that was given up.",
        "ID " + MANIFEST, "linux.swarm_commands.commands:retry", _ID, _JSON, code=1),
    Verb("swarm dead drop", "", "Remove a task that was given up.",
        "ID " + MANIFEST, "linux.swarm_commands.commands:drop", _ID, _JSON, code=1),
    Verb("swarm stop", "", "Let no agent begin a tool with side effects, from now on.",
        MANIFEST, "linux.swarm_commands.commands:stop", _JSON, code=1),
    Verb("swarm resume", "", "Let them begin such tools again.",
        MANIFEST, "linux.swarm_commands.commands:resume", _JSON, code=1),
    Verb("swarm watch", "",
        "Tell whether it is stopped. A line of JSON at each change, until Ctrl-C or the end of "
        "stdin.",
        MANIFEST, "linux.swarm_commands.commands:watch", code=1),
    Verb("swarm acl", "",
        "Print the rights of the swarm's logins for its engine. Write passwords in place of "
        "PASSWORD. Name the boards of a gateway whose clawlite.toml names one user: that login "
        "speaks for all.",
        "ENGINE " + MANIFEST + "...", "linux.swarm_commands.commands:show_rights",
        Option("ENGINE", kind=("redis", "nats")),
        code=1),
    Verb("swarm remote", "",
        "Act as the members that are remote agents. ([swarm.remote.NAME]) Until Ctrl-C; up starts "
        "it.",
        MANIFEST, "linux.swarm_commands.commands:act_as_remotes", code=1),
    Verb("swarm stand-in", "",
        "Act as the members that are boards. clawlite gateway starts it, and speaks to it by JSON.",
        "", "linux.swarm_commands.commands:stand_in", code=1),
    Verb("swarm together", "",
        "Run the agents in these folders as one process. (Backend in-process.) up starts it.",
        "FOLDER...", "linux.swarm_commands.commands:run_together", code=1),
    Verb("page", TOGETHER,
        "Serve the page of this machine's agents. For people in a browser, and for operators over "
        "HTTP and WebSocket, all with tokens of clawlite people. It reaches agents that have "
        "[page] in clawlite.toml, or --socket. Serves until Ctrl-C.",
        "", "host.cli.page:serve",
        Option("--listen", "ADDRESS:PORT", "where it listens", "127.0.0.1:7430", dest="address"),
        Option("--agent", "AGENT", "only this one; else all of this machine", kind=MANY,
            dest="agents"),
        Option("--tls-cert", "FILE", "certificate for TLS, PEM", dest="certificate"),
        Option("--tls-key", "FILE", "its key, unless it is in the same file", dest="key"),
        Option("--behind-proxy", "HOST",
            "a reverse proxy serves it to browsers as https://HOST", dest="proxied"),
        Option("--host", "HOST", "a further name by which browsers reach it", kind=MANY,
            dest="names"),
        Option("--child", "", "end with the end of stdin", dest="is_child", place=HIDDEN),
        windows=False),
    Verb("gateway", TOGETHER,
        "Keys and network for devices without them. PROJECT is a folder with claw.yaml, a folder "
        "of those, or an image; else the current folder. Serves until Ctrl-C.",
        "[PROJECT]...", "host.cli.gateway:serve",
        Option("--port", "PORT", "a device, a link to one, or an id of clawlite ports", kind=MANY),
        Option("--listen", "ADDRESS:PORT",
            "serve devices on the LAN, which have tokens: clawlite gateway token NAME"),
        Option("--proxy", "ADDRESS:PORT",
            "serve runners that speak the HTTP API of OpenAI or Anthropic, which have tokens, too"),
        Option("--a2a", "ADDRESS:PORT",
            "start the agent of PROJECT, and serve it to agents that speak A2A and have tokens"),
        Option("--a2a-url", "URL", "where A2A clients reach --a2a, if it is another address"),
        Option("--a2a-approver", "NAME",
            "the token NAME may approve calls of its tasks over A2A", kind=MANY, dest="approvers"),
        Option("--tls-cert", "FILE",
            "certificate for --listen, --proxy and --a2a, PEM", dest="certificate"),
        Option("--tls-key", "FILE", "its key, unless it is in the same file", dest="key"),
        Option("--uncontained", "NAME",
            "start the program of the MCP server NAME without a sandbox", kind=MANY),
        gives=("secret", "sandboxes")),
    Verb("gateway token", "",
        "Make the token of the device, runner or client NAME. NAME:TOKEN is printed this once: "
        "the board's secret GATEWAY_TOKEN, the API key of a runner, or the bearer of a client.",
        "NAME", "host.cli.gateway:token",
        Option("--for", "DOOR",
            "what it opens: device, proxy, a2a or mcp; several between commas",
            "device", dest="doors")),
    Verb("gateway devices", "",
        "Show the devices that were here. Agent, image, when, and what each has spent.",
        "", "host.cli.gateway:devices", _JSON),
    Verb("gateway history", "", "Show what was asked and answered.",
        "", "host.cli.gateway:history", _LAST, _JSON),
    Verb("gateway audit", "", "Show what happened.",
        "", "host.cli.gateway:audit", _LAST, _JSON),
    Verb("bench", ITSELF,
        "Measure this machine or a board. Times and memory, beside machines that were measured "
        "before.",
        "[SUITE]...", "host.cli.bench:bench",
        Option("SUITE", "", "what to measure, all of them else; a wrong one lists them",
            dest="suites"),
        Option("--here", "", "measure this device without a compiler and other packages"),
        Option("--ssh", "HOST", "a Raspberry Pi or other Linux machine, as ssh takes it"),
        Option("--port", "PORT", "a board: a device, a link to one, or an id of clawlite ports"),
        Option("--sim", "",
            "measure what a board must withstand, on MicroPython here: the suites micropython and "
            "boards"),
        Option("--compare", "BEFORE AFTER",
            "compare two files of -o, and measure nothing; exit code 1 when something got worse"),
        Option("--rounds", "N", "samples of each case, taken in turns", 31, (2, 1000)),
        Option("-o", "FILE.jsonl", "write the rows here too", dest="output"),
        Option("--json", "", "JSON lines on stdout, one a row", dest="as_json")),
    Verb("conformance", ITSELF, "Show what this runtime declares, and what its tests hold it to.",
        "", "host.cli.project:conformance", _JSON),
    Verb("completion", ITSELF,
        "Print what lets a shell complete commands. Verbs, options, boards and templates. In its "
        "start-up file: source <(clawlite completion bash), the same with zsh, or clawlite "
        "completion fish | source.",
        "SHELL", "command_help:print_script",
        Option("SHELL", kind=SHELLS),
        windows=True),
    Verb("completion words", "", "",
        "[WORD]...", "command_help:print_candidates", gives=("names",), windows=True),
)
# fmt: on
VERBS = {verb.name: verb for verb in TABLE}
