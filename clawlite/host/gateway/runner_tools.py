"""Tools of services that the proxy runs for a runner (Clawdapus ADR-020, "mediated").

1. A call goes through the pipeline of every tool call (core/turns/tools.py): schema, autonomy,
   policy, limits, scan.  Its request is made as for a device (service_calls.py), with the runner's
   name as ``{claw_id}``.
2. At a proxy nobody can approve: what needs a person is refused, and the model is told so.
3. Names, descriptions and schemas are those that the image shows its own providers.
"""

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import ApprovalDenied, ClawError, Denied
from clawlite.core.image.image import GUARD, HANDLER_KIND, HANDLER_NAME, SERVICE, SERVICES, WIRE
from clawlite.core.policy.ledger import CALLS, count_use
from clawlite.core.turns import tools as pipeline
from clawlite.host.base.problems import error_sentence
from clawlite.host.gateway.service_calls import call_tool
from clawlite.host.proxy.dialect import Tool
from clawlite.host.proxy.mediation import Budget
from clawlite.protocols.services.service_call import MEDIATED, Service, failure
from clawlite.scan.guard import Guard


class RunnerTools:
    """The tools of one runner.

    runner  ``proxy.Runner``;  codecs: (loads, dumps);  servers: ``mcp_servers.MCPServers``
    secret  function(name) -> value; may block; raises ``ClawError``
    store   ``store.Store``
    Public, to be read: ``tools`` (list of ``dialect.Tool``), ``budget``.
    """

    def __init__(self, runner, codecs: tuple, servers, secret, store):
        self._runner, self._codecs, self._secret, self._store = runner, codecs, secret, store
        self._servers = servers
        image = runner.image
        guard = Guard(image) if image.size_of(GUARD) else None
        self._setup = Setup(image, guard)
        # a model that looks for orders cannot be asked here, and what nobody can judge is denied
        self.tools = [] if guard is not None and guard.asks else self._list_tools()
        info = image.agent
        # a call has a time of its own, and its result a size, from the tool: `called` keeps both
        self.budget = Budget(info.max_rounds, info.turn_ms, info.turn_ms, 1 << 20)

    def _list_tools(self) -> list:
        image, found = self._runner.image, {}
        declared = map(Service, image.section(SERVICES) or ())
        services = {service.name: service for service in declared}
        for provider in self._runner.providers:
            body = self._codecs[0](bytes(image.part(WIRE, *provider.prefix[:2])) + b"]}")
            for tool in body.get("tools", ()):
                tool = tool.get("function", tool)
                known = image.tool(tool["name"])
                if known is None or known.handler[HANDLER_KIND] != SERVICE:
                    continue
                service = services[known.handler[HANDLER_NAME].partition(".")[0]]
                if service.mode == MEDIATED and (
                    not service.devices or self._runner.name in service.devices
                ):
                    found[known.name] = Tool(
                        known.name,
                        tool["name"],
                        tool.get("description", ""),
                        tool.get("parameters", tool.get("input_schema")),
                        service.name,
                    )
        return list(found.values())

    async def call(self, tool: Tool, arguments: dict, request: str) -> dict:
        """Return what a call comes to, ``{"ok": ...}``; *request*: its id, for the audit."""
        steps = pipeline.call(self._setup, tool.name, arguments, "provider")
        value, error = None, None
        while True:
            try:
                effect = steps.throw(error) if error else steps.send(value)
            except StopIteration as e:
                return self._result(e.value)
            except ClawError as e:
                code = "denied" if isinstance(e, Denied) else "bad_argument"
                return failure(code, error_sentence(e))
            value, error = None, None
            if effect[E.KIND] == E.RUN:
                value = True, await self._run(tool, arguments)
            elif effect[E.KIND] == E.STORE:
                value = await self._count(effect[1])
            elif effect[E.KIND] == E.APPROVE:
                error = ApprovalDenied(
                    f"{tool.name}: a person must approve it, and a proxy cannot ask one",
                    "call it at a console of the agent, or change the policy",
                )
            elif effect[E.KIND] == E.LOG:
                event = effect[1]
                kept = {key: event[key] for key in ("status", "action", "rule_id") if key in event}
                self._store.event(
                    self._runner.name, "tool.called", request=request, tool=tool.name, **kept
                )
            else:
                raise AssertionError(f"a tool of a service has no effect {effect[E.KIND]}")

    async def _run(self, tool: Tool, arguments: dict):
        text, who = self._codecs[1](arguments), self._runner
        return await call_tool(
            who.image, tool.name, who.name, text, self._codecs, self._servers, self._secret
        )

    async def _count(self, entries: list) -> tuple:
        """Return what the effect STORE gives for *entries*."""
        meter, agent = self._runner.meter, self._runner.image.agent.name
        if not entries:
            return True, meter.read_use_of_day()
        if entries[0][0] == CALLS:
            entries = meter.make_call_entries(entries[0][2])
        spent = self._store.meters(self._runner.name, agent)
        admitted = count_use(spent, entries)
        await self._store.spend(self._runner.name, agent, spent)
        return True, admitted

    def _result(self, result) -> dict:
        """Return the shape of ADR-020 of a ``Result``, whose text a scan may have changed."""
        try:
            made = self._codecs[0](result.text.encode())
        except ClawError:
            made = None
        if isinstance(made, dict) and isinstance(made.get("ok"), bool):
            if made["ok"] or isinstance(made.get("error"), dict):
                return made
        if result.is_error:
            return failure("failed", result.text)
        return {"ok": True, "data": result.text}
