"""Where tools run on Linux: in this process, in the sandbox, or on a connection (docs/adr/0018).

    functions of tools.py     level none: here (core/turns/handlers.py); level process: a child of
                              the sandbox for each call
    files, shells, memory     builtin.py says which of both
    tools of MCP servers      a process that lives as long as the agent (linux/mcp), on level
                              process in the sandbox
    tools of services         on a connection of this process, too (service_tools.py)
    web                       on a connection of this process, under the sandbox's network rules
                              (fetch.py)
    pins, buses, message,
    delegate                  here, on every level: they are this program's own code, and touch
                              nothing but what is declared

It has the interface of core/turns/handlers.py, so that the shell can use either.
"""

import os

from clawlite.core.base.effect import ASKS_PROVIDER, IS_OK
from clawlite.core.base.errors import ClawError
from clawlite.core.image.header import check_shape
from clawlite.core.image.image import (
    GENERATOR,
    HANDLER_NAME,
    HAS_BOARD,
    MAKER,
    NETWORK,
    SERVED,
    SERVICE,
)
from clawlite.core.policy.policy import paths_of
from clawlite.linux.confinement.kernel import IS_LINUX, check_kernel
from clawlite.linux.files.workspace import make_folder, paths_to_hide, store_behind
from clawlite.linux.secrets.credentials import Credentials
from clawlite.protocols.sandbox.defaults import find_defaults
from clawlite.protocols.sandbox.profile import (
    ALLOWLIST,
    DENY,
    ENVIRONMENT,
    FILE,
    FULL,
    NONE,
    SCOPED,
)

PROGRAMS = ("exec-shell", "spawn")
HERE = ("message", "delegate", "add-rule", "forget-rule", "list-rules", "remind")
WEB = ("web-fetch", "web-search")
# core/image/header.py
_PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}  # of a server outside
_LOCAL = (
    [str],
    [str],
    [str],
    [None, (str, str, str)],
    [(str, [str], [str], str, str)],
    str,
)


class Nobody:
    """The seam of an agent when no person can be asked."""

    def asks(self, task) -> bool:
        return False

    def watches(self, task) -> bool:
        return False

    def tell(self, task: int, progress):
        pass

    def warn(self, text: str):
        pass


class Dispatcher:
    """What runs, of one agent.

    handlers  ``handlers.Handlers``, what runs in this process
    setup     ``agent_setup.Setup``
    profile   ``profile.Profile``
    state     the agent's folder
    wake      descriptor that wakes the loop, by a byte written to it
    now_ms    function -> monotonic ms
    source    ``maker_code.Code`` of tools.py, or None
    decided   ``workspace.DecidedPaths``, where policy saw the paths of calls lead
    local     section LOCAL of the image: [relaxed, environment, writable, search, credentials,
              namespaces], or None
    log       function(event) that takes what functions of tools.py print, or None
    seam      asks people during calls, and shows them the progress (linux/mcp/servers.py); None:
              ``Nobody``

    descriptors  list of descriptors that are readable when ``poll`` has something; it changes
    """

    def __init__(
        self,
        handlers,
        setup,
        profile,
        state: str,
        wake: int,
        now_ms,
        decided,
        source=None,
        local=None,
        log=None,
        seam=None,
    ):
        from clawlite.linux.tools.builtin import Builtins

        self.descriptors = []
        self._seam = seam or Nobody()
        self._handlers = handlers
        self._image = image = setup.image
        self._workspace = setup.workspace
        self._profile = profile
        self._relaxed, self._variables, writable, self._search, credentials, self._namespaces = (
            local_of(local)
        )
        widen(profile, writable)
        self._default_ms = None  # the time of a call that has no other limit
        if profile.level != NONE:
            self._relaxed, self._default_ms = limit(profile, self._relaxed)
        self._state = state
        self._hidden = paths_to_hide(profile, state, setup.workspace)
        store = store_behind(image, state, setup.workspace)
        self._most = store.max_bytes if store else None
        if store and store.path:
            make_folder(setup.workspace, profile.level)
        self._wake = wake
        self._now_ms = now_ms
        self._decided = decided
        self._source = source
        self._log = log
        self._builtins = Builtins(
            profile, image.automaton, state, setup.workspace, self._hidden, self._most
        )
        self._credentials = Credentials(credentials, image.agent.name, setup.guard)
        self._engine = None
        self._fetcher = None
        self._servers = None
        self._services = self._gateway = None
        # task -> name of the tool in the sandbox, None for a function of tools.py
        self._jobs = {}
        if profile.level != NONE and IS_LINUX:
            self._open_sandbox().prepare()

    @property
    def bank(self):
        """The pins of this process, None for an agent without."""
        return getattr(self._handlers, "bank", None)

    def read_pin(self, name: str) -> int:
        """Return the value of a pin, for readings and rules of an agent that has pins."""
        return self._handlers.read_pin(name)

    @property
    def is_busy(self) -> bool:
        """Whether anything is running."""
        return (
            self._handlers.is_busy
            or bool(self._jobs)
            or self._engine is not None
            and self._engine.has_news
            or self._fetcher is not None
            and self._fetcher.is_busy
            or self._servers is not None
            and self._servers.is_busy
            or self._gateway is not None
            and self._gateway.is_busy
        )

    def start(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        """Start *tool*; return its outcome, or None when it goes on (see ``poll``)."""
        kind, name = tool.handler
        try:
            if kind == MAKER:
                if self._profile.level != NONE:
                    return self._start_function(task, tool, arguments, due_ms, now_ms)
            elif kind == SERVED:
                if self._profile.timeout_ms is not None:
                    most_ms = now_ms + self._profile.timeout_ms
                    due_ms = most_ms if due_ms is None else min(due_ms, most_ms)
                return self._open_mcp_servers().start(task, name, arguments, due_ms, now_ms)
            elif kind == SERVICE:
                return self._open_services().start(
                    task, tool, arguments, due_ms, now_ms, self._credentials.injections()
                )
            elif name in WEB:
                return self._open_web().start(
                    task, self._profile, name, arguments, due_ms, self._credentials.injections()
                )
            elif name not in HERE and not tool.flags & HAS_BOARD:
                return self._start_builtin(task, tool, arguments, due_ms, now_ms)
        except ClawError as e:
            return False, e
        return self._handlers.start(task, tool, arguments, due_ms, now_ms)

    def _start_function(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        from clawlite.linux.maker.maker_run import print_event
        from clawlite.linux.sandbox.jobs import Function
        from clawlite.linux.tools.precheck import check

        check(
            tool,
            arguments,
            self._profile,
            self._image.automaton,
            self._workspace,
            self._hidden,
            self._decided.paths_of(task),
        )
        job = Function(
            self._source.path,
            self._source.source,
            tool.handler[HANDLER_NAME],
            arguments,
            bool(tool.flags & GENERATOR),
            {name: os.environ[name] for name in self._variables if name in os.environ},
            modules=self._source.modules,
        )
        if self._log is not None:
            job.show = lambda text: self._log(print_event(text, tool.name))
        self._give(job, tool.name)
        return self._start_job(task, None, job, due_ms, now_ms)

    def _start_builtin(self, task: int, tool, arguments: dict, due_ms, now_ms: int):
        from clawlite.linux.tools.builtin import milliseconds

        name = tool.handler[HANDLER_NAME]
        paths = paths_of(tool.paths, arguments, self._workspace)
        # a file tool has one path
        decided = self._decided.paths_of(task).get(paths[0]) if paths else None
        if self._builtins.runs_here(name):
            return self._builtins.run_here(name, arguments, decided)
        own = milliseconds(name, arguments)
        if own is not None:
            due_ms = now_ms + own if due_ms is None else min(due_ms, now_ms + own)
        # what it may raise comes before a place among the programs of spawn is taken
        self._open_sandbox()
        job = self._builtins.job(task, name, arguments, decided)
        if name in PROGRAMS:
            self._give(job, name)
        return self._start_job(task, name, job, due_ms, now_ms)

    def _start_job(self, task: int, name, job, due_ms, now_ms: int):
        job.most = self._most
        if due_ms is None and self._profile.timeout_ms is None and self._default_ms is not None:
            due_ms = now_ms + self._default_ms
        outcome = self._open_sandbox().start(task, self._profile, job, due_ms, now_ms)
        self._jobs[task] = name
        return None if outcome is None else self._finish(task, outcome)

    def _finish(self, task: int, outcome: tuple) -> tuple:
        name = self._jobs.pop(task)
        if name is None:
            return outcome
        self._builtins.note_end(task)
        return self._builtins.outcome(name, outcome)

    def resume(self, task: int, outcome: tuple, now_ms: int):
        """Resume a call that asked a provider or a person: *outcome* is (True, answer) or (False,
        error).
        """
        if task in self._jobs:
            self._engine.resume(task, outcome, now_ms)
        elif self._servers is not None and self._servers.has(task):
            self._servers.resume(task, outcome, now_ms)
        elif self._gateway is not None and self._gateway.has(task):
            self._gateway.resume(task, outcome, now_ms)
        else:
            self._handlers.resume(task, outcome, now_ms)

    def poll(self, now_ms: int) -> list:
        """Step the calls that are due.  Return [(task, outcome), ...] of the calls that have ended
        or ask a question (core/turns/handlers.py).
        """
        ended = self._handlers.poll(now_ms) if self._handlers.is_busy else []
        if self._engine is not None:
            for task, outcome in self._engine.poll(now_ms):
                if task in self._jobs:
                    asks = outcome[IS_OK] == ASKS_PROVIDER
                    ended.append((task, outcome if asks else self._finish(task, outcome)))
                elif task < 0:
                    self._servers.handle_end(task, outcome)
        if self._servers is not None:
            ended += self._servers.poll(now_ms)
        if self._fetcher is not None:
            for task, outcome in self._fetcher.poll():
                if self._services is not None and self._services.is_mine(task):
                    outcome = self._services.finish(task, outcome)
                ended.append((task, outcome))
        if self._gateway is not None:
            ended += self._gateway.poll()
        return ended

    def cancel(self, task: int):
        """End the work of *task*, if it has any."""
        if self._jobs.pop(task, self) is not self:
            self._engine.cancel(task)
            self._builtins.note_end(task)
        elif self._fetcher is not None:
            self._fetcher.cancel(task)
            if self._services is not None:
                self._services.cancel(task)
        if self._servers is not None:
            self._servers.cancel(task)
        if self._gateway is not None:
            self._gateway.cancel(task)
        self._handlers.cancel(task)

    def close(self):
        """End all work."""
        for task in list(self._jobs):
            self.cancel(task)
        self.descriptors.clear()
        for part in (self._servers, self._engine, self._fetcher, self._gateway):
            if part is not None:
                part.close()
        self._servers = self._engine = self._fetcher = self._gateway = None
        self._handlers.close()

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do although nothing woke
        the loop, or None.
        """
        parts = [self._handlers] + [
            part
            for part in (self._engine, self._fetcher, self._servers, self._gateway)
            if part is not None
        ]
        return min(
            [at for at in [part.deadline() for part in parts] if at is not None], default=None
        )

    # -- parts that are made when they are first needed

    def _open_sandbox(self):
        if self._engine is None:
            check_kernel()
            from clawlite.linux.files.workspace import NOBODY, hand_over
            from clawlite.linux.sandbox.engine import Engine

            proxy = None
            if self._profile.network != DENY:
                from clawlite.linux.net.egress import Egress

                proxy = Egress
            folder = self._workspace
            if os.geteuid() == 0 and folder.startswith(os.path.abspath(self._state) + "/"):
                hand_over(folder, NOBODY)
            self._engine = Engine(
                folder,
                self._hidden,
                proxy,
                relaxed=frozenset(self._relaxed),
                modules=self._list_modules(),
                bubblewrap=self._namespaces == "bubblewrap",
                paths=[path for path, _ in self._profile.mounts],
            )
            self.descriptors.append(self._engine.fileno())
        return self._engine

    def _list_modules(self) -> list:
        """Return the modules that children find loaded."""
        from clawlite.linux.sandbox.jobs import modules_of

        code = self._source
        texts = [code.source, *code.modules.values()] if code else []
        found = sorted({name for text in texts for name in modules_of(text)})
        if code and any(name.startswith("drivers/") for name in code.modules):
            found.append("clawlite.linux.maker.board_modules")
        if "tool-providers" in self._image.requires:
            found.append("clawlite.protocols.mcp.tool_provider")
        return found

    def _open_mcp_servers(self):
        if self._servers is None:
            from clawlite.linux.mcp.section import rows_of
            from clawlite.linux.mcp.servers import MCPServers

            self._servers = MCPServers(
                rows_of(self._image),
                self._run_mcp_server,
                self._open_remote_mcp_server,
                self._seam,
                self._keep_content,
            )
            self.descriptors.append(self._servers.fileno())
        return self._servers

    def _keep_content(self, server: str, kind: str, data: str) -> str:
        """Return where what an MCP server gave is kept (saved_content.py)."""
        from clawlite.linux.files.workspace import NOBODY
        from clawlite.linux.tools.saved_content import keep_content

        owner = NOBODY if self._profile.level != NONE and os.geteuid() == 0 else None
        workspace = self._workspace
        return keep_content(
            self._profile, workspace, self._hidden, self._most, owner, server, kind, data
        )

    def _run_mcp_server(self, number: int, argv: list, variables: list, hosts, cpu_s: int, now_ms):
        """Return the process of an MCP server (linux/mcp/server_process.py)."""
        from clawlite.linux.mcp.server_process import PlainServer, SandboxedServer

        env = {name: os.environ[name] for name in variables if name in os.environ}
        if self._profile.level != NONE:
            profile = narrow(self._profile, hosts)
            return SandboxedServer(self._open_sandbox(), profile, number, argv, env, cpu_s, now_ms)
        folder = self._workspace
        os.makedirs(folder, 0o700, exist_ok=True)
        return PlainServer(argv, dict(_PLAIN, HOME=folder, **env), folder)

    def _open_remote_mcp_server(self, url: str, headers: list, oauth):
        from clawlite.linux.mcp.remote import RemoteServer

        _, authorities = self._image.section(NETWORK) or (None, ())
        headers, injections = list(map(tuple, headers)), self._credentials.injections()
        if oauth is not None:
            from clawlite.linux.mcp.remote_token import Secret

            *row, name, resource, device = oauth
            known = self._credentials
            secret = Secret(name, lambda: known.value(name), known.learn)
            if device is not None:
                *_, client = device
                secret.keep = lambda value: known.keep(name, value)
                secret.renewal = known.renewal(name)
                secret.client = lambda: known.value(client) if client else ""
            oauth = row, secret, resource
        return RemoteServer(url, self._profile, headers, injections, authorities, oauth)

    def _open_web(self):
        if self._fetcher is None:
            from clawlite.linux.tools.fetch import Fetcher

            self._fetcher = Fetcher(self._wake, self._now_ms, self._make_search())
        return self._fetcher

    def _open_services(self):
        if self._services is None:
            from clawlite.linux.tools.service_tools import ServiceTools, services_of

            self._services = ServiceTools(
                self._image, self._profile, services_of(self._image), self._open_web, self._mediator
            )
        return self._services

    def _mediator(self):
        if self._gateway is None:
            from clawlite.linux.io.jsontext import dumps, loads
            from clawlite.linux.net.gateway_client import TOKEN, GatewayCalls
            from clawlite.linux.secrets.secrets import resolve, stores

            image = self._image
            self._gateway = GatewayCalls(
                image,
                self._wake,
                self._now_ms,
                lambda: resolve(TOKEN, stores(image.agent.name)),
                (loads, dumps),
                self._seam,
                self._make_question,
            )
        return self._gateway

    def _make_question(self, task: int, server: str, params):
        """Return what asks a person for the server behind a gateway.  Raises ``ClawError``."""
        from clawlite.linux.io.jsontext import loads
        from clawlite.linux.mcp.question import Question

        question = Question(server, params, loads)
        if not self._seam.asks(task):
            raise ClawError(
                "it asked for %s, and nobody can be asked here" % question.said,
                "give all that it needs in the arguments",
            )
        return question

    def _make_search(self):
        """Return the ``fetch_search.Search`` that the settings name, or None."""
        if self._search is None:
            return None
        from clawlite.linux.secrets.secrets import resolve, stores
        from clawlite.linux.tools.fetch_search import Search

        endpoint, header, name = self._search
        return Search(
            endpoint,
            header,
            (lambda: resolve(name, stores(self._image.agent.name))) if name else None,
        )

    def _give(self, job, tool: str):
        """Add the secrets of *tool* to *job*, as the sandbox says.  Raises ``SecretError``."""
        if self._profile.injection == ENVIRONMENT:
            job.env.update(self._credentials.values(tool))
        elif self._profile.injection == FILE:
            job.files.update(self._credentials.values(tool))


def local_of(section) -> list:
    """Return what the section LOCAL of an image says, or what it means when there is none.  Raises
    ``ImageError``.
    """
    return check_shape(section or [[], [], [], None, [], ""], _LOCAL, "what is local")


def widen(profile, writable: list) -> None:
    """Add to *profile* what of *writable* is on this machine, where tools may write at all."""
    if profile.files in (SCOPED, FULL):
        profile.mounts += [
            (path, True) for path in map(os.path.expandvars, writable) if _is_there(path)
        ]


def limit(profile, relaxed: list) -> tuple:
    """Set default limits in *profile* for those that were not declared.  They are enforced as well
    as the kernel can; a call is never refused because of them.

    Return (the names of limits that may be enforced in part, the ms that a call has which nothing
    else limits, or None).
    """
    given = find_defaults(profile, relaxed)
    default_ms = given.pop("timeout_ms", None)  # a tool's own time may be longer
    if "memory_mb" in given:
        half_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 21
        given["memory_mb"] = min(given["memory_mb"], max(half_mb, 1))
    for name, value in given.items():
        setattr(profile, name, value)
    return list(relaxed) + [name for name in given if name != "max_output_bytes"], default_ms


def narrow(profile, hosts):
    """Return *profile* for a server that may reach *hosts* alone, of those that it allows
    (host/mcp/feature.py); None: all of them.
    """
    if hosts is None:
        return profile
    from copy import copy

    profile = copy(profile)
    profile.network, profile.hosts = ALLOWLIST if hosts else DENY, hosts
    return profile


def _is_there(path: str) -> bool:
    """Return whether *path* exists, so that tools can get it.  When only the file is missing in its
    folder, it is created for them.
    """
    if not path.startswith("/"):  # it contains a variable that is not set
        return False
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return True
    except OSError:
        return False
    try:
        if os.geteuid() == 0:
            from clawlite.linux.files.workspace import NOBODY

            os.fchown(made, NOBODY, NOBODY)  # by its name, it could be another file by now
    finally:
        os.close(made)
    return True
