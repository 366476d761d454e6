"""Handlers: the functions behind tools, run in this process (sandbox level ``none``).

1. In this process, only this module calls a handler.
2. A plain function runs to its end.
3. A generator works in steps.  It yields the milliseconds to wait before its next step; None or 0
   means at once, after everything else that is due.  So the agent stays responsive meanwhile.
4. A timeout closes the generator, which runs its ``finally`` blocks (pump off, valve shut).
5. A generator that yields {"ask": text, "max_tokens": n} is sent the answer of the provider.
6. Whatever a handler raises is the outcome of its own call, also Ctrl-C and ``sys.exit()``."""

from clawlite.core.base.dialect import const
from clawlite.core.base.effect import ASKS_PROVIDER, IS_OK, VALUE
from clawlite.core.base.errors import ClawError, SandboxDenied, ToolTimeout
from clawlite.core.image.image import BUILTIN, GENERATOR, HAS_BOARD

# positions in what is running
_TASK = const(0)
_GENERATOR = const(1)
_WAKE_MS = const(2)  # None: it waits for a provider
_DUE_MS = const(3)
_OUTCOME = const(5)  # what the next step is sent, or raises
_WAITING = const(4)  # in place of IS_OK: the handler waits, for VALUE milliseconds

MAX_TOKENS = 1024  # of a provider's answer to a handler that gives no number


class Handlers:
    """The handlers of this process, and the calls of them that are running.

    builtin  dict of name -> function(board, arguments...), the registry's tools
    maker    dict of name -> function, from tools.py
    board    the pins (core/image/pins.py), handed to every handler that takes ``board``
    place_of function(exception) -> text: where in tools.py it was raised, " (tools.py:12)" or "";
             or None

    interrupted  bool, True once Ctrl-C has ended a handler; the shell resets it
    """

    def __init__(self, builtin: dict, maker: dict, board, place_of=None):
        self._of = (builtin, maker)
        self._place_of = place_of
        self._board = board
        self.interrupted = False
        # [task, generator, wake_ms, due_ms, tool name, outcome to go on with]
        self._running = []

    @property
    def is_busy(self) -> bool:
        """Whether a handler is running."""
        return len(self._running) > 0

    def start(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        """Start *tool*; return its outcome, or None when ``poll`` will return it."""
        kind, name = tool.handler
        function = self._of[kind].get(name)
        if function is None:
            return False, SandboxDenied(
                "%s: this device has no handler %s" % (tool.name, name),
                "update the runtime" if kind == BUILTIN else "copy tools.py beside the image",
            )
        if tool.flags & HAS_BOARD:
            arguments = dict(arguments)
            arguments["board"] = self._board
        try:
            outcome = True, function(**arguments)
        except BaseException as e:
            outcome = self._failure(e)
        if outcome[IS_OK] and tool.flags & GENERATOR:
            self._running.append([task, outcome[VALUE], now_ms, due_ms, tool.name, (True, None)])
            return None
        return outcome

    def resume(self, task: int, outcome: tuple, now_ms: int):
        """Resume the handler of *task*, which asked a provider.  *outcome*: (True, text) or (False,
        error).
        """
        for entry in self._running:
            if entry[_TASK] == task:
                entry[_WAKE_MS], entry[_OUTCOME] = now_ms, outcome

    def poll(self, now_ms: int) -> list:
        """Run one step of each handler that is due; return [(task, outcome), ...] of those that
        have ended, or ask a provider.

        Only one step: a generator that never waits must not hold up the loop.
        """
        return self._step_all(now_ms) if self._running else []

    def _step_all(self, now_ms: int) -> list:
        ended = []
        for entry in list(self._running):
            task, generator, wake_ms, due_ms, name, go_on = entry
            if due_ms is not None and now_ms >= due_ms:
                self._running.remove(entry)
                end(generator)
                ended.append(
                    (
                        task,
                        (
                            False,
                            ToolTimeout(
                                "%s: took too long and was stopped" % name,
                                "give it less to do, or raise timeout_ms in the manifest",
                                {"tool": name},
                            ),
                        ),
                    )
                )
            elif wake_ms is not None and now_ms >= wake_ms:
                outcome = self._advance(generator, go_on)
                entry[_OUTCOME] = (True, None)
                if outcome[IS_OK] == ASKS_PROVIDER:
                    entry[_WAKE_MS] = None
                    ended.append((task, outcome))
                elif outcome[IS_OK] == _WAITING:
                    wait_ms = outcome[VALUE]
                    entry[_WAKE_MS] = now_ms + (
                        wait_ms if isinstance(wait_ms, int) and wait_ms > 0 else 0
                    )
                else:
                    self._running.remove(entry)
                    ended.append((task, outcome))
        return ended

    def _advance(self, generator, go_on: tuple) -> tuple:
        try:
            said = generator.send(go_on[VALUE]) if go_on[IS_OK] else generator.throw(go_on[VALUE])
            return question(said) if isinstance(said, dict) else (_WAITING, said)
        except StopIteration as e:
            return True, e.value
        except BaseException as e:
            return self._failure(e)

    def _failure(self, e) -> tuple:
        """Return the outcome of a handler that raised *e*.  A maker's function may raise anything,
        so the message names the type, too.
        """
        if isinstance(e, KeyboardInterrupt):
            self.interrupted = True
        if not isinstance(e, ClawError):
            place = self._place_of(e) if self._place_of else ""
            said = "%s: %s" % (type(e).__name__, e) if str(e) else type(e).__name__
            e = ClawError(said + place)
        return False, e

    def cancel(self, task: int):
        """End the handler of *task*, if one is running."""
        for entry in list(self._running):
            if entry[_TASK] == task:
                self._running.remove(entry)
                end(entry[_GENERATOR])

    def close(self):
        """End all handlers."""
        for entry in list(self._running):
            self.cancel(entry[_TASK])

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None."""
        first = None
        for entry in self._running:
            at, due_ms = entry[_WAKE_MS], entry[_DUE_MS]
            if at is None or due_ms is not None and due_ms < at:
                at = due_ms
            if at is not None and (first is None or at < first):
                first = at
        return first


def question(said: dict) -> tuple:
    """Return the outcome (ASKS_PROVIDER, (text, most tokens)) of a handler that asks; raises
    ``ClawError`` for anything else.
    """
    text, most = said.get("ask"), said.get("max_tokens", MAX_TOKENS)
    if (
        not isinstance(text, str)
        or not text
        or not isinstance(most, int)
        or most is True
        or most < 1
    ):
        raise ClawError(
            'it yielded a dict, expected {"ask": text, "max_tokens": number}',
            "mend the yield in tools.py",
        )
    return ASKS_PROVIDER, (text, most)


def end(generator):
    try:
        generator.close()
    # its own clean-up failed: its call has ended all the same, and other handlers must end, too
    except BaseException:
        pass
