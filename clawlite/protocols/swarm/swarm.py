"""The swarm that an agent belongs to (CKP 0.2.0, 5.9), as its image has it, and its tasks.

A task that is given to the swarm is done by one agent, or it is divided: each of several agents
does a part of it, and the reports of all parts become one (aggregation.py).  The agent that divides
a task coordinates it, and does no part of it.

Topologies    leader-worker  the leader hands tasks to the workers
              peer-to-peer   each member does the tasks that are given to it
              pipeline       all members, one after the other, each with the result of the last one
              broadcast      the member with the role "source" gives each task to all others
              hierarchical   roles are paths: "root" gives parts to "root/a" and "root/b", and each
                             of these to the members below it
"""

LEADER_WORKER, PEER_TO_PEER, PIPELINE, BROADCAST, HIERARCHICAL = range(5)
LEADER_DECIDES, MERGE, MAJORITY_VOTE, BEST_OF_N, CHAIN = range(5)
LEADER, SOURCE, ROOT = "leader", "source", "root"  # roles
_IS_SHARED, _ENGINE_AT = 4, 15  # positions in the record of a swarm
WAITING, RUNNING, COMPLETED, FAILED, PARTIAL, DEAD = (
    "waiting",
    "running",
    "completed",
    "failed",
    "partial",
    "dead",
)
STATUSES = (COMPLETED, FAILED, PARTIAL)  # of a report (9.3.3)
MOST_AMOUNT = (1 << 53) - 1  # of a report: what JSON has exactly, and no database adds up wrongly

REMOTE_SECRET = 4  # position in ``Member.remote``


class Member:
    """An agent of a swarm: *identity*, its claw:// *uri*, its *role*, and how many processes of it
    there should be (*count*).

    remote  [secure, host, port, target, name of a secret or "", name of the secret at the engine or
            ""] for a remote agent that speaks A2A, else None
    """

    def __init__(self, identity: str, uri: str, role: str, count: int, remote=None) -> None:
        self.identity, self.uri, self.role, self.count = identity, uri, role, count
        self.remote = remote


class Swarm:
    """The section SWARM of an image.

    name          str
    topology      LEADER_WORKER, PEER_TO_PEER, PIPELINE, BROADCAST or HIERARCHICAL
    members       list of ``Member``; own: that of this agent
    is_shared     bool, its processes share a file or an engine; False: this process is alone, and
                  does all tasks
    max_parallel  int, tasks in progress at once in the whole swarm, or None
    at_once       int, tasks in progress at once in one process
    timeout_ms    int, from the delegation of a task to its end, or None
    retries       how often a task is started again after its process ended: int, or [in all, with
                  one agent, [identity of each agent that does tasks for any agent that is free,
                  ...]]
    keeps_dead    bool, a task that was given up is kept for a person to decide
    strategy      LEADER_DECIDES, MERGE, MAJORITY_VOTE, BEST_OF_N or CHAIN
    to_all        bool, a task goes to all members that may do it, not to the first that is free
    breaker       (failures in a row, ms): after that many failures an agent gets no task for that
                  long; or None
    most_tokens   int, of a task with all its parts, or None
    most_nano     int, nano-dollars of a task with all its parts, or None
    engine        [kind, secure, host, port, user, name of the secret, name of the secret of
                  the login ``operator``, or ""], or None: no server
    shares        [name of a store of the agent's Memory that all agents share, ...]
    terms         the part of the section that must be the same for all of its agents: everything
                  except the agent's own fields
    """

    def __init__(self, record: list) -> None:
        (
            self.name,
            own,
            self.topology,
            members,
            self.is_shared,
            self.max_parallel,
            self.at_once,
            self.timeout_ms,
            self.retries,
            self.keeps_dead,
            self.strategy,
            self.to_all,
            self.breaker,
            self.most_tokens,
            self.most_nano,
            self.engine,
            *shares,
        ) = record
        members_of_all = [[name, role, count] for name, _, role, count, *_ in members]
        self.terms = [self.name, self.topology, members_of_all] + record[_IS_SHARED:_ENGINE_AT]
        self.shares = shares[0] if shares else []
        self.members = [Member(*row) for row in members]
        self.own = self.members[own]
        if isinstance(self.retries, list):
            able = [one.identity for one in self.members if not self.is_leader(one)]
            self.retries = self.retries + [able]

    def share_process(self) -> None:
        """All agents are in one process: each is there once, and does what its processes would."""
        self.is_shared = True
        self.at_once *= self.own.count

    def share_members(self, members: list) -> None:
        """Have *members*, those of a ``Swarm`` with the same terms, in place of its own."""
        self.own = members[self.members.index(self.own)]
        self.members = members

    @property
    def leads(self) -> bool:
        """Whether this agent passes on the tasks that it is given, and does none of them."""
        return self.is_leader(self.own)

    @property
    def hands_on(self) -> bool:
        """Whether a task of the leader is done, undivided, by any member that is free."""
        return self.topology == LEADER_WORKER and not self.to_all

    @property
    def entry(self) -> str:
        """The identity of the member that takes a task for the whole swarm, or "" for any that is
        free.
        """
        if self.hands_on:
            return ""
        for one in self.members:
            if self.is_leader(one) and (self.topology != HIERARCHICAL or one.role == ROOT):
                return one.identity
        return ""

    def is_leader(self, member: Member) -> bool:
        """Whether *member* passes on its tasks, whole or in parts."""
        if not self.is_shared:
            return False
        if self.topology == HIERARCHICAL:
            return bool(self.below(member))
        role = {LEADER_WORKER: LEADER, BROADCAST: SOURCE}.get(self.topology)
        return member.role == role

    def below(self, member: Member) -> list:
        """Return the members that *member* gives parts to."""
        if self.topology == HIERARCHICAL:
            path = member.role + "/"
            return [
                one
                for one in self.members
                if one.role.startswith(path) and "/" not in one.role[len(path) :]
            ]
        return [one for one in self.members if one is not member]

    def parts(self, is_part: bool) -> list:
        """Return the identities that each do a part of a task of this agent, in the order of the
        manifest; [] when it does the task itself.

        is_part  bool, the task is a part of another one
        """
        if not self.is_shared or self.hands_on:
            return []
        if self.topology == HIERARCHICAL or self.leads:
            those = self.below(self.own)
        elif is_part or self.topology in (LEADER_WORKER, BROADCAST):
            return []
        elif self.topology == PEER_TO_PEER and not self.to_all:
            return []
        else:
            those = self.members
        if self.strategy == CHAIN:
            return [one.identity for one in those]
        return [one.identity for one in those for _ in range(one.count)]

    def may_ask(self) -> list:
        """Return the identities that this agent may give a task to during one of its own turns."""
        if not self.is_shared:
            return []
        if self.topology == HIERARCHICAL:
            return [one.identity for one in self.below(self.own)]
        return [
            one.identity for one in self.members if one is not self.own and not self.is_leader(one)
        ]

    def statuses(self, present: dict, paused: tuple | list = ()) -> dict:
        """Return {identity: "ready" | "busy" | "unavailable"} of all members (9.3.3).

        present  {identity: [is free, ...]} of the running processes
        paused   identities that get no tasks for now, because their last tasks failed
        """
        found = {}
        for one in self.members:
            free = present.get(one.identity)
            if free is None or one.identity in paused:
                found[one.identity] = "unavailable"
            else:  # a leader does no tasks, but can be asked at any time
                found[one.identity] = "ready" if self.is_leader(one) or any(free) else "busy"
        return found


class Task:
    """A request of one agent to another (9.3.3 ``claw.swarm.delegate``).

    id           UUID, in lower case
    description  str, what is to be done
    input        JSON value, or None
    sender       identity of the agent that delegates it
    recipient    identity of the agent that does it, "" for any that is free
    parent       id of the task of which it is a part, or ""
    """

    def __init__(
        self, id: str, description: str, input, sender: str, recipient: str, parent: str = ""
    ) -> None:
        self.id, self.description, self.input = id, description, input
        self.sender, self.recipient, self.parent = sender, recipient, parent
