"""Parts that only some images need.  agent_parts.py calls these functions; each imports its part
when it is needed, so that other agents do not load it.
"""

import os

from clawlite.core.base.effect import LOG
from clawlite.core.image.image import GUARD, WIRE, WORLDS
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.logline import line as log_line
from clawlite.linux.io.stdio import now_ms
from clawlite.protocols.image.features import LOCAL_API

_API, _PREFIX = 1, 21  # of a row of the remote providers
_TEACH = 32  # the section of core/teach/draft.py
_NEEDS_DISPATCHER = {"files", "mcp", "mediated", "services", "shell", "web"}


def prepare(image, tool):
    """Prepare *tool* of *image* for quick calls, as an image that is opened for a shell does."""
    from clawlite.linux.runtime import fast_schema

    fast_schema.prepare(image, tool)


def read_profile(image):
    """Return the ``profile.Profile`` of *image*, or None where no tool runs outside of this
    process.
    """
    if not image.agent.isolation and _NEEDS_DISPATCHER.isdisjoint(image.requires):
        return None
    from clawlite.protocols.sandbox import profile

    return profile.profile_of(image)


def find_maker_code(image, folder: str):
    """Return the ``Code`` in *folder* that *image* was built with, None when it needs none."""
    if not image.companions:
        return None
    from clawlite.linux.maker import maker_code

    return maker_code.find(image, folder)


def find_place(e: BaseException, folder: str) -> str:
    """Return where in a maker's code in *folder* it failed with *e*."""
    from clawlite.linux.maker.maker_run import place_of

    return place_of(e, folder)


def make_guard(image):
    """Return the guard of *image*, or None."""
    if not image.size_of(GUARD):
        return None
    from clawlite.linux.tools import scan_support

    return scan_support.guard_of(image)


def make_worlds(image):
    """Return the world models of *image*, or None."""
    if not image.size_of(WORLDS):
        return None
    from clawlite.linux.tools.world_model import WorldModels

    return WorldModels(image)


def choose_log_line(guard):
    """Return function(event) -> its line in the log, without secrets where *guard* looks for
    them.
    """
    return log_line if guard is None else lambda event: guard.text(dumps(event))


def make_audit(image, guard):
    """Return the audit of *image*, or None."""
    if guard is None or not guard.audit:
        return None
    from clawlite.linux.audit.audit import Audit

    return Audit(image, guard)


def make_telemetry(setup):
    """Return the telemetry of *setup*, whose image wants one."""
    from clawlite.linux.telemetry import telemetry

    return telemetry.telemetry_of(setup, now_ms)


def make_confirms(parts):
    """Return what looks whether what must follow a call does."""
    from clawlite.core.rules.confirm import Confirms
    from clawlite.core.rules.table import CONFIRMS

    rows = parts.image.section(CONFIRMS)
    return Confirms(parts.agent, rows, now_ms, getattr(parts.handlers, "bank", None))


def is_taught(state: str) -> bool:
    """Return whether somebody has taught the agent whose folder is *state* a rule."""
    return os.path.exists(os.path.join(state, "rules", "taught.json"))


def make_rehearsal(rules):
    """Return function(name) -> lines, for /rehearse."""

    def rehearse(name: str) -> list:
        from clawlite.linux.rules.rehearsal import rehearse_here

        return rehearse_here(rules, name)

    return rehearse


def make_dispatcher(parts, profile, state: str, local):
    """Return what runs tools outside of this process too."""
    from clawlite.linux.tools.dispatch import Dispatcher

    return Dispatcher(
        parts.handlers,
        parts,
        profile,
        state,
        signals.waker(),
        now_ms,
        parts.decided,
        parts.startup.source,
        local,
        lambda event: parts.log_event((LOG, event)),
        parts,
    )


def warm_local(parts):
    """Start the process of the local model, where ``[local]`` says ``warm``."""
    image = parts.image
    for number in image.agent.providers if "local" in image.requires else ():
        row = image.provider(number - 2) if number > 1 else None
        if row is not None and row[_API] == LOCAL_API:
            offset, length, _ = row[_PREFIX]
            if loads(image.part(WIRE, offset, length))["warm"]:
                parts.agent.chain()  # what all providers need comes first
                parts.make_local(row)


def make_console(parts) -> tuple:
    """Return the console of a person, and what they see of it."""
    from clawlite.core.protocol.console import Console
    from clawlite.linux.terminal.console_view import ConsoleView

    answers = parts.answers
    console = Console(parts.agent, not parts.terminal, answers is not None, answers)
    return console, ConsoleView(parts)


def keep_agent(manifest, is_free: bool) -> bool:
    """Check the *manifest* of a ``claw.initialize``.  Return False: the agent of an image stays.

    Raises ``ImageError``.  Source  docs/adr/0006
    """
    if not isinstance(manifest, str):
        from clawlite.linux.runtime.manifest_check import check

        check(manifest)
    return False


def make_lessons(parts):
    """Return what people teach the agent of *parts* by talking."""
    from clawlite.linux.rules.lessons import Lessons
    from clawlite.protocols.image.features import LOCAL_API
    from clawlite.protocols.teach import reader

    image = parts.image
    limits = image.section(_TEACH)

    def propose(clause: str):
        from clawlite.protocols.teach.clause import propose

        return propose(clause, image, limits and limits[0])

    rows = [image.provider(number - 2) for number in image.agent.providers if number > 1]
    local = [row for row in rows if row[_API] == LOCAL_API]
    reads = reader.ALL  # the grammar asks what it does not understand
    if len(rows) > len(local) and not limits:
        # a remote model answers what is no whole rule; with the tool it teaches by itself
        reads = reader.NONE if reader.ADD in image.names else reader.WHOLE
    get_local = (lambda: parts.make_local(local[0])) if local else None
    return Lessons(image, parts.make_rules, propose, reads, get_local)
