"""Put a board's agent together (device.py): its image decides which parts it has.  Loaded once, and
dropped.
"""

from boardclock import Clock
from clawlite.core.agent.agent import Agent
from clawlite.core.base.errors import UNWINDING, ImageMismatch
from clawlite.core.turns.handlers import Handlers
from clawlite.core.image.image import CONTEXT, GUARD, PINS
from clawlite.core.image.scan_config import AUDIT as GUARD_AUDIT, AUDIT_DESTINATION
from jsontext import dumps, loads
from unload import drop
from parts import AUDIT, BUSED, CONFIRM, GATEWAY, GUARDS, LAN, LIMITS, LOG, MEMORY, REMOTE, RULES
from parts import PINS as PINNED, TAUGHT
from stdio import Stdio, is_terminal
from oom_unwind import load_providers

_MAX_TASKS = 8
# bytes of earlier turns that a remote provider sees
_CONVERSATION = 2048
# the limit of entries in stores: one for each _ENTRY_HEAP bytes of the heap, of which an entry
# takes 6 (host/memory/board_stores.py)
_MAX_ENTRIES, _ENTRY_HEAP = 4096, 256


def assemble(device, image, maker: dict, folder: str, operator: bool):
    """Give *device* all its parts; the other arguments are those of ``Device``."""
    device.clock = Clock()
    device.now_ms, device.epoch_s = device.clock.now_ms, device.clock.epoch_s
    from parts import parts

    builtin, having = {}, parts(image)
    del parts
    drop("parts")  # the next modules need its memory
    if PINNED in having:
        from clawlite.core.turns.builtin import HANDLERS as builtin

        device.pins = _bank(image.section(PINS) or [], device.now_ms)
    if BUSED in having:
        builtin, device.pins = _add_buses(builtin, device.pins, image, device.now_ms)
    device.handlers = Handlers(builtin, maker, device.pins, device.place_of)
    wants = _audit(image) if AUDIT in having else None
    if GUARDS in having:
        from clawlite.core.image.header import check_shape

        # loaded here and not deep in the guards' calls, where the stack would not be enough
        del check_shape
        from guarding import Guarding

        device.guarding = Guarding(device, image, folder)
        device.guard = device.guarding.guard
    device.later, device.before, device.codecs = [], [], (loads, dumps)
    device.agent = Agent(device, 0, _MAX_TASKS)
    UNWINDING.append(True)
    device.folder = folder
    if LOG in having:
        from logfile import Log

        device.log = Log(folder, dumps, device.guard)
        device.on_start = device.log.check
        maker["print"] = device.log.print_text
    if wants:
        from auditing import Auditing

        device.before.append(Auditing(device, image, wants, folder))
        device.on_start, device.is_recorded = device.before[0].start, True
    device.terminal = not operator and is_terminal()
    if not operator:
        from clawlite.core.protocol.console import Console
        from clawlite.core.base.printable import printable

        device.console = Console(device.agent, not device.terminal)
        device.printable = printable
    device.stdio = Stdio(operator, device.now_ms)
    if GATEWAY in having:
        _connect(device, having)
    # loaded at the first turn, when the modules that start an agent have gone
    elif REMOTE in having:
        device.keep_bytes, device.prepare = _CONVERSATION, lambda: load_providers(device)
    if LIMITS in having and not device.prepare:
        from meters import Meters

        device.meter = Meters(image, folder, device.clock.both).meter
    if MEMORY in having:
        _stores(device, image, folder)
    if CONFIRM in having or RULES in having:
        _add_rules(device, image, having)


def _add_rules(device, image, having: set):
    """Give *device* what acts by itself, and what looks whether something follows.  In a file of
    its own, as ``_connect``.
    """
    if CONFIRM in having:
        from clawlite.core.rules.confirm import Confirms

        device.confirm = Confirms(device.agent, image.section(31), device.now_ms, device.pins)
    if TAUGHT in having:
        from boardteach import Teaching

        device.teach = Teaching(device)
    if RULES in having:
        if "cron" in image.requires:
            from boardcron import CronRules

            device.rules = CronRules(device)
        else:
            from boardrules import BoardRules

            device.rules = BoardRules(device, image.section(27))
        device.beside += (device.rules, device.teach) if device.teach else (device.rules,)


def _connect(device, having: set):
    """Give *device* the connection to its gateway, which may stop tools, speak for a member of a
    swarm, carry channels, and call services, where the image requires that.  On a board this
    function is in a file of its own, or all other agents would keep the names of these modules for
    ever.

    Raises ``ImageMismatch``."""
    from random_bytes import random_bytes

    wanted = device.image.requires
    if LAN in having:
        from lan import Lan

        device.net = Lan(device, device.name_server)
    else:
        from uplink import Uplink

        device.net = device.uplink = Uplink(device)
    device.keep_bytes, device.is_behind = _CONVERSATION, True
    device.first_question = 100000 + int.from_bytes(random_bytes(), "big") % 900000
    name = "swarmstop"
    try:
        if "stop-of-swarm" in wanted:
            from swarmstop import SwarmStop

            device.listener = SwarmStop(device)
        name = "swarmmember"
        if "swarm" in wanted:
            from swarmmember import SwarmMember

            device.listener = SwarmMember(device)
        if device.listener:
            device.stop = device.listener.gate
        name = "relayed"
        if "relayed" in wanted:
            from relayed import Relayed

            device.channels = device.listener = Relayed(device, device.listener)
            device.beside += (device.channels,)
        name = "mediated"
        if ("mediated" if LAN in having else "mediated-line") in wanted:
            from mediated import Mediated

            device.net = Mediated(device)
            device.before.insert(0, device.net)
            if device.uplink:  # records come over the console's line
                device.uplink = device.net
    except ImportError:
        raise ImageMismatch(
            "this slot was flashed without what the image needs: " + name,
            "flash it: clawlite flash",
        )
    if device.uplink:
        device.stdio.over = device.uplink.down


def _audit(image) -> list:
    """Return the audit settings of *image*.  Raises ``ImageMismatch`` when a board cannot keep such
    an audit.
    """
    from clawlite.core.image.header import check_shape

    shape = (bool, bool, bool, [None, 1 << 32], str, object)
    # the additional item is for Linux
    wants = check_shape(image.section(GUARD)[GUARD_AUDIT], [shape, shape + (object,)], "the audit")
    if wants[AUDIT_DESTINATION] != "file":
        raise ImageMismatch(
            "this board cannot send its audit to %s" % wants[AUDIT_DESTINATION],
            "destination: file; see it with clawlite audit --port PORT",
        )
    return wants


def _stores(device, image, folder: str):
    """Open the stores that a board keeps; the first conversation is the console's, too.  Raises
    ``ImageMismatch`` for any other store, which ``build --board`` refuses, too.
    """
    import gc
    from binascii import crc32

    from clawlite.core.image.memories import (
        CONVERSATION,
        DOES,
        FILES,
        SUMMARIZE,
        TYPES,
        VECTOR,
        stores,
    )
    from stores import Stores

    if image.size_of(CONTEXT):
        raise ImageMismatch(
            "the image has context files, which this board does not read", "build it with --board"
        )
    # another agent on this board has its own
    path = "%s/memory-%08x.log" % (folder, crc32(image.agent.name.encode()) & 0xFFFFFFFF)
    device.stores = Stores(
        device.agent,
        path,
        device.epoch_s,
        min(_MAX_ENTRIES, (gc.mem_free() + gc.mem_alloc()) // _ENTRY_HEAP),
        (loads, dumps),
    )
    device.memories = device.stores.methods
    for store in stores(image):
        if (
            DOES >> 4 * store.type & FILES
            or store.search == VECTOR
            or store.compaction == SUMMARIZE
            or store.secret
            or store.embedding
            or store.path is not None
        ):
            raise ImageMismatch(
                "the store %s (%s) is not one that this board keeps"
                % (store.name, TYPES[store.type]),
                "build it with --board",
            )
        if device.console is not None and store.type == CONVERSATION:
            device.lasting = device.stores.lasting


def _bank(rows: list, now_ms):
    """Return the pins: real ones wherever MicroPython has pins, even for pins that can be
    simulated.
    """
    try:
        from machine import Pin  # the unix port's machine has none  # noqa: F401
    except ImportError:
        from clawlite.core.image.pins import SimulatedPins

        return SimulatedPins(rows, now_ms)
    from machinepins import MachinePins

    return MachinePins(rows)


def _add_buses(builtin: dict, bank, image, now_ms) -> tuple:
    """Return the handlers *builtin* and the pins *bank* with those of the buses of *image*: real
    ones wherever the pins are real.  In a file of its own, as ``_connect``.
    """
    from clawlite.core.buses.bustable import BUSES, SIMULATED
    from clawlite.core.buses.bustools import HANDLERS

    handlers = dict(builtin)
    handlers.update(HANDLERS)
    if not bank.simulated:
        from machinebuses import make_board

        return handlers, make_board(bank, image.section(BUSES))
    from clawlite.core.buses.busboard import BusBoard
    from clawlite.core.buses.simulator import Simulator

    simulator = Simulator(image.section(SIMULATED), bank, now_ms)
    return handlers, BusBoard(bank, image.section(BUSES), simulator, None, _write_duty)


def _write_duty(bank, pin: str, hertz: int, duty: int):
    bank.write(pin, duty)
