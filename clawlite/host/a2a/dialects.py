"""The two versions of A2A that the door speaks, over JSON-RPC: 0.3.0 and 1.0.

They name methods, states and roles differently, and shape events differently; what a task is, is
the same.  An operation is named here as 1.0 names it.
"""

from clawlite.protocols.session.task_params import STATES

SEND, STREAM, GET, LIST, CANCEL, SUBSCRIBE = (
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
)
PUSH, EXTENDED = "PushNotificationConfig", "GetExtendedAgentCard"
ANSWER = "answer"  # id of the one artifact of a task
_OTHERS = {"raw", "url", "data"}  # what else a part of 1.0 may be: one thing alone


class V10:
    """A2A 1.0, whose shapes are those of Protocol Buffers as JSON."""

    methods = {name: name for name in (SEND, STREAM, GET, LIST, CANCEL, SUBSCRIBE, EXTENDED)}
    methods.update(
        {verb + "TaskPushNotificationConfig": PUSH for verb in ("Create", "Get", "Delete")},
        ListTaskPushNotificationConfigs=PUSH,
    )
    role = "ROLE_USER"
    status_field = "status"
    states = {name: "TASK_STATE_" + name.upper() for name in STATES}

    def is_text(self, part: dict) -> bool:
        return "text" in part and not _OTHERS.intersection(part)

    def waits(self, configuration: dict) -> bool:
        """Return whether the answer to a message comes when its task has ended, or asks."""
        return configuration.get("returnImmediately") is not True

    def part(self, text: str) -> dict:
        return {"text": text}

    def message(self, task_id: str, context_id: str, text: str) -> dict:
        return {
            "messageId": task_id + "-status",
            "contextId": context_id,
            "taskId": task_id,
            "role": "ROLE_AGENT",
            "parts": [self.part(text)],
        }

    def task(self, fields: dict) -> dict:
        return fields

    def wrap(self, task: dict) -> dict:
        return {"task": task}

    event = wrap

    def status(self, fields: dict, is_final: bool) -> dict:
        return {"statusUpdate": fields}

    def artifact(self, fields: dict) -> dict:
        return {"artifactUpdate": fields}


class V03:
    """A2A 0.3.0, whose objects say their ``kind``."""

    methods = {
        "message/send": SEND,
        "message/stream": STREAM,
        "tasks/get": GET,
        "tasks/list": LIST,
        "tasks/cancel": CANCEL,
        "tasks/resubscribe": SUBSCRIBE,
        "agent/getAuthenticatedExtendedCard": EXTENDED,
    }
    methods.update(
        {"tasks/pushNotificationConfig/" + verb: PUSH for verb in ("set", "get", "list", "delete")}
    )
    role = "user"
    status_field = "state"
    states = {name: name.replace("_", "-") for name in STATES}

    def is_text(self, part: dict) -> bool:
        return part.get("kind") == "text"

    def waits(self, configuration: dict) -> bool:
        return configuration.get("blocking") is not False

    def part(self, text: str) -> dict:
        return {"kind": "text", "text": text}

    def message(self, task_id: str, context_id: str, text: str) -> dict:
        return {
            "kind": "message",
            "messageId": task_id + "-status",
            "contextId": context_id,
            "taskId": task_id,
            "role": "agent",
            "parts": [self.part(text)],
        }

    def task(self, fields: dict) -> dict:
        return {"kind": "task", **fields}

    def wrap(self, task: dict) -> dict:
        return task

    event = wrap

    def status(self, fields: dict, is_final: bool) -> dict:
        return {"kind": "status-update", **fields, "final": is_final}

    def artifact(self, fields: dict) -> dict:
        return {"kind": "artifact-update", **fields}


DIALECTS = (V10(), V03())
