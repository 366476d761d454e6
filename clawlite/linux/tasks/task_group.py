"""The methods of tasks, as a group of an operator's session that costs nothing until the first of
them is asked: no module, no file.
"""

import os

from clawlite.core.base.errors import ClawError, StoreError
from clawlite.linux.files.files import state_folder
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.protocols.session.group_session import Group

AGAIN_MS = 1000  # between attempts to do the tasks that another process does
ROWS = """
task.create     ready  -  task_id  -  message? messages? caller? is_answer? number?
task.get        ready  -  -        -  task_id with_number?
task.list       ready  -  -        -  state? page_size? page_token? with_number?
task.cancel     ready  -  -        -  task_id reason?
task.subscribe  ready  -  -        -  task_id
"""


class TaskGroup(Part, Group):
    """The methods of tasks.

    agent  ``agent.Agent``
    join   function(TaskRunner or TaskGroup): from now on it is polled, and closed at the end

    Where tasks of an earlier process may wait, this is polled until it may do them: while another
    process does, a request for a task is an error.
    """

    rows = ROWS

    def __init__(self, agent, join):
        self._agent, self._join, self._methods = agent, join, None
        self._folder = os.path.join(state_folder(agent.image.agent.name), "tasks")
        self._try_ms = None  # when it tries to do them
        if os.path.isdir(self._folder):
            try:
                self._open()
            except StoreError:  # another process does them
                self._try_ms = now_ms() + AGAIN_MS
                join(self)

    def deadline(self):
        return self._try_ms

    def poll(self):
        if self._try_ms is not None and now_ms() >= self._try_ms:
            try:
                self._open()
            except ClawError:  # a request for a task is told why
                self._try_ms = now_ms() + AGAIN_MS

    def has(self, number: int) -> bool:
        """Return whether the agent's task *number* is the turn of one of the tasks here."""
        return self._methods is not None and self._methods.runner.has(number)

    def begin(self, method: str, params: dict, *whose) -> dict:
        """Return the result of a request; *whose*: as ``TaskMethods.begin`` has it.  Raises
        ``ClawError``.
        """
        return (self._methods or self._open()).begin(method, params, *whose)

    def of(self, person, send):
        """Return this group for a line of *person*, whom *send* tells what becomes of tasks."""
        from clawlite.linux.tasks.person_tasks import PersonTasks

        return PersonTasks(self, person, send)

    def forget(self, send):
        """Tell *send* nothing more."""
        if self._methods:
            self._methods.forget(send)

    def _open(self):
        from clawlite.linux.tasks.task_methods import TaskMethods

        self._methods = TaskMethods(self._agent, self._folder)
        self._try_ms = None
        self._join(self._methods.runner)
        return self._methods
