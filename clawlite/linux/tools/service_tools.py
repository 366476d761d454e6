"""Tools of services: called by this machine itself, as requests of tools (fetch.py) with results as
protocols/services/service_call.py shapes them, or by its gateway (linux/net/gateway_client.py).

1. The sandbox's network rules decide as they do for ``web-fetch``; what they forbid is
   ``SandboxDenied``, and a call that finds no room or no credential is refused.  All else that
   goes wrong is a result that says so.
2. Credentials are the runtime's, by host (clawlite.toml, ``[[credentials]]``).  No redirect is
   followed: another server would get what was meant for this one.
"""

from clawlite.core.base.effect import IS_OK, VALUE
from clawlite.core.base.errors import ClawError, InvalidParams, SandboxDenied, ToolTimeout
from clawlite.core.idempotency.idempotency import not_run
from clawlite.core.image.header import check_shape
from clawlite.core.image.image import HANDLER_NAME, SERVICES
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.protocols.services.feed import PREFIX
from clawlite.protocols.services.service_call import (
    MAX_BODY,
    MEDIATED,
    TIMEOUT_MS,
    BadArgument,
    Service,
    failure,
    make_timeout,
    request_of,
    result_of,
)

_MANY = 1 << 32
SHAPE = [
    (
        str,
        2,
        str,
        str,
        65536,
        str,
        [None, (2, str, str)],
        [str],
        [(str, str, str, 3, bool)],
        [(str, str, _MANY)],
    )
]


def services_of(image) -> dict:
    """Return {name: ``Service``} of *image*.  Raises ``ImageError``."""
    rows = check_shape(image.section(SERVICES), SHAPE, "services")
    return {row[0]: Service(row) for row in rows}


class ServiceTools:
    """The calls of one agent that are under way.

    image     ``image.Image``;  profile  ``profile.Profile``
    services  ``services_of`` the image
    fetcher   function() -> ``fetch.Fetcher``;  gateway: function() -> ``GatewayCalls``; both are
              made when they are first needed
    """

    def __init__(self, image, profile, services: dict, fetcher, gateway):
        self._name, self._profile = image.agent.name, profile
        self._services, self._fetcher, self._gateway = services, fetcher, gateway
        self._running = {}  # task -> (most bytes of the result, ms that its tool has)

    def start(self, task: int, tool, arguments: dict, due_ms, now_ms: int, injections: list):
        """Start a call; return None, or its outcome when it has one at once.

        tool        ``image.Tool``, or a ``feed.Feed``
        injections  ``Credentials.injections``
        """
        name, _, verb = tool.handler[HANDLER_NAME].partition(".")
        service, most = self._services[name], tool.max_output
        ms = tool.timeout_ms or TIMEOUT_MS
        due_ms = now_ms + ms if due_ms is None else due_ms
        if service.mode == MEDIATED:
            self._gateway().start(task, tool.name, arguments, due_ms)
            return None
        try:
            row = tool.row if tool.name.startswith(PREFIX) else service.tools[verb]
            request = request_of(service, row, arguments, self._name, None, dumps)
        except BadArgument as e:
            return True, failure("bad_argument", e.message, most)
        outcome = self._fetcher().call(
            task,
            self._profile,
            tool.name,
            (service.scheme, service.host, service.port, request.target),
            (request.method, request.headers, request.body),
            injections,
            MAX_BODY,
            due_ms,
            lambda fetch, size: result_of(
                fetch.status, fetch.body, loads, most, size or (MAX_BODY + 1 if fetch.cut else 0)
            ),
        )
        self._running[task] = most, ms
        return None if outcome is None else self.finish(task, outcome)

    def is_mine(self, task: int) -> bool:
        return task in self._running

    def finish(self, task: int, outcome: tuple) -> tuple:
        """Return what the *outcome* of a request is for the agent."""
        most, ms = self._running.pop(task)
        if outcome[IS_OK] or isinstance(outcome[VALUE], SandboxDenied):
            return outcome
        error = outcome[VALUE]
        if error.data and error.data.get("ran") is False:
            return outcome
        if isinstance(error, ToolTimeout):
            return True, make_timeout(ms, most)
        if isinstance(error, InvalidParams):
            return True, failure("bad_argument", error.message, most)
        if type(error) is not ClawError:
            return False, not_run(error.message, error.hint)
        return True, failure("unreachable", error.message, most)

    def cancel(self, task: int):
        """Nothing more is heard of the call."""
        self._running.pop(task, None)
