"""The data that outlives this process: calls and approvals, whose journal is opened when there is
one; and the memory, which is loaded at its first request."""

import os

from clawlite.core.image.image import CONTEXT, SWARM
from clawlite.linux.files.files import state_folder, swarm_folder
from clawlite.linux.io.stdio import Part, now_ms

MAX_IDS = 4096  # calls of an operator that are remembered
# of those, calls that may run again: their records are looked through often
MAX_FREE = 1024
MAX_BYTES = 8388608  # of the answers of remembered calls


class Persistence(Part):
    """The records of one agent.  An agent whose tools only read has none, and no file.

    parts   ``agent_parts.AgentParts``
    folder  the folder of the image
    """

    def __init__(self, parts, folder: str):
        self._parts, self._folder = parts, folder
        self._journal = self._memory = self._memories = self._embeddings = None
        self._shared = None  # ``SharedStores`` of a swarm on an engine, or None

    def share(self, stores):
        """Let *stores* carry out what concerns the stores of a swarm; None: there are none."""
        self._shared = stores

    def start(self, says: bool):
        """Report the approvals that waited when the last process ended; *says*: a person reads the
        console.
        """
        if self._exists():
            from clawlite.core.policy.approval import report_restart

            report_restart(self._parts.agent, self._open().waiting(), says)

    def tell_old_files(self, warn):
        """Tell of files that were emptied or are old; *warn*: function(text), write to the log."""
        for folder in self._folders():
            if os.path.exists(os.path.join(folder, "state.marks")):
                from clawlite.linux.files.old_files import tell

                tell(folder, warn)

    def _folders(self) -> list:
        """Return the state folders of this agent, and of its swarm."""
        image = self._parts.image
        folders = [state_folder(image.agent.name)]
        if image.size_of(SWARM):
            from clawlite.protocols.swarm.swarm import Swarm

            folders.append(swarm_folder(Swarm(image.section(SWARM)).name))
        return folders

    def carry_out(self, effect: tuple):
        """Carry a KEEP effect out."""
        _, task, kind, key, payload = effect
        self._parts.agent.complete(task, self._open().keep(kind, key, payload), now_ms())

    def records(self, key: str = None):
        """Return the bounds and the recorded calls, or the record of *key*
        (``idempotency.Idempotency``).
        """
        if key is not None:
            return self._open().last_record(key)
        return MAX_IDS, MAX_FREE, MAX_BYTES, self._open().calls() if self._exists() else ()

    def memories(self):
        """Return the methods of the agent's stores (memory_methods.py)."""
        if self._memories is None:
            from clawlite.core.memory.memory_methods import Memories

            self._memories = Memories(self._parts.agent, self._embed)
        return self._memories

    def _embed(self, *asked):
        if self._embeddings is None:
            from clawlite.linux.memory.embeddings import Embeddings

            self._embeddings = Embeddings(self._parts.agent)
        return self._embeddings.work(*asked)

    def lasting(self, work, history, once: bool, channel: str = ""):
        """Return *work* of a turn, with the context files before it.  If the agent has a store for
        it, the turn belongs to a conversation that goes on after a restart.

        once     bool, the turn has no conversation
        channel  NAME/ACTOR: the conversation is that of this actor of a channel; "": the console's
        """
        from clawlite.core.memory.conversation import store_of
        from clawlite.linux.memory.conversation import lasting, preface

        image = self._parts.image
        files = image.section(CONTEXT)
        if files and self._parts.keep_bytes:
            history.preface = preface(
                files, (self._parts.workspace, self._folder), state_folder(image.agent.name)
            )
        place = (
            store_of(self.memories().stores, image.agent.identity, channel)
            if self._parts.memories and not once
            else None
        )
        return lasting(work, place, history, self._parts.keep_bytes) if place else work

    def remember(self, effect: tuple):
        """Carry a REMEMBER effect out."""
        if self._shared is None or not self._shared.carry_out(effect):
            self.remember_here(effect)

    def remember_here(self, effect: tuple, on_end=None):
        """Carry a REMEMBER effect out, on this machine.  *on_end*: as in ``Memory.carry_out``."""
        if self._memory is None:
            from clawlite.linux.io.signals import waker
            from clawlite.linux.memory.memory import Memory

            self._memory = Memory(self._parts.agent, waker(), now_ms)
        self._memory.carry_out(effect, on_end)

    def poll(self):
        """Pass the results of the memory to the agent."""
        if self._memory:
            self._memory.poll()

    def close(self):
        if self._memory:
            self._memory.close()
        if self._journal:
            self._journal.close()

    def _exists(self) -> bool:
        return os.path.exists(
            os.path.join(state_folder(self._parts.image.agent.name), "calls.journal")
        )

    def _open(self):
        if self._journal is None:
            from clawlite.linux.runtime.call_journal import Journal

            self._journal = Journal(self._parts.image.agent.name)
        return self._journal
