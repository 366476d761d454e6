"""``clawlite ask``: one turn without a conversation.

What asks first is put to the person when there is a terminal; without one it is denied at once, and
the message names the flag that answers it.
"""

import gc
import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.io import signals
from clawlite.linux.io.stdio import now_ms

_NOBODY = "it asks first; answer with --approve, or ask on a terminal"


def answering(approve: bool):
    """Return the function that answers what asks first (``Console``), without a person where there
    is none, or where *approve* says yes for them.
    """
    is_terminal = os.isatty(0)

    def answer(agent, task, at_ms: int) -> bool:
        is_form = task.approval.form is not None
        if is_terminal and (is_form or not approve):
            return False
        why = "" if approve and not is_form else _NOBODY
        agent.answer(task, not why, why, at_ms, "" if why else "--approve")
        return True

    return answer


def ask(shell, text: str) -> int:
    """Return the exit code: 0 done, 1 failed (the last tool call, too), or a provider cannot work
    as it is configured, 5 a tool or policy said no, 130 interrupted, 128 + n after signal n.

    Raises ``ClawError`` for a text that is too long.
    """
    limit = shell.agent.image.agent.max_message
    if len(text) > limit:
        raise ClawError(
            "the text has %d characters; a message has at most %d" % (len(text), limit),
            "ask in fewer words",
        )
    console, agent = shell.console, shell.agent
    if not shell.terminal:
        shell.wire.end()  # stdin is not ours to read: `ask` has its text already
    try:
        agent.start(now_ms())
        shell.obey_stop()
        gc.enable()
        console.line(text, now_ms())
        shell.settle()
        while shell.code is None:
            shell.step()
        if not (console.failed or console.interrupted or signals.end_signal()):
            shell.people.release()
    finally:
        shell.leave()
    if signals.end_signal():
        return 128 + signals.end_signal()
    if shell.code or shell.wire.broken:  # nobody has read the answer
        return shell.code or 1
    failed = console.failed or agent.providers is not None and agent.providers.broken
    if console.interrupted:
        return 130
    if failed:
        return 1
    return 5 if not console.clean else int(console.tool_failed)
