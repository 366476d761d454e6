"""The methods of tasks on the line of a person (operator_line.py).

1. The person is the caller of each task that they create.  A user has their own tasks alone: those
   of others are unknown to them.
2. Only an admin answers what a task asks: a user's message makes a task, and answers nothing.
"""

from clawlite.core.base.errors import PolicyDenied
from clawlite.core.policy.access import ADMIN
from clawlite.protocols.session.group_session import Group


class PersonTasks(Group):
    """The methods for one person.

    tasks   ``TaskGroup`` of the agent
    person  ``operator_line.Person``
    send    function(message) for what becomes of tasks that the person subscribes to
    """

    def __init__(self, tasks, person, send):
        self.rows = tasks.rows
        self._tasks, self._person, self._send = tasks, person, send

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        is_admin = self._person.role == ADMIN
        if method == "claw.task.create":
            params = dict(params, caller=self._person.caller)
            if not is_admin:
                if params.get("is_answer") is True:
                    raise PolicyDenied(
                        "is_answer: only an admin answers what a task asks", "ask an admin"
                    )
                params["is_answer"] = False
        return self._tasks.begin(
            method, params, self._send, None if is_admin else self._person.caller
        )

    def has(self, number: int) -> bool:
        """Return whether the agent's task *number* is the turn of a task of an agent's operator."""
        return self._person.role == ADMIN and self._tasks.has(number)

    def close(self):
        """The line has ended: nobody hears what becomes of the tasks."""
        self._tasks.forget(self._send)
