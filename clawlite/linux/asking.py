"""``clawlite ask``: one turn without a conversation.

What asks first is put to the person when there is a terminal; without one it is denied at once, and the message names
the flag that answers it.
"""
import gc
import os

from clawlite.linux import signals
from clawlite.linux.shell import LEAVE_MS, now_ms
from clawlite.linux.wire import Wire


def ask(shell, text: str, approve: bool) -> int:
    """Return the exit code: 0 done, 1 failed, 5 a tool or policy said no, 130 interrupted."""
    shell.terminal = os.isatty(0)
    shell.wire = Wire(0, 1, signals.catch())
    console, agent = shell.console, shell.agent
    if not shell.terminal:
        shell.wire.at_end = True        # stdin is not ours to read: `ask` has its text already

    def wait(task, at_ms):
        if approve:
            agent.answer(task, True, "", at_ms)
        elif shell.terminal:
            ask_person(task, at_ms)
        else:
            agent.answer(task, False, "it asks first; answer with --approve, or ask on a terminal", at_ms)
    ask_person, agent.on_wait = agent.on_wait, wait
    try:
        agent.start(now_ms())
        gc.enable()
        console.once = True
        console.line(text, now_ms())
        shell.settle()
        while shell.code is None:
            shell.step()
    except KeyboardInterrupt:
        shell.code = 130
    finally:
        shell.handlers.close()
        shell.wire.flush(LEAVE_MS)
        shell.log.close()
        signals.release()
    if shell.code:
        return shell.code
    return 130 if console.interrupted else 1 if console.failed else 0 if console.clean else 5
