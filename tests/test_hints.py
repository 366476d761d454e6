"""Each error that reaches a person says the next step.

Every ``ClawError`` (or subclass) that the product makes has a hint. Every ``Problem`` of a manifest
has a hint or says what was expected. A ``RequestError`` may also say what was expected: its reader
is the program that sent the request. A function that takes a hint and passes it on (``refuse``,
``manifest.problem``, ``report``) is held to the same where it is called. ``EXCEPTIONS`` names the
functions of all other errors, each with its reason; an exception that covers nothing fails.
"""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("clawlite", "firmware-host/micropython")
# what says to a program what it may send
SAYS_WHAT = ("expected", "unknown", "at most")
# places, among the arguments of a call, of what says what was expected and what to do
NEVER = 99
PROBLEM = (4, 6)
# functions that a caller gives to what it calls: (path, message, expected, found, hint)
COLLECTORS = dict.fromkeys(("report", "problem", "note", "below"), (2, 4))

PROGRAM = "a program reads it, by its code; the message names the field and what is wrong with it"
MODEL = "a model reads the message alone, so the next step stands in there, if there is one"
GATE = (
    "a policy or a person decided it, and the message names the decision: nothing is to be mended"
)
PROVIDER = (
    "core/providers/provider_order.py adds the next step, or a runner of the proxy has its own"
)
IMAGE = "who loads an image adds the step: linux/files/files.py, runtime/main.py, host/image"
CAUGHT = "whoever calls it catches it, and says the next step, or needs none"
PASSED_ON = "it repeats the error of another process, whose hint is in its data or its message"
BENCH = "host/bench/bench.py adds the step: run the suite alone"
MAINTAINER = "whoever changes clawlite itself reads it, at the file and the name that it says"
# {why: {file: functions with an error that says no step; "name*2": two of them}}
EXCEPTIONS = {
    PROGRAM: {
        "clawlite/core/providers/dialogue.py": "_answer",
        "clawlite/core/providers/reflex.py": "Reflex.reply",
        "clawlite/core/providers/wire.py": "text_of",
        "clawlite/core/turns/turn.py": "_refuse_cut",
        "clawlite/host/mcp/listing.py": "_ask_server read_json",
        "clawlite/host/proxy/amounts.py": "_check_names _whole",
        "firmware-host/micropython/stores/storelog.py": "entry_of",
        "clawlite/protocols/mcp/mcp_server.py": (
            "MCPServer._call MCPServer._initialize MCPServer._request MCPServer._resume "
            "MCPServer.finish"
        ),
        "clawlite/core/memory/memory_methods.py": "_entries*2 _query*2 _task _vector",
        "clawlite/core/protocol/handshake.py": "negotiate",
        "clawlite/protocols/swarm/swarm_methods.py": (
            "SwarmMethods._report SwarmMethods.ask SwarmMethods.notify"
        ),
        "clawlite/host/board_console/mcp_server.py": "_Server._take",
        "clawlite/host/gateway/gateway.py": "loads",
        "clawlite/linux/mcp/form_fields.py": "_choices field_of*2",
        "clawlite/linux/mcp/http_offer.py": "HTTPSession._message _compare _no_session",
        "clawlite/linux/mcp/offer.py": "Offer.begin Offer.cancel",
        "clawlite/linux/mcp/question.py": "Question.fill Question.fill_text _parse_params*3",
        "clawlite/linux/memory/file_store.py": "FileConversations._store",
        "clawlite/linux/runtime/bootstrap_session.py": "BootstrapSession._adopt _compile _read",
        "clawlite/linux/swarm/member.py": "Member._begins Member._look Member.ask",
        "clawlite/linux/swarm/task_meter.py": "TaskMeter._still_at_it",
        "clawlite/linux/swarm_commands/in_process_socket.py": "CommandSocket._answer*2",
        "clawlite/linux/tasks/task_methods.py": "TaskMethods._create",
        "firmware-host/micropython/base/jsonfault.py": "fault",
        "firmware-host/micropython/line/mediated.py": "Mediated._refuse",
        "firmware-host/micropython/line/operators.py": "Operators._cancel",
        "firmware-host/micropython/line/relayed.py": "Relayed._act",
        "firmware-host/micropython/line/swarmmember.py": "SwarmMember._call SwarmMember._end",
    },
    MODEL: {
        "clawlite/protocols/net/netrules.py": "_encode parse_authority*3 parse_host*3 parse_url*2",
        "clawlite/protocols/services/service_call.py": "_fill*3 request_of",
        "clawlite/core/turns/handlers.py": "Handlers._failure",
        "clawlite/core/turns/gates.py": "check_arguments",
        "clawlite/core/turns/turn.py": "_call*2",
        "clawlite/linux/files/path_walk.py": (
            "PathWalk.below*2 PathWalk.enter*2 PathWalk.into PathWalk.missing*2"
        ),
        "clawlite/linux/files/quota.py": "check",
        "clawlite/linux/sandbox/engine.py": "Engine._start",
        "clawlite/linux/tools/builtin.py": "Builtins.run_here command_of",
        "clawlite/linux/tools/fetch.py": "Fetcher._follow Fetcher._open Fetcher._take*2 _header",
        "clawlite/linux/tools/fetch_page.py": "check_head text",
        "clawlite/linux/tools/fetch_search.py": "Search.url _list results",
        "clawlite/linux/tools/file_tools.py": (
            "_bytes*2 _check_kind _check_same _missing _read _text edit_file*5 keep_file "
            "list_directory run"
        ),
        "clawlite/linux/tools/saved_content.py": "_check",
        "clawlite/linux/tools/memory_tools.py": "_append _text*2 run write*2",
        "clawlite/linux/tools/world_model.py": "WorldModels._ask_tool WorldModels._predict",
        "clawlite/scan/checks.py": "check*2",
    },
    GATE: {
        "firmware-host/micropython/rules/boardcron.py": "CronRules._work",
        "clawlite/core/policy/approval.py": "make_denial",
        "clawlite/core/protocol/console.py": "Console.interrupt",
        "clawlite/core/turns/gates.py": "_refuse _resolve refuse_observer",
        "clawlite/core/turns/tools.py": "_refuse_outside",
        "clawlite/host/cli/ui.py": "agree",
        "clawlite/linux/channels/channel.py": "Channel._make_turn",
        "clawlite/core/turns/turn_output.py": "refuse_for.run",
        "clawlite/linux/channels/channels.py": "Channels.permit*2",
        "clawlite/scan/guard.py": "Guard._without",
        "firmware-host/micropython/line/relayed.py": "Relayed._work",
    },
    PROVIDER: {
        "clawlite/core/agent/agent.py": "Agent._end_timed_out",
        "clawlite/core/net/exchange.py": "_event _receive*3 exchange error_of*2",
        "clawlite/core/net/http1.py": (
            "Response._begin*3 Response._field Response._line*2 Response._take*3 "
            "Response.next_event"
        ),
        "clawlite/core/net/sse.py": "Events._field Events.next_event",
        "clawlite/core/policy/meter.py": "Meter.admit_request*2 Meter.pause",
        "clawlite/core/providers/provider_order.py": "ProviderOrder.ask",
        "clawlite/core/providers/wire.py": (
            "Codec.parse*2 Stream.at_end*3 Stream.call*2 Stream.feed Stream.text field*2"
        ),
        "clawlite/host/gateway/http.py": "Connection.receive",
        "clawlite/host/mcp/remote_token.py": "_carry_out",
        "clawlite/host/proxy/dialect.py": "answer_error",
        "clawlite/host/proxy/proxy.py": (
            "Proxy._ask_whole.take Proxy._pass_on Runner.order _parse*5"
        ),
        "clawlite/host/proxy/upstream.py": "Upstream._check*2 Upstream._post*6 first_piece read*2",
        "clawlite/linux/mcp/remote_token.py": "Tokens.take",
        "clawlite/linux/net/blocking.py": "_receive*2",
        "clawlite/linux/runtime/providers.py": "Remote.poll",
        "firmware-host/micropython/line/uplink.py": "Uplink.tick",
        "firmware-host/micropython/net/net.py": "Net._report_failure*2",
    },
    IMAGE: {
        "clawlite/core/formats/automaton.py": "search*3 validate*4",
        "clawlite/core/formats/cborfault.py": "fault",
        "clawlite/core/formats/encoder.py": "_put*4 _put_head _put_map",
        "clawlite/core/image/header.py": "parse*4",
        "clawlite/core/image/image.py": "Image.prose _outside",
        "clawlite/core/image/image_signature.py": "check",
        "firmware-host/micropython/runtime/parts.py": "parts",
    },
    CAUGHT: {
        "clawlite/linux/local/model_client.py": "LocalLink._take",
        "clawlite/linux/rules/lessons.py": "_run_alone",
        "clawlite/core/line/line.py": "Line.send",
        "clawlite/protocols/mcp/mcp_client.py": (
            "MCPClient._count MCPClient._decode*2 MCPClient._page*2 MCPClient._prepare*2 "
            "MCPClient._take MCPClient.feed make_input_error"
        ),
        "clawlite/protocols/mcp/mcp_http.py": (
            "HTTPClient._begin*2 HTTPClient._cut*2 HTTPClient._fail HTTPClient._follow*2 "
            "HTTPClient._read HTTPClient._text HTTPClient._whole HTTPClient.event "
            "HTTPClient.take"
        ),
        "clawlite/protocols/net/device_flow.py": "renew",
        "clawlite/host/gateway/mcp_servers.py": (
            "_PersonTokens._renew _PersonTokens._renew_alone*2 _PersonTokens._find_sign_in "
            "_Program._flush _Remote._connection"
        ),
        "clawlite/host/mcp/listing.py": "_list_tools read_json",
        "clawlite/host/mcp/remote_listing.py": "_exchange tools_at",
        "clawlite/linux/channels/telegram.py": "Telegram._handle_answer Telegram._handle_event*2",
        "clawlite/linux/mcp/remote.py": "RemoteServer._open",
        "clawlite/linux/mcp/servers.py": "not_started",
        "clawlite/linux/runtime/meters.py": "CounterFile._read",
        "clawlite/linux/swarm_commands/a2a_turn.py": "answer_of",
        "clawlite/linux/swarm_commands/remotes.py": "Remotes._fail",
        "firmware-host/micropython/net/connection.py": "Connection.tick",
        "firmware-host/micropython/net/lan.py": "Lan._prove Lan.ready Lan.tick",
        "firmware-host/micropython/net/lookup.py": "Lookup.address _question",
        "firmware-host/micropython/stores/meters.py": "Meters._read",
    },
    PASSED_ON: {
        "clawlite/core/idempotency/recorded_request.py": "error",
        "clawlite/linux/net/gateway_client.py": "GatewayCalls._handle_response",
        "clawlite/linux/swarm/replicated_bus.py": "ReplicatedBus._apply",
    },
    BENCH: {
        "clawlite/host/bench/board.py": "promises words32",
        "clawlite/host/bench/run.py": "spawn",
        "clawlite/host/bench/serve.py": "Peer.read Peer.stream _start batches call",
        "clawlite/host/bench/stack.py": "_audit",
    },
    MAINTAINER: {
        "clawlite/host/firmware/firmware.py": "_enter _link delegate",
        "clawlite/host/firmware/link.py": (
            "_Rewriter.visit_Attribute _Rewriter.visit_Import _Rewriter.visit_ImportFrom "
            "_Rewriter.visit_Name*3"
        ),
        "clawlite/host/firmware/outline.py": "_bring _found*2 _group",
        "clawlite/host/firmware/rename.py": "rename",
    },
}


def called(node) -> list:
    """Return the words of what the call *node* calls: ["document", "refuse"]."""
    words, at = [], node.func
    while isinstance(at, ast.Attribute):
        words.insert(0, at.attr)
        at = at.value
    return [at.id if isinstance(at, ast.Name) else "", *words]


class Source:
    """One file of the product.

    calls     [(the call, the name of the function around it, with its class)]
    classes   the classes
    wrappers  {name: (place of ``expected``, place of ``hint``)} of the functions that take a hint,
              as this file calls them: ``refuse``, ``document.refuse``, ``manifest.problem``
    """

    def __init__(self, text: str):
        self.calls, self.classes, self.imports, self.wrappers = [], [], {}, {}
        self.offered = {}  # {name: places}, as other files call them after an import
        self.methods = {}  # {"manifest.problem": places}, as other files call them
        self._walk(ast.parse(text), "")

    def _walk(self, node, around: str) -> None:
        for one in ast.iter_child_nodes(node):
            inside = around
            if isinstance(one, ast.Call):
                self.calls.append((one, around))
            elif isinstance(one, ast.ImportFrom):
                for name in one.names:
                    self.imports[name.asname or name.name] = (one.module, name.name)
            elif isinstance(one, ast.ClassDef):
                self.classes.append(one)
                self._wrap_class(one)
                inside = f"{around}.{one.name}".lstrip(".")
            elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = f"{around}.{one.name}".lstrip(".")
                if not isinstance(node, ast.ClassDef):
                    self._wrap(one.name, places_of(one))
            self._walk(one, inside)

    def _wrap(self, name: str, places) -> None:
        if places:
            self.wrappers[name] = self.offered[name] = places

    def _wrap_class(self, node) -> None:
        """Add what makes an object of the class, and its methods: ``self.name`` here, and
        elsewhere ``object.name`` where the object is called as its class is.
        """
        for one in node.body:
            if isinstance(one, ast.FunctionDef):
                places = places_of(one, 1)
                if one.name == "__init__":
                    self._wrap(node.name, places)
                elif places:
                    self.wrappers[f"self.{one.name}"] = places
                    self.methods[f"{node.name.lower()}.{one.name}"] = places

    def places(self, node, product):
        """Return (place of ``expected``, place of ``hint``) of what the call *node* calls, or None
        where it takes no hint.
        """
        words = called(node)
        said = ".".join(words)
        for found in (self.wrappers.get(said), product.methods.get(".".join(words[-2:]))):
            if found:
                return found
        first, rest = words[0], ".".join(words[1:])
        module, name = self.imports.get(first, ("", ""))
        if name:
            module, name = (f"{module}.{name}", rest) if rest else (module, name)
            source = product.sources.get(module)
            return source.offered.get(name) if source else None
        return COLLECTORS.get(said)


def places_of(function, skipped: int = 0):
    """Return (place of ``expected``, place of ``hint``) among the arguments of a call of
    *function*, None where it takes no hint or has one of its own; *skipped*: how many of its
    parameters are bound.
    """
    names = [one.arg for one in function.args.posonlyargs + function.args.args]
    own = dict(zip(reversed(names), reversed(function.args.defaults)))
    names = names[skipped:]
    if "hint" not in names or ast.unparse(own.get("hint", ast.Constant(""))) != "''":
        return None
    return tuple(names.index(one) if one in names else NEVER for one in ("expected", "hint"))


class Product:
    """All files.

    sources   {module: ``Source``}
    methods   {"manifest.problem": places} of the methods that take a hint
    errors, requests   names of the classes: see ``families``
    """

    def __init__(self, texts: dict):
        self.sources = {name: Source(text) for name, text in texts.items()}
        self.methods: dict = {}
        for one in self.sources.values():
            self.methods.update(one.methods)
        self.errors, self.requests = families(self.sources.values())


def families(sources) -> tuple[set, set]:
    """Return the names of the classes below ``ClawError`` and below ``RequestError``; those that
    make their own message (``__init__``) are left out, because that is where their hint is.
    """
    classes = [one for source in sources for one in source.classes]
    found = []
    for root in ("ClawError", "RequestError"):
        names, before = {root}, 0
        while len(names) > before:
            before = len(names)
            names |= {
                one.name
                for one in classes
                if any(getattr(base, "id", None) in names for base in one.bases)
            }
        found.append(names)
    own = {
        one.name
        for one in classes
        if one.name != "ClawError"
        and any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in one.body)
    }
    return found[0] - own, found[1]


def is_given(node, place: int, name: str) -> bool:
    """Return whether the call *node* has an argument at *place* or of *name* that is not empty."""
    if any(isinstance(one, ast.Starred) for one in node.args):
        return True
    for one in node.keywords:
        if one.arg is None or one.arg == name:
            return not (isinstance(one.value, ast.Constant) and not one.value.value)
    if len(node.args) <= place:
        return False
    value = node.args[place]
    return not (isinstance(value, ast.Constant) and not value.value)


def without_step(source, product) -> list[tuple]:
    """Return (line, function, source) of each error or problem of *source* that says no next
    step.
    """
    found = []
    for node, around in source.calls:
        name, places = called(node)[-1], source.places(node, product)
        if name in product.errors:
            places = (NEVER, 1)
        elif name == "Problem":
            places = PROBLEM
        if not places:
            continue
        said = ast.unparse(node)
        is_said = name in product.requests and any(word in said for word in SAYS_WHAT)
        is_said = is_said or is_given(node, places[0], "expected")
        if not is_said and not is_given(node, places[1], "hint"):
            found.append((node.lineno, around, said))
    return found


def exempt() -> Counter:
    """Return how many errors without a step each (file, function) may have."""
    found: Counter = Counter()
    for files in EXCEPTIONS.values():
        for path, functions in files.items():
            for name in functions.split():
                name, _, count = name.partition("*")
                found[path, name] += int(count or 1)
    return found


def test_each_error_of_a_person_says_the_next_step():
    """Each place that says none stands in ``EXCEPTIONS``, and nothing else does."""
    texts, paths = {}, {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).glob("**/*.py")):
            path = file.relative_to(ROOT).as_posix()
            module = path[:-3].replace("/", ".") if folder == "clawlite" else file.stem
            texts[module], paths[module] = file.read_text(), path
    product, places = Product(texts), {}
    for module, source in product.sources.items():
        for line, around, said in without_step(source, product):
            places.setdefault((paths[module], around), []).append(f"{line}: {said[:160]}")
    allowed = exempt()
    more = {at: said for at, said in places.items() if len(said) > allowed[at]}
    idle = [at for at, count in allowed.items() if len(places.get(at, ())) < count]
    assert more == {}, "no hint"
    assert idle == [], "an exception that nothing needs"


ERRORS = (
    "class ClawError(Exception): pass\n"
    "class RequestError(ClawError): pass\n"
    "class InvalidParams(RequestError): pass\n"
)


def lines_without(text: str, modules: dict) -> list:
    """Return the lines of *text* whose errors say no step."""
    product = Product({"errors": ERRORS, "here": text, **modules})
    return [line for line, _, _ in without_step(product.sources["here"], product)]


def test_what_counts_as_a_next_step():
    text = (
        "ClawError('a')\n"
        "ClawError('a', 'b')\n"
        "ClawError('a', '')\n"
        "ClawError('a', hint='b')\n"
        "ClawError('a', data={})\n"
        "InvalidParams('expected b')\n"
        "InvalidParams('a')\n"
        "Problem((), 'a')\n"
        "Problem((), 'a', hint='b')\n"
        "report((), 'a', 'expected')\n"
        "report((), 'a')\n"
        "names.add('a')\n"
    )
    assert lines_without(text, {}) == [1, 3, 5, 7, 8, 11]


def test_a_function_that_takes_a_hint_is_seen_where_it_is_called():
    text = (
        "from a import refuse, Refused, steady\n"
        "from b import c\n"
        "refuse('f', 'a')\n"
        "refuse('f', 'a', hint='b')\n"
        "Refused('a', '')\n"
        "steady('a')\n"
        "c.refuse('f', 'a')\n"
        "c.refuse('f', 'a', 'b')\n"
        "problems.add((), 'a')\n"
        "problems.add((), 'a', 'expected')\n"
        "class Reader:\n"
        "    def refuse(self, message, hint=''): pass\n"
        "    def read(self): self.refuse('a')\n"
        "    def find(self): self.refuse('a', 'b')\n"
    )
    module = (
        "def refuse(file, message, hint=''): pass\n"
        "def steady(message, hint='try again'): pass\n"
        "class Refused(Exception):\n"
        "    def __init__(self, message, hint): pass\n"
        "class Problems:\n"
        "    def add(self, path, message, expected='', hint=''): pass\n"
    )
    assert lines_without(text, {"a": module, "b.c": module}) == [3, 5, 7, 9, 13]
