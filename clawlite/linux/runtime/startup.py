"""The state STARTING on Linux, and how an agent goes on after a failure (CKP 0.2.0, section 8;
docs/adr/0013).

1. STARTING tells files that are older than what the agent wrote last.  It runs tools.py (at level
   none).  It checks that a log that policies demand (audit-only), an audit and the folder of stores
   can be written, and that the packages of channels are installed.
2. ERROR has three causes: STARTING fails, that log or audit cannot be written later, or the loop
   meets an unexpected exception.
3. At a console, a failed start is shown at once, for a person to fix.  An operator's agent tries
   again.
"""

import os
import sys

from clawlite.core.agent.lifecycle import ERROR, INIT, STOPPED
from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_ends
from clawlite.core.image.image import CHANNELS, MEMORY
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.runtime import optional_parts

_TRACED = 4000  # characters of a traceback in the log: its end


class Startup:
    """The start of one shell's agent, and its unplanned ends.

    shell      ``shell.Shell``
    folder     the folder of tools.py
    functions  dict that gets the functions of tools.py when it runs; None: it runs in a sandbox, at
               each call
    Raises ``ImageMismatch`` when tools.py is not the file that the image was built with.
    """

    def __init__(self, shell, folder: str, functions: dict):
        image = shell.image
        self._shell = shell
        self.source = optional_parts.find_maker_code(image, folder)
        self._functions = functions
        self._demands_log = "log" in image.requires
        self._has_channels = image.size_of(CHANNELS) > 0
        self._remembers = image.size_of(MEMORY) > 0

    def start(self):
        """Do the work of STARTING.  Raises ``ClawError``, and KeyboardInterrupt when a signal ends
        tools.py.
        """
        self._shell.persistence.tell_old_files(self._shell.warn)
        if self.source and self._functions is not None:
            from clawlite.linux.maker import maker_code
            from clawlite.linux.maker.maker_run import print_event

            log = self._shell.log_event
            space = maker_code.functions(self.source, lambda text: log((LOG, print_event(text))))
            self._functions.update(space)
            self._functions.update(maker_code.find_provided(space, self._shell.image))
            self.source = None
        if self._demands_log:
            self._shell.log.check()
        if self._shell.audit:
            self._shell.audit.check()
        if self._has_channels:
            check_packages(self._shell.image)
        if self._remembers:
            from clawlite.core.image.memories import stores
            from clawlite.linux.memory.database import check_folder, folder_of

            name = self._shell.image.agent.name
            check_folder(folder_of(name))
            sealed = [store for store in stores(self._shell.image) if store.secret]
            if sealed:
                from clawlite.linux.memory.encryption import check

                check(name, sealed)

    def run_until_exit(self, first=None):
        """Step until the shell has its exit code.  An exception of a step leads to ERROR, and the
        agent starts again after a pause.

        first  a record that comes before all others, or None
        """
        shell = self._shell
        if first is not None:
            shell.session.record(first, now_ms())
            shell.settle()
            shell.take()
        while shell.code is None:
            self.step()

    def step(self):
        """Step once, as ``run_until_exit`` does."""
        try:
            self._shell.step()
        except Exception as e:
            self._handle_exception(e)

    def flush(self) -> bool:
        """Write the log and the audit.  When the audit, or a log that policies demand, cannot be
        written, go to ERROR and return False.
        """
        logged, audit = self._shell.log.flush(), self._shell.audit
        if audit and not audit.flush():
            self._shell.agent.lifecycle.fail(ClawError(audit.failure, audit.mend), now_ms())
            return False
        if logged or not self._demands_log:
            return True
        self._shell.agent.lifecycle.fail(
            ClawError(
                "the log that a policy demands (audit-only) cannot be written", self._shell.log.mend
            ),
            now_ms(),
        )
        return False

    def flush_answer(self, message):
        """Return *message*, one answer or the answers of a batch.  When the record of a call cannot
        be written, an error replaces its result.
        """
        if isinstance(message, list):
            return [self.flush_answer(one) for one in message]
        result, audit = message.get("result"), self._shell.audit
        if not isinstance(result, dict) or "isError" not in result or audit.flush():
            return message
        error = ClawError(audit.failure, audit.mend)
        return {"jsonrpc": "2.0", "id": message["id"], "error": error.to_json()}

    def may_begin(self, task: int, tool, arguments: dict) -> bool:
        """Write all records so far, and record in the audit that *tool*, which has side effects,
        begins.  Return False when that fails: then it must not run.
        """
        shell = self._shell
        audit = shell.audit
        if audit is None:
            return self.flush()
        once = shell.agent.tasks[task].once
        audit.begins(tool, arguments, once and once.id)
        if self.flush():
            return True
        audit.stays_out()
        return False

    def _handle_exception(self, error):
        agent = self._shell.agent
        if agent.lifecycle.state in (INIT, ERROR, STOPPED):
            # it failed again before anything else happened, and would do so for ever
            raise error
        from traceback import format_exception

        agent.effects.append(
            (
                LOG,
                {"event": "agent.error", "traceback": "".join(format_exception(error))[-_TRACED:]},
            )
        )
        agent.lifecycle.fail(error, now_ms())

    def report_failure(self, error, pause_ms):
        """Switch everything off, and report it on stderr, also for an operator's agent."""
        self._shell.handlers.close()
        then = (
            "stopped: too many failures"
            if pause_ms is None
            else "trying again in %d s" % (pause_ms // 1000)
        )
        hint = " - " + error.hint if error.hint else ""
        text = "clawlite: ERROR: %s%s; %s" % (error.message, hint, then)
        os.write(2, escape_ends(text).encode() + b"\n")


def check_packages(image):
    """Raise ``ClawError`` when a package that a channel of *image* needs is not installed."""
    from clawlite.protocols.image.features import KINDS

    for kind in KINDS:
        if kind.package and kind.ability in image.requires:
            _check_package(kind.type, kind.package)


def _check_package(type: str, package):
    if sys.flags.no_site:  # a launcher left out ``site``, which finds the folders of packages
        import site

        site.main()
    from importlib import import_module

    from clawlite.linux.files.packages import install

    try:
        version = import_module(package.module).__version__
    except ImportError:
        raise ClawError(
            "a channel of type %s needs the package %s, which is not installed"
            % (type, package.name),
            install(package.extra),
        ) from None
    if int(version.split(".")[0]) < package.major:
        raise ClawError(
            "a channel of type %s needs %s %d, got %s"
            % (type, package.name, package.major, version),
            install(package.extra),
        )
