"""The audit of an agent on a board (CKP 0.2.0, 5.8 ``audit``; docs/audit.md).  Loaded for images
with an audit; other agents pay nothing for it.

1. A record is in flash before anybody sees the result of its call, and before a tool with side
   effects begins: effects come in that order, and each waits for the one before.
2. When the audit cannot be written, this is an error of the whole agent: nothing more runs.  The
   unwritten records wait.
3. The modules that make the text of a record, remove secrets from it and write it are loaded one
   after the other, and dropped.
"""

from clawlite.core.base.effect import EVENT, KEEP, KIND, LOG, MESSAGE, RECORD, SEND
from clawlite.core.base.errors import ClawError, wrap_error
from clawlite.core.image.image import GUARD
from clawlite.core.image.scan_config import AUDIT_KEPT_S, LEAKS
from unload import drop

_FULL = 28  # ENOSPC
_MOST_WAITING = 16  # records that wait until the flash can be written again
_STEP = "audittext auditrecord clock secretvalues auditlog auditfiles auditline auditmend"


class Auditing:
    """The audit of one agent, with the records that wait to be written.

    device   ``device.Device``, which shows it each effect first
    wants    the audit of ``scan_config.ScanConfig``, whose destination is a file
    state    the board's folder for state; the audit has a folder of its own in it
    """

    def __init__(self, device, image, wants: list, state: str):
        self.device, self.image, self.wants, self._state = device, image, wants, state
        self._folder = "%s/audit-%s" % (state, image.agent.name)
        self._waiting = []  # records as JSON
        self._is_open = False  # the files are known to be as the last record left them
        # the last effect on record: it is repeated when memory ran out after it was recorded
        self._written = None
        self._on_start = device.on_start

    def take(self, effect: tuple) -> bool:
        """Put an effect of the agent on record when it must be.  Return True when that fails for a
        tool that begins, which must not run then.
        """
        if effect is not self._written and (
            effect[KIND] == LOG
            and effect[EVENT]["event"][:4] in ("tool", "task")
            or effect[KIND] == RECORD
        ):
            error = self._write(effect)
            self._written = effect
            if error:
                self.device.agent.lifecycle.fail(error, self.device.now_ms())
                if effect[KIND] == RECORD:
                    return True
                self._withhold(error)
            if effect[KIND] == LOG:
                effect[EVENT].pop("output", None)  # for the audit alone
        return False

    def _withhold(self, error):
        """Answer the call whose record could not be written with *error*: its result must not be
        seen.
        """
        effects = self.device.agent.effects
        at = 1 if effects and effects[0][KIND] == KEEP else 0
        if len(effects) > at and effects[at][KIND] == SEND and "result" in effects[at][MESSAGE]:
            effects[at] = (
                SEND,
                {"jsonrpc": "2.0", "id": effects[at][MESSAGE]["id"], "error": error.to_json()},
            )

    def start(self):
        """The work of STARTING: check that the audit can be written.  Raises ``ClawError``."""
        if self._on_start:
            self._on_start()
        self._is_open = False
        error = self._write(None)
        if error:
            raise error

    def _write(self, effect):
        """Write the waiting records, and that of *effect* unless it is None; return the error when
        that fails, or None.
        """
        error = None
        try:
            if len(self._waiting) >= _MOST_WAITING:
                self._flush()
            if effect is None:
                self._flush()
            else:
                try:
                    self._record(effect, False)
                except MemoryError:
                    self._record(effect, True)
        except OSError as e:
            self._is_open = False
            hint = "make room for it" if e.args[0] == _FULL else "look at the flash"
            error = ClawError("the audit cannot be written: %s" % e, hint)
        # raised in both cases: the loop ends the work in progress and recovers (oom_recover.py)
        except MemoryError:
            raise
        except Exception as e:
            error = e if isinstance(e, ClawError) else wrap_error(e)
        self._drop()
        return error

    def _record(self, effect: tuple, short: bool):
        """Put *effect* on record.  A record that could not be written waits, unless it is that of a
        tool that begins, because then the tool does not run.
        """
        self._drop()
        text = self._text(effect, short)
        if text is None:
            return
        self._drop()
        # Imported here: one call deeper, its imports would not fit a Pico's stack at Ctrl-C (0080).
        from secretvalues import clean

        text = clean(text, self.image, self.device.guard, self._state)
        del clean  # a reference would keep the module in memory
        self._drop()
        self._waiting.append(text)
        try:
            self._flush()
        except Exception as e:
            if self._waiting and (isinstance(e, MemoryError) or effect[KIND] == RECORD):
                self._waiting.pop()
            raise

    def _flush(self):
        if not self._is_open:
            self._open()
            self._drop()
            self._is_open = True
        from auditlog import append

        while self._waiting:
            # Ctrl-C or a lack of memory may end this between the record and its head: what is there
            # is looked at again before the next one
            self._is_open = False
            append(self._folder, self._waiting[0], self.wants[AUDIT_KEPT_S], self.device.epoch_s())
            self._is_open = True
            self._waiting.pop(0)

    def _open(self):
        from auditmend import mend

        problem = mend(self._folder, self.image.agent.name)
        if problem:
            from audittext import problem_of

            self._waiting.insert(0, problem_of(self, problem))

    def _text(self, effect: tuple, short: bool):
        from audittext import text_of

        return text_of(self, effect, short)

    def _drop(self):
        drop(_STEP)
        if self.image.section(GUARD)[LEAKS] is None:  # otherwise the guard keeps them in memory
            drop("leaks known_secrets services")
