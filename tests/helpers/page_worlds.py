"""What the blocks of README and docs/ are played in (host/cli/test_pages.py): a project from a
template, a virtual board, servers of this machine.
"""

import contextlib
import json
import os
import shutil
import textwrap
import time
from pathlib import Path

import channel_world
import gateways
import local_model
import local_wheel
import mcp_agents
import mcp_oauth
import pytest
import ssh_server
import tutorials
from agents import ROOT, Agent, clawlite, eventually, linux
from free_ports import free_port
from llm_server import Server, say
from mip_index import Index
from sims import needs_micropython, needs_mpy_cross
from trading_desk import Desk
from tutorials import World

from clawlite.host.compiler import compiler
from clawlite.host.firmware import firmware, functions
from clawlite.linux.channels.dead_letters import DeadLetters
from clawlite.linux.rules.samples import Samples

WORLDS = {}
JOBS = {
    "type": "queue",
    "transport": "polling",
    "access_control": {"mode": "open"},
    "trigger": {"queue_name": "t/jobs", "overlap_policy": "queue"},
}
HEAD = """claw: "0.3.0"
kind: Claw
metadata: { name: "x", version: "1.0.0" }
spec:
  identity: { inline: { name: "x", personality: "You help.", autonomy: "autonomous" } }
  providers:
    - inline:
        name: "reflex"
        protocol: "custom"
        endpoint: "builtin:reflex"
        model: "reflex"
        auth: { type: "none" }
"""
ROOM = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "title": "City"},
            "nights": {"type": "integer", "default": 2},
        },
        "required": ["city"],
    },
}
DEVICE = "firmware-host/micropython/runtime/device.py"
SOIL = """
[[reading]]
name = "soil"
tool = "read-soil"
field = "percent"
every = "60s"
keep = "2d"
"""
MORNING = """
[[rule]]
name = "morning-water"
at = "07:00"
if = "soil < 30"
call = "water"
arguments = { seconds = 3 }
"""


def world(*keys: str):
    """Say of which blocks a function makes the world: ``make(folder)`` yields (the folder in which
    the block begins, its World).
    """

    def put(make):
        for key in keys:
            assert key not in WORLDS, key
            WORLDS[key] = contextlib.contextmanager(make)
        return make

    return put


def require(mark) -> None:
    """Skip the test where *mark* would."""
    if mark.args[0]:
        pytest.skip(mark.kwargs["reason"])


def free_address() -> str:
    return "127.0.0.1:%d" % free_port()


def run(here: Path, *words, stdin: bytes = b"", code: int = 0, **env) -> str:
    done = clawlite(*words, cwd=here, stdin=stdin, **env)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout


def make_greenhouse(folder: Path, *words: str) -> Path:
    run(folder, "new", "greenhouse", *(words or ("--offline",)))
    return folder / "greenhouse"


def add_policy(project: Path, text: str) -> None:
    with (project / "policy.yaml").open("a") as file:
        file.write(text)


@world("README clawlite run --socket", "page $ clawlite run --socket")
def open_page(folder):
    address, project = free_address(), make_greenhouse(folder)
    yield (
        project,
        World(
            {"clawlite page": "clawlite page --listen " + address, "127.0.0.1:7430": address},
            stays={"clawlite run": "is ready", "clawlite page": "the page is at"},
        ),
    )


@world("a2a clawlite gateway token")
def open_a2a(folder):
    if not shutil.which("curl"):
        pytest.skip("no curl")
    make_greenhouse(folder)
    address = free_address()
    one = World({"127.0.0.1:8090": address}, stays={"clawlite gateway greenhouse": "http"})
    yield folder, one
    assert "waits for an approval" in one.seen[-1], one.seen


@world("audit $ clawlite audit")
def open_audit(folder):
    project = make_greenhouse(folder)
    add_policy(project, '  audit: { destination: "file" }\n')
    run(project, "ask", "is the soil dry?", "--approve")
    run(project, "build")
    yield project, World()


@world("boards $ clawlite build --board esp32-c3", "policy $ clawlite tools --may")
@world("containers $ clawlite build")
def open_greenhouse(folder):
    yield make_greenhouse(folder), World()


@world("policy $ clawlite trace")
def open_two_calls(folder):
    project = make_greenhouse(folder)
    run(project, "ask", "is the soil dry?", "--approve")
    yield project, World()


@world("channels $ clawlite channels dead")
def open_dead_letters(folder):
    made = channel_world.project(folder, {"jobs": JOBS}, '[mqtt]\naddress = "mqtt://127.0.0.1:1"\n')
    (folder / "claw.cbor").write_bytes(compiler.build(made).data)
    box = DeadLetters(str(folder / "state/channelled/channels/jobs.dead"))
    box.put("ann", "water the beds", b"", "it was started 3 times", 1_800_000_000)
    yield folder, World(env={"CLAWLITE_STATE": folder / "state"})


@world("doctor $ clawlite doctor")
def open_open_secret(folder):
    """A secret that others may read, and nothing else of this machine."""
    project = make_greenhouse(folder)
    run(project, "secrets", "set", "MODEL_KEY", stdin=b"k\n")
    (project / ".home/state/greenhouse/secrets/MODEL_KEY").chmod(0o644)
    yield project, World()


def make_driver(folder: Path, index: Index) -> tuple:
    index.publish("hts221", {"hts221.py": '"""A driver."""\n'}, "0.1.0")
    project = make_greenhouse(folder)
    with (project / "tools.py").open("a") as file:
        file.write("\nimport hts221\n")
    names = {
        "https://micropython.org/pi/v2": index.url,
        "0.1.0 --replace": "0.1.0 --index %s --replace" % index.url,
    }
    return project, World(names, env={"CLAWLITE_MIP_INDEX": index.url})


@world("drivers $ clawlite add hts221")
def open_index(folder):
    with contextlib.closing(Index()) as index:
        yield make_driver(folder, index)


@world("drivers $ clawlite check")
def open_changed_driver(folder):
    with contextlib.closing(Index()) as index:
        project, one = make_driver(folder, index)
        run(project, "add", "hts221", **one.env)
        (project / "drivers/hts221.py").write_text("changed = True\n")
        yield project, one


@contextlib.contextmanager
def plug_in(folder: Path, *words: str):
    """A virtual board at the link ``board`` in *folder*; give the World that has it."""
    require(needs_micropython)
    require(needs_mpy_cross)
    state = {"CLAWLITE_STATE": folder / "state"}
    link = str(folder / "board")
    words = linux("sim", "--fs", folder / "flash", "--pty-link", link, *words)
    with Agent(words, folder / "at_board", env=state) as board:
        board.expect("/dev/pts/")
        port = os.path.realpath(link)
        names = {"/dev/ttyACM0": port, "--port P": "--port " + port, ":ID": ":sim:" + link}
        one = World(names, env=state, stays={}, typed={})
        yield one


@world("boards-tools $ clawlite sim")
def open_sim(folder):
    require(needs_micropython)
    link = str(folder / "board")
    env = {"CLAWLITE_STATE": folder / "state"}
    yield folder, World({"~/board": link, "/home/ada/board": link}, env=env)


@world("flash $ clawlite flash  ")
def open_pico(folder):
    project = make_greenhouse(folder, "--board", "pico", "--offline")
    with plug_in(folder, "--board", "pico") as one:
        yield project, one


@world("flash $ clawlite flash --ssh")
def open_pi(folder):
    project = make_greenhouse(folder)
    require(ssh_server.needs_sshd)
    with ssh_server.Server(folder) as server:
        yield project, World({"pi@raspberrypi.local": "pi"}, env={"PATH": server.path})


@world("raspberry-pi $ clawlite flash --ssh")
def open_pi_with_service(folder):
    project = make_greenhouse(folder)
    require(ssh_server.needs_sshd)
    with ssh_server.Server(folder) as server:
        names = {
            "flash --ssh pi@claw.local": "flash --yes --ssh pi",
            "pi@claw.local ": "pi %s/" % server.home,
            "service install": "service install --dry-run --as nobody",
        }
        yield project, World(names, env={"PATH": server.path})


@world("flash $ clawlite logs board.log")
def open_board_log(folder):
    require(needs_mpy_cross)
    number = functions.build_of(firmware.link()[0])
    [inner] = [
        (module, short)
        for module, found in functions.fetch(number).items()
        for short, origins in found.items()
        if [origin[:2] for origin in origins] == [[DEVICE, "Device.event"]]
    ]
    (folder / "board.log").write_text(
        'Traceback (most recent call last):\n  File "main-%s", line 1, in run\n'
        '  File "%s", line 1, in %s\nValueError: x\n' % (number, *inner)
    )
    yield folder, World({"main-9636645c": "main-" + number, "_48": inner[1]})


@world("policy $ clawlite tools\n")
def open_policy(folder):
    tools = ["read-file", "write-file", "web-fetch", "exec-shell"]
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "claw.yaml").write_text(
        HEAD
        + textwrap.indent(read_block_of("policy.md", "yaml"), "  ")
        + "  tools:\n"
        + "".join('    - "claw://registry/clawlite/%s@1.0.0"\n' % name for name in tools)
    )
    yield folder, World()


def read_block_of(page: str, language: str) -> str:
    """Return the first block of a page in *language*."""
    blocks = tutorials.list_blocks((ROOT / "docs" / page).read_text())
    return next(block.body for block in blocks if block.language == language)


@world("mcp-serve clawlite secrets set MCP_TOKEN")
def open_served(folder):
    project = make_greenhouse(folder)
    yield (
        project,
        World(
            {"--http 8000": "--http 0"},
            stays={"clawlite mcp serve": "/mcp"},
            typed={"secrets set": "t-canary-0123456789\n"},
        ),
    )


def make_record(folder: Path, rules: str) -> Path:
    """Return a greenhouse whose soil has been dry for two days."""
    project = make_greenhouse(folder)
    with (project / "reflex.toml").open("a") as file:
        file.write(SOIL + rules)
    run(project, "build")
    samples = Samples(str(project / ".home/state/greenhouse"), {"soil": (172800, 0)})
    now_s = int(time.time())
    for ago_s in range(60 * 2880 - 30, 0, -60):
        samples.add("soil", now_s - ago_s, 21)
    samples.write(now_s, at_once=True)
    samples.close()
    return project


@world("rules > every day")
def open_lesson(folder):
    project = make_record(folder, "")
    words = linux("run")
    with Agent(words, project / ".home", True, cwd=project, env={"TERM": "dumb"}) as agent:
        one = World()
        one.running.append(agent)
        yield project, one
        agent.expect("Taught: water-1")


@world("rules $ clawlite rehearse")
def open_record(folder):
    """The rule was due twelve hours ago."""
    due = time.strftime("%H:%M", time.gmtime(time.time() - 43200))
    yield make_record(folder, MORNING.replace("07:00", due)), World()


@contextlib.contextmanager
def go_first():
    """Let what this process starts run before other work, as the model's engine needs."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    local_model.in_turn()
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


@world("local clawlite local fetch")
def open_model(folder):
    require(local_model.needs_model)
    wheel = local_wheel.make_wheel(folder)
    local_wheel.make_index(folder, wheel)
    project = make_greenhouse(folder, "--local")
    with (project / "clawlite.toml").open("a") as file:
        file.write("\n[local]\ntimeout_ms = %d\n" % local_model.TIMEOUT_MS)
    run(project, "build")
    with local_wheel.serve(folder) as address, go_first():
        # by the shell: a child of this process
        names = {"clawlite local try": "exec clawlite local try"}
        yield project, World(names, env=local_wheel.index_environment(address))


@world("gateway clawlite flash --port /dev/ttyACM0")
def open_gateway(folder):
    with Server([say("It is green.")]) as server, plug_in(folder) as one:
        gateways.project(folder / "garden", server.endpoint)
        one.env["GARDEN_KEY"] = gateways.KEY
        one.instead["clawlite flash"] = "clawlite flash --yes"
        one.stays["clawlite gateway"] = "runs garden"
        one.typed["clawlite console"] = "hello\n"
        yield folder / "garden", one
        assert "It is green." in one.seen[-1]


@world("gateway $ clawlite ask hello")
def open_other_image(folder):
    """The board was flashed before the project changed."""
    with plug_in(folder) as one:
        project = folder / "garden"
        one.env["GARDEN_KEY"] = gateways.KEY
        gateways.project(project, "http://127.0.0.1:9/v1")
        run(project, "flash", "--yes", "--port", folder / "board", **one.env)
        gateways.project(project, "http://127.0.0.1:10/v1")
        words = linux("gateway", "garden", "--port", folder / "board")
        with Agent(words, folder / "home", cwd=folder, env=one.env) as gateway:
            eventually(lambda: "garden" in gateway.errors())
            yield folder, one


@world("gateway clawlite wifi")
def open_lan(folder):
    address = free_address()
    with plug_in(folder) as one:
        more = 'wire = "tcp"\naddress = "%s"\n' % address
        gateways.project(folder / "garden", "http://127.0.0.1:9/v1", gateway=more)
        one.env["GARDEN_KEY"] = gateways.KEY
        one.instead.update({"clawlite flash": "clawlite flash --yes", "192.168.1.2:7420": address})
        one.stays["clawlite gateway ."] = address
        one.typed["clawlite wifi"] = "password1\n"
        yield folder / "garden", one


@world("mcp The MCP server booking")
def open_booking(folder):
    tools = [mcp_agents.tool("find-room", "echo", "booking")]
    project = mcp_agents.write(folder, ("asks",), tools=tools)
    for name, old, new in (
        ("clawlite.toml", "[mcp.t]", "[mcp.booking]"),
        ("reflex.toml", '"echo"', '"find-room"'),
    ):
        (project / name).write_text((project / name).read_text().replace(old, new))
    (folder / "marks/asks").write_text(json.dumps([ROOM]))
    run(project, "build")
    words = linux("run")
    with Agent(words, folder / "home", True, cwd=project, env={"TERM": "dumb"}) as agent:
        agent.expect("> ")
        agent.line("say go")
        one = World()
        one.running.append(agent)
        yield project, one
        agent.expect('"nights": 2')


@world("mcp clawlite flash . --port P")
def open_mediated(folder):
    tools = [mcp_agents.tool("echo", "echo")]
    project = mcp_agents.write(folder, (), "board", tools=tools)
    with (project / "clawlite.toml").open("a") as file:
        file.write('mode = "mediated"\n[gateway]\n')
    with plug_in(folder) as one:
        one.instead["clawlite flash"] = "clawlite flash --yes"
        one.stays["clawlite gateway"] = "runs served"
        yield project, one


@world("mcp $ clawlite build")
def open_sign_in(folder):
    with make_sign_in(folder) as (names, project):
        yield project, World(names, asks=("clawlite build",))


@world("mcp $ clawlite secrets login")
def open_sign_in_at_gateway(folder):
    with make_sign_in(folder, 'mode = "mediated"\n[gateway]\n') as (names, project):
        mcp_oauth.signed_in_build(folder, project)
        yield folder, World(names)


@contextlib.contextmanager
def make_sign_in(folder: Path, settings: str = ""):
    """Servers where a person agrees to each code, and the project garden that signs in there."""
    with mcp_oauth.Published(folder / "servers") as servers:
        servers.tell("agree")
        more = mcp_oauth.person(servers).replace("SIGNED_IN", "DOCS_SIGN_IN")
        if settings:
            more = more.replace("[mcp.t.oauth2]", "[mcp.t]\n%s[mcp.t.oauth2]" % settings)
        mcp_oauth.agent_of(folder, servers, more).rename(folder / "garden")
        address = "127.0.0.1:%d" % servers.authority
        yield (
            {
                "https://auth.example.com": "http://" + address,
                "auth.example.com": address,
            },
            folder / "garden",
        )


@world("page $ clawlite gateway shed")
def open_boards_page(folder):
    project = make_greenhouse(folder)
    project.rename(folder / "shed")
    address = free_address()
    with plug_in(folder) as one:
        with (folder / "shed/clawlite.toml").open("a") as file:
            file.write("[gateway]\n")
        run(folder / "shed", "flash", "--yes", "--port", folder / "board", **one.env)
        one.instead["127.0.0.1:7430"] = address
        one.stays["clawlite gateway"] = address
        yield folder, one


@world("services $ clawlite run")
def open_desk(folder):
    with Desk("t-canary") as desk:
        address = desk.url.removeprefix("http://")
        yield folder, World({"127.0.0.1:4000": address}, env={"DESK_TOKEN": "t-canary"})


@world("services clawlite gateway token")
def open_mediated_desk(folder):
    with Desk("t-canary") as desk:
        address = free_address()
        blocks = tutorials.list_blocks((ROOT / "docs/services.md").read_text())
        [more] = [block.body for block in blocks if 'mode = "mediated"' in block.body]
        for block in blocks:
            if block.name:
                path = folder / "analyst" / block.name
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_text(block.body)
        settings = folder / "analyst/clawlite.toml"
        text = settings.read_text().partition("[services.desk]")[0] + more
        text = text.replace("127.0.0.1:4000", desk.url.removeprefix("http://"))
        settings.write_text(text.replace("127.0.0.1:7420", address))
        yield (
            folder,
            World(
                {"127.0.0.1:7420": address, "DESK_TOKEN=...": "DESK_TOKEN=t-canary"},
                stays={"GATEWAY_TOKEN": "is ready", "DESK_TOKEN": address},
            ),
        )
