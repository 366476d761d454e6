"""``clawlite swarm``: its verbs, with the standard library alone.

A swarm's file says all there is to know, whether its agents run or not."""

import os
import sys
from contextlib import contextmanager

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import SWARM
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import image_of
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.bus_protocol import CommandBus
from clawlite.linux.swarm.status import describe, stop_row, task_row
from clawlite.linux.swarm_commands.results import result_lines
from clawlite.protocols.swarm.swarm import DEAD, Swarm

SHOWN = 20  # tasks of a status
_NAMED = 5  # agents in an error
_PERSON = "a person"  # who stops and resumes
_STATE = 2  # position in a row of ``Bus.tasks``
_TEXT = 60  # characters of a description in a list
_DONE_TEXTS = {  # what a person reads when the verb has done it
    "stop": "The swarm %s is stopped: no tool with side effects begins in it until "
    "clawlite swarm resume.",
    "resume": "The swarm %s is resumed: its tools with side effects may begin again.",
    "retry": "Task %s begins again.",
    "drop": "Task %s is dropped.",
}
_STOP_REACHED = (
    "%d of %d processes of its agents are running and know it now; the others learn of it "
    "when they start."
)


def stand_in() -> int:
    """Act as the members that are boards; the agents come from standard input.  Returns the exit
    code, as the others; they raise ``ClawError``.
    """
    from clawlite.linux.swarm_commands.board_proxy import BoardProxy

    return BoardProxy().run()


def show_rights(engine: str, manifest: list):
    """Print the rights of the swarm's logins."""
    from clawlite.linux.swarm_commands.acl import acl

    print_line(*acl(engine, *_with_logins(manifest)).split("\n"))


def run(task: str, manifest, to, input, as_json: bool) -> int:
    """Give the swarm a task; return the exit code."""
    from clawlite.linux.swarm_commands.run_task import run_task

    if not task.strip():
        raise BadUsage("expected a TASK", "clawlite swarm run TASK")
    task_options = task, to, input, as_json
    swarm, _ = _swarm_and_image(manifest)
    if not swarm.is_shared:
        return _run_in_process(swarm, manifest, task_options)
    swarm, bus = open_bus(manifest, True)
    return run_task(swarm, bus, *task_options)


def act_as_remotes(manifest) -> int:
    """Act as the members that are remote agents."""
    from clawlite.linux.swarm_commands.remotes import Remotes

    return Remotes(_image_in_swarm(manifest or ".")).run()


def run_together(folder: list) -> int:
    """Run the agents in these folders as one process."""
    return _run_agents([image_of(one) for one in folder])


def _run_agents(paths: list) -> int:
    """Run the agents of a swarm in this process until a signal comes."""
    from clawlite.linux.swarm_commands.in_process import InProcessSwarm, images_of

    agents = InProcessSwarm(images_of(paths), 1, True)
    try:
        return agents.run()
    finally:
        agents.close()


def _run_in_process(swarm: Swarm, manifest, task_options: tuple) -> int:
    """Start all agents of *swarm*, which lie side by side, in this process, for one task."""
    from clawlite.linux.swarm_commands.in_process import InProcessSwarm, images_of, swarm_of
    from clawlite.linux.swarm_commands.run_task import run_task

    folder = os.path.dirname(os.path.abspath(_image_in_swarm(manifest or ".")))
    paths = [image_of(one) for one in _agents_in(os.path.dirname(folder))]
    paths = [path for path in paths if getattr(swarm_of(path), "name", "") == swarm.name]
    agents = InProcessSwarm(images_of(paths), 2)
    try:
        swarm.share_process()
        return run_task(swarm, agents.end_of_bus(), *task_options, agents)
    finally:
        agents.close()


def _swarm_and_image(manifest) -> tuple:
    """Return (``Swarm``, image) of the agent *manifest*, None: of that in the current folder.
    Raises ``ClawError``.
    """
    image = files.open_image(_image_in_swarm(manifest or "."))
    if not image.size_of(SWARM):
        raise ClawError("%s is in no swarm" % image.agent.name, "declare one: docs/swarm.md")
    return Swarm(image.section(SWARM)), image


def _image_in_swarm(name: str) -> str:
    """Return the path of the image of the agent *name*; where that is a folder of agents (one in
    which ``swarm up`` works), of one of them that is in a swarm.
    Raises ``ClawError``: they are in more than one swarm.
    """
    path = image_of(name)
    found = [] if os.path.exists(path) else _members_in(name)
    if not found:
        return path
    if len({swarm.name for _, swarm in found}) > 1:
        raise ClawError(
            "%s: the agents in this folder are in more than one swarm" % name,
            "name an agent: %s"
            % ", ".join("%s (swarm %s)" % (one, swarm.name) for one, swarm in found[:_NAMED]),
        )
    return image_of(found[0][0])


def _members_in(folder: str) -> list:
    """Return [(folder, ``Swarm``)] of the agents in *folder* that are built and in a swarm.
    Raises ``ClawError`` when there is none, and the image of one cannot be read.
    """
    found, fault = [], None
    for agent in _agents_in(folder):
        try:
            image = files.open_image(image_of(agent))
        except ClawError as e:
            fault = e
            continue
        if image.size_of(SWARM):
            found.append((agent, Swarm(image.section(SWARM))))
    if fault and not found:
        raise fault
    return found


def _with_logins(names: list) -> tuple:
    """Return (``Swarm``, {identity: the login that its clawlite.toml names}) of the agents *names*,
    else of those in the current folder.  Raises ``ClawError``: they are not in one swarm.
    """
    names = names or _agents_here()
    users, swarms = {}, [_swarm_and_image(name)[0] for name in names]
    for swarm in swarms:
        if swarm.name != swarms[0].name:
            raise ClawError(
                "acl: expected agents of one swarm, got %s and %s" % (swarms[0].name, swarm.name),
                "ask for each swarm by itself",
            )
        if swarm.engine:
            *_, user, _, _ = swarm.engine
            users[swarm.own.identity] = user
    return swarms[0], users


def _agents_here() -> list:
    """Return the agent of the current folder, or the folders of the members of a swarm in it."""
    members = [] if os.path.exists(image_of(".")) else _members_in(".")
    return [folder for folder, _ in members] or ["."]


def _agents_in(folder: str) -> list:
    """Return the folders in *folder* that have an image, sorted."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.normpath(os.path.join(folder, name)) for name in names]
    return [path for path in paths if os.path.isfile(os.path.join(path, "claw.cbor"))]


def open_bus(manifest, changes: bool, waits: bool = False) -> tuple:
    """Return (``Swarm``, its ``CommandBus``), as ``_swarm_and_image``.  Raises ``ClawError``.

    changes  the command does not only read;  waits: it follows what comes
    """
    swarm, image = _swarm_and_image(manifest)
    if not swarm.is_shared and waits:
        raise ClawError(
            "the swarm %s runs in one process (backend in-process), and this is another one"
            % swarm.name,
            "use backend: sqlite-wal, or look at it with: clawlite swarm status",
        )
    if not swarm.is_shared:
        from clawlite.linux.swarm_commands.in_process_socket import SocketBus

        swarm.share_process()
        for one in swarm.members:
            one.count = 1  # of each there is one, which does so many times as much
        return swarm, SocketBus(swarm)
    if swarm.engine:
        from clawlite.linux.swarm.replicated_bus import bus_of

        bus = bus_of(swarm, image, wall_ms, now_ms, os.urandom, changes)
        bus.join()
        try:
            bus.wait()
        except ClawError:
            bus.leave()
            raise
        return swarm, bus
    return swarm, Bus(files.swarm_folder(swarm.name), wall_ms, os.urandom)


@contextmanager
def _bus(manifest, changes: bool = False, waits: bool = False):
    """Yield what ``open_bus`` returns."""
    swarm, bus = open_bus(manifest, changes, waits)
    try:
        yield swarm, bus
    finally:
        bus.leave()


def show_status(manifest, as_json: bool):
    """Show who is there, and the last tasks."""
    with _bus(manifest) as (swarm, bus):
        _status(swarm, bus, as_json)


def trace(id: str, manifest, as_json: bool):
    """Show what became of a task."""
    with _bus(manifest) as (_, bus):
        _trace(bus, _find_task(bus, id), as_json)


def show_dead(manifest, as_json: bool):
    """List tasks that were given up."""
    with _bus(manifest) as (_, bus):
        found = [row for row in bus.tasks(-1) if row[_STATE] == DEAD]
        _list(found, as_json)
        if not found and not as_json:
            sys.stderr.write("No task was given up.\n")


def retry(id: str, manifest, as_json: bool):
    """Start a task again that was given up."""
    with _bus(manifest, True) as (_, bus):
        _change_dead("retry", bus, bus.again, id, as_json)


def drop(id: str, manifest, as_json: bool):
    """Remove a task that was given up."""
    with _bus(manifest, True) as (_, bus):
        _change_dead("drop", bus, bus.drop, id, as_json)


def _change_dead(verb: str, bus, change, wanted_id: str, as_json: bool):
    task_id = _find_task(bus, wanted_id)
    if bus.state(task_id) != DEAD or not bus.wait(change(task_id)):
        raise ClawError(
            "task %s is %s: it was not given up" % (task_id, bus.state(task_id)),
            "see those that were with: clawlite swarm dead",
        )
    if as_json:
        print(document({"task_id": task_id, "state": bus.state(task_id)}))
    else:
        print_line(_DONE_TEXTS[verb] % task_id)


def stop(manifest, as_json: bool):
    """Let no agent of the swarm begin a tool with side effects."""
    with _bus(manifest, True) as (swarm, bus):
        bus.wait(bus.stop(_PERSON))
        _print_stop("stop", swarm, bus, as_json)


def resume(manifest, as_json: bool):
    """Let them again."""
    with _bus(manifest, True) as (swarm, bus):
        bus.wait(bus.resume(_PERSON))
        _print_stop("resume", swarm, bus, as_json)


def watch(manifest) -> int:
    """Tell whether the swarm is stopped, at each change; return the exit code."""
    from clawlite.linux.swarm_commands.watch import watch as follow

    with _bus(manifest, waits=True) as (swarm, bus):
        return follow(swarm, bus)


def _print_stop(verb: str, swarm: Swarm, bus: CommandBus, as_json: bool):
    """Say that the swarm is stopped, and how many of its processes know it now; or resumed."""
    found: dict = {"swarm": swarm.name, "stopped": verb == "stop"}
    if verb == "stop":
        found["running"] = sum(len(those) for those in bus.there(swarm)[0].values())
        found["count"] = sum(one.count for one in swarm.members)
    if as_json:
        print(document(found))
        return
    print_line(_DONE_TEXTS[verb] % swarm.name)
    if verb == "stop":
        print_line(_STOP_REACHED % (found["running"], found["count"]))


def _find_task(bus: CommandBus, wanted_id: str) -> str:
    """Return the id that begins with *wanted_id*.  Raises ``ClawError``."""
    ids = [row[0] for row in bus.tasks(-1) if row[0].startswith(wanted_id.lower())]
    if len(ids) != 1:
        raise ClawError(
            "%d tasks have an id that begins with %s" % (len(ids), wanted_id[:40]),
            "see them with: clawlite swarm status",
        )
    return ids[0]


def _status(swarm: Swarm, bus: CommandBus, as_json: bool):
    from clawlite.linux.swarm.member import REBUILD

    found = describe(swarm, bus, SHOWN)
    if as_json:
        print(document(found))
        return
    rows, stop, differ = bus.tasks(SHOWN), bus.find_stop(), found["differs"]
    present = {one["identity"]: one["processes"] for one in found["members"]}
    statuses = {one["identity"]: one["status"] for one in found["members"]}
    if stop:
        print_line("stopped by %s at %s: tools with side effects are refused" % stop_row(*stop))
    for one in swarm.members:
        running = present[one.identity]
        print_line(
            "%-24s %-12s %-12s %d of %d"
            % (one.identity, one.role, statuses[one.identity], running, one.count)
        )
        if running > one.count:  # another folder or machine may have the same name
            print_line(
                "%d processes are there as %s, and its swarm declares count %d: stop the "
                "extra ones, rename one of two agents, or raise count"
                % (running, one.identity, one.count)
            )
    for name in differ:
        print_line(REBUILD % (name, swarm.name))
    if rows:
        print_line("")
    _list(rows, False)


def _list(rows: list, as_json: bool):
    if as_json:
        print(document([task_row(*row) for row in rows]))
        return
    for task_id, description, state, _, _, at_ms in rows:
        at = iso8601(at_ms // 1000)
        print_line("%s  %s  %-10s %s" % (task_id[:8], at, state, description[:_TEXT]))


def _trace(bus: CommandBus, task_id: str, as_json: bool):
    events, reports, state = bus.history(task_id)
    if as_json:
        print(
            document(
                {
                    "task_id": task_id,
                    "state": state,
                    "events": [
                        {"time": iso8601(at_ms // 1000), "what": what, "who": who}
                        for at_ms, what, who in events
                    ],
                    "reports": [
                        {"who": who, "status": status, "result": result, "duration_ms": took_ms}
                        for _, who, status, result, _, took_ms in reports
                    ],
                }
            )
        )
        return
    print_line("%s  %s" % (task_id, state))
    for at_ms, what, who in events:
        print_line("%s  %-12s %s" % (iso8601(at_ms // 1000), what, who))
    for _, _, status, result, _, took_ms in reports:
        took = "" if took_ms is None else " after %d ms" % took_ms
        first, *more = result_lines(result)
        print_line("%s%s: %s" % (status, took, first), *["  " + line for line in more])
