"""The parameters of the methods ``claw.task.*``: what a task is called, its state and its
messages.
"""

from clawlite.core.base.errors import InvalidParams
from clawlite.core.protocol.rpc import field

MAX_ID, MAX_TEXT, MAX_MESSAGES = 128, 65536, 256  # characters, characters of one message
ROLES = ("user", "assistant")
# auth_required and rejected are states of A2A that no task on record has
STATES = (
    "submitted",
    "working",
    "input_required",
    "auth_required",
    "completed",
    "failed",
    "canceled",
    "rejected",
)


def read_id(params: dict) -> str:
    """Return the id of a task.  Raises ``InvalidParams``."""
    task_id = field(params, "task_id", str, "")
    if len(task_id) > MAX_ID:
        raise InvalidParams(
            "task_id: expected at most %d characters, got %d" % (MAX_ID, len(task_id))
        )
    return task_id


def read_messages(params: dict) -> list:
    """Return [(role, text), ...] of the messages of a task, the one that is to be answered last.
    Raises ``InvalidParams``.
    """
    if "messages" not in params:
        return [_message(field(params, "message", dict, ""), "message")]
    messages = params["messages"]
    if "message" in params:
        raise InvalidParams("message: expected it, or messages, got both")
    if not isinstance(messages, list) or not 1 <= len(messages) <= MAX_MESSAGES:
        raise InvalidParams("messages: expected an array of 1 to %d messages" % MAX_MESSAGES)
    found = []
    for number, message in enumerate(messages):
        where = "messages[%d]" % number
        if not isinstance(message, dict):
            raise InvalidParams("%s: expected an object" % where)
        found.append(_message(message, where))
    return found


def _message(message: dict, where: str) -> tuple:
    role = field(message, "role", str, where + ".")
    if role not in ROLES:
        raise InvalidParams("%s.role: expected %s, got %s" % (where, " or ".join(ROLES), role[:40]))
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise InvalidParams("%s.content: expected an array of content blocks" % where)
    texts = []
    for number, block in enumerate(content):
        at = "%s.content[%d]" % (where, number)
        if not isinstance(block, dict) or block.get("type") != "text":
            raise InvalidParams('%s: expected a block of type "text"' % at)
        texts.append(field(block, "text", str, at + "."))
    text = "\n".join(texts)
    if len(text) > MAX_TEXT:
        raise InvalidParams(
            "%s: expected at most %d characters of text, got %d" % (where, MAX_TEXT, len(text))
        )
    return role, text
