"""The reports that an agent still owes its operator, in a file: an operator that declares ``swarm``
is sent each until it acknowledges it, also by the next process of the agent (CKP 0.2.0, 9.3.3;
docs/adr/0137).

    swarms/NAME/IDENTITY.PROCESS.owed    rows [task_id, id as the operator wrote it]

1. A row survives a kill.  It is not synced: after a power cut the operator delegates the task
   again, which does not run again.
2. When the disk fails, only the protection by this file is lost, and the log says so.
"""

from typing import Any

from clawlite.linux.io.jsontext import dumps, loads


class OwedReports:
    """Those of one process.

    folder  of the swarm;  identity: of the agent;  process: id of the process
    refused  function(reason): the disk has failed
    """

    def __init__(self, folder: str, identity: str, process: str, refused):
        self._place = folder, identity, process
        self._refused = refused
        self._log: Any = None  # most operators declare no ``swarm``: nothing is loaded for them

    def take_over(self) -> list:
        """Take over what ended processes of this agent owe; return [[task_id, written], ...]."""
        if self._log is None:
            from clawlite.linux.files.inherited_log import InheritedLog

            self._log = InheritedLog(*self._place, "owed", dumps, loads)
        return self._on_disk(self._log.take_over, self._tell) or []

    def keep(self, task_id: str, written: str):
        """*task_id* is delegated; ``take_over`` was called before, at the begin of the session."""
        self._on_disk(self._log.keep, [task_id, written], False)

    def remove(self, task_id: str):
        self._on_disk(self._log.remove, task_id)

    def close(self):
        if self._log is not None:
            self._on_disk(self._log.close)

    def _on_disk(self, function, *arguments):
        try:
            return function(*arguments)
        except OSError as e:
            self._tell(e)
            return None

    def _tell(self, e: OSError):
        self._refused("what the operator is to be told does not outlive this process: %s" % e)
