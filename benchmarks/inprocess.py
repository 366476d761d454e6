"""The runtime's own work in one process, without a pipe: ``python benchmarks/inprocess.py SUITE
IMAGE ROUNDS [IMAGE ...]``.

Prints one JSON line, ``{"core": "pure", "cases": {name: [nanoseconds, ...]}}``; ``clawlite bench``
makes rows of it.

    load      an image file to the tables that a call needs: names, policy entries; the schema of
              web-fetch compiled, and arguments checked against it
    decision  which rule decides 32 requests, one image for each number of rules
    call      a line with a claw.tool.call until the bytes of its answer, through the real shell
    turn      a console line until its turn has ended: replay, one tool call, replay
    sandbox   a line with exec-shell until the bytes of its answer, all but the child
    netrules  whether a URL may be fetched, and which of its name's addresses; the name server has
              answered
"""

import itertools
import json
import os
import sys
import types

from timing import blocks

from clawlite.core.formats import cbor
from clawlite.core.image.image import RULE_ID
from clawlite.core.policy import policy
from clawlite.linux.files import files
from clawlite.linux.io import logline, signals
from clawlite.linux.io.jsontext import dumps, loads, request
from clawlite.linux.runtime.fast_schema import prepare
from clawlite.linux.runtime.shell import Shell

CLEANED = 32  # paths of one block
STDOUT = os.dup(1)  # an operator's shell takes 0 and 1 over


class Sink:
    """Takes what a shell writes, and counts."""

    def __init__(self):
        self.count = 0
        self.last = b""
        self.broken = self.at_end = False

    def write(self, data):
        self.count += 1
        self.last = data


def shell(image: str, operator: bool) -> tuple:
    """Return (shell, sink): a shell over *image* that is READY and writes into the sink."""
    made = Shell(
        files.open_image(image, prepare), os.path.dirname(image), operator, signals.catch()
    )
    made.wire = made.screen._wire = Sink()
    made.start()
    return made, made.wire


def opened(image: str, beside: str = None) -> tuple:
    """Return (shell, sink, lines): an operator's shell over *image* whose session is open, and
    calls without end, each with an id of its own.

    beside  the image with the file of lines beside it; None: *image*
    """
    with open(os.path.join(os.path.dirname(beside or image), "lines"), "rb") as file:
        opening, line = file.read().rsplit(b"\n", 2)[:2]
    before, _, after = line.partition(b"-000000000000")
    # more ids than are remembered
    lines = itertools.cycle([before + b"-%012x" % number + after + b"\n" for number in range(8192)])
    made, sink = shell(image, True)
    made.framer.feed(opening + b"\n")
    made.take()
    return made, sink, lines


def load(image: str, rounds: int, many: str = None) -> dict:
    """*many*: an image with 200 tools, or None."""

    def without_file():
        files.Image(read, len(data), files.KEPT)

    with open(image, "rb") as file:
        data = file.read()

    def read(offset, length):
        return data[offset : offset + length]

    opened = files.open_image(image)
    assert len(opened.names) == 26 and opened.row("echo")[3] is not None

    def every_tool():
        fresh = files.open_image(image)
        for name in fresh.names:
            fresh.tool(name)

    functions = [lambda: files.open_image(image), without_file, every_tool]
    names = ["open the file", "from memory", "and decode all 20 tools"]
    if many:
        assert len(files.open_image(many).names) == len(opened.names) + 180
        functions += [lambda: files.open_image(many), *web_fetch()]
        names += [
            "open the file, 200 tools",
            "compile the schema of web-fetch",
            "check a web-fetch",
        ]
    return dict(zip(names, blocks(functions, rounds)))


def web_fetch() -> list:
    """Return [its schema compiled, arguments with a url alone checked]."""
    from clawlite.core.formats import schema
    from clawlite.host.documents import registry
    from clawlite.host.schema import compile as compiler

    source, pool = registry.schemas("web-fetch")[0], None  # it has no pattern to add
    program = compiler.compile_schema(source, pool)
    arguments = {"url": "https://example.com/reports/2026.html"}
    assert schema.check(program, arguments, None) is None
    assert "at arguments.url: " in schema.check(program, {"url": ""}, None)
    return [
        lambda: compiler.compile_schema(source, pool),
        lambda: schema.check(program, arguments, None),
    ]


def decision(images: list, rounds: int) -> dict:
    """Each image stands beside a file IMAGE.requests: [[tool, arguments, expected rule], ...]."""
    functions = []
    for path in images:
        image = files.open_image(path, prepare)  # as a shell has it
        with open(path + ".requests") as file:
            requests = [
                (image.tool(name), arguments, wanted) for name, arguments, wanted in json.load(file)
            ]
        for tool, arguments, wanted in requests:
            decided = policy.decide(image, tool.entry, policy.paths_of(tool.paths, arguments))
            rule = decided[policy.DECISION_RULE]
            assert rule[RULE_ID] == wanted, (tool.name, rule, wanted)
            assert tool.decision in (None, decided), tool.name
        functions += [decider(image, requests), whole(image, requests)]
        if path == images[0]:
            first = image
            kinds = [
                [one for one in requests if bool(one[0].paths) == has] for has in (False, True)
            ]
    functions += [decider(first, kinds[0]), decider(first, kinds[1])] + empty(requests)
    functions += [cleaner(), kept(kinds[0])]
    exact = [one for one in requests if one[2].startswith("exact-")]
    functions += [whole(image, exact)] + by_name(image, images[-1], len(exact))
    counts = [len(requests)] * (2 * len(images))
    counts += [len(kinds[0]), len(kinds[1]), len(requests), len(requests), CLEANED, len(kinds[0])]
    counts += [len(exact), len(exact), 1]
    found = [[ns / count for ns in case] for case, count in zip(blocks(functions, rounds), counts)]
    names = [os.path.basename(path).partition(".")[0] for path in images]
    cases = {}
    for at in range(len(names)):
        cases["decide, " + names[at] + " rules"] = found[2 * at]
        cases["tool, paths, decide, " + names[at] + " rules"] = found[2 * at + 1]
    more = ("constant entry", "path condition", "empty call", "empty loop", "a path made clean")
    more += ("constant entry, kept with its tool",)
    more += ("tool, decide, exact names", "by name, asked before", "by name, first time")
    cases.update(zip(more, found[2 * len(names) :]))
    return cases


def empty(requests: list) -> list:
    """Return [a call of nothing for each request, the loop alone]."""

    def nothing(image, entry, paths):
        pass

    work = [(None, None)] * len(requests)

    def calls():
        for entry, paths in work:
            nothing(None, entry, paths)

    def loop():
        for _entry, _paths in work:
            pass

    return [calls, loop]


def by_name(image, path: str, count: int) -> list:
    """Return [which rule decides *count* tools that rules name and *image* lacks; the first
    question for one of them].
    """
    from suites.compiled import flat_rules

    from clawlite.host.policy.folding import NameDecisions

    flat = flat_rules(int(os.path.basename(path).partition(".")[0]))
    rules = {rule.rule.match.name: rule for rule in flat if rule.rule.id.startswith("exact-")}
    names = [name for name in rules if image.tool(name) is None]
    names = names[:: len(names) // count][:count]
    named, decide = NameDecisions(flat), policy.decide
    for name in names:
        rule = decide(image, named.entry(name), [])[policy.DECISION_RULE]
        assert rule[RULE_ID] == rules[name].rule.id, name

    def run():
        for name in names:
            decide(image, named.entry(name), [])

    return [run, lambda: decide(image, NameDecisions(flat).entry(names[-1]), [])]


def cleaner():
    clean, path = policy.normalise, "/workspace/notes/2026/may.txt"
    assert clean(path) == path

    def run():
        for _ in range(CLEANED):
            clean(path)

    return run


def decider(image, requests: list):
    work = [(tool.entry, policy.paths_of(tool.paths, arguments)) for tool, arguments, _ in requests]
    decide = policy.decide

    def run():
        for entry, paths in work:
            decide(image, entry, paths)

    return run


def kept(requests: list):
    """Return what a call of a constant tool does instead of deciding: its tool has the decision."""
    work = [(tool, tool.entry) for tool, _, _ in requests]
    assert all(tool.decision for tool, _ in work)

    def run():
        for tool, _entry in work:
            tool.decision

    return run


def whole(image, requests: list):
    work = [(tool.name, arguments) for tool, arguments, _ in requests]

    def run():
        for name, arguments in work:
            tool = image.tool(name)
            policy.decide(image, tool.entry, policy.paths_of(tool.paths, arguments))

    return run


def call(image: str, rounds: int, audited: str = None) -> dict:
    """*audited*: the same agent with an audit in a file, or None."""
    made, sink, lines = opened(image)

    def one():
        made.fast_path.feed(next(lines))
        made.log.flush()

    one()
    assert b'"isError":false' in sink.last, sink.last
    functions = []
    if audited:
        recorded, heard, _ = opened(audited, image)

        def on_record():
            recorded.fast_path.feed(next(lines))
            recorded.startup.flush()

        on_record()
        assert b'"isError":false' in heard.last, heard.last
        folder = files.state_folder(made.agent.image.agent.name)
        with open(os.path.join(folder, "audit.jsonl"), "rb") as file:
            assert b'"output"' in file.read().splitlines()[-1]
        functions.append(on_record)
    quiet, _, _ = opened(image)
    quiet.log.flush = quiet.log._waiting.clear

    def unlogged():
        quiet.fast_path.feed(next(lines))
        quiet.log.flush()

    record = next(lines).rstrip()
    answer = loads(sink.last)
    functions = [one, unlogged, lambda: request(record), lambda: dumps(answer).encode()] + functions
    names = ["audited, whole"] if audited else []
    other = by_msgspec(image, lines)
    if other:
        functions.append(other)
        names.append("whole, with msgspec")
    found = blocks(functions, rounds)
    made.log.close()
    return {
        **dict(zip(names, found[4:], strict=True)),
        "whole": found[0],
        "log not written": found[1],
        "of it: parse": found[2],
        "of it: write the answer": found[3],
    }


def by_msgspec(image: str, lines):
    """Return a function that does a call whose line msgspec reads, and the arguments of its log,
    as docs/adr/0175 has it; None where msgspec is not installed.
    """
    try:
        import msgspec
    except ImportError:
        return None
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    number = bytes(48 if byte in b"0123456789+-.eE" else byte for byte in range(256))

    def read(data: bytes):
        """What ``jsontext.request`` gives: what msgspec takes and we do not is left to it."""
        if 92 in data or b"0" * 20 in data.translate(number) or data.count(b"[") > 27:
            return request(data)
        try:
            value = decode(data)
            params = value["params"]
            keys = len(value) + len(params)
            for inner in params.values():
                if type(inner) is dict:
                    keys += len(inner)
            # no key came twice, and no object is deeper
            if len(data) - len(data.replace(b":", b"")) == keys:
                return value
        except Exception:  # request knows what to say of it
            pass
        return request(data)

    made, sink, _ = opened(image)
    made.session._loads = read

    def write(part: dict) -> str:
        return encode(part).decode()

    def one():
        logline.dumps = write
        made.fast_path.feed(next(lines))
        logline.dumps = dumps  # of the others, by turns
        made.log.flush()

    one()
    assert b'"isError":false' in sink.last, sink.last
    return one


def turn(image: str, rounds: int) -> dict:
    made, sink = shell(image, False)

    def one():
        made.console.line("go", 0)
        made.settle()

    before = sink.count
    one()
    assert sink.count > before and sink.last == b"Done.\n" and made.console.clean, sink.last
    found = blocks([one], rounds)
    made.log.close()
    return {"replay, one tool call": found[0]}


def sandbox(image: str, rounds: int) -> dict:
    """``exec-shell true`` from its line to the bytes of its answer, with a child that has ended
    as soon as it is asked for.
    """
    from clawlite.linux.sandbox import engine, jobs

    ended, value = (
        [],
        {
            "exit_code": 0,
            "output": "",
            "truncated": False,
            "original_bytes": 0,
            "ended": "",
            "note": "",
        },
    )

    class Instant(engine.Engine):
        is_busy = property(lambda self: bool(ended))

        def prepare(self):
            pass

        def _send(self, number, *_):
            ended.append((number, (True, dict(value))))
            return types.SimpleNamespace()

        def poll(self, now_ms=None):
            found, ended[:] = list(ended), []
            return found

    engine.Engine = Instant
    with open(os.path.join(os.path.dirname(image), "lines"), "rb") as file:
        opening, line = file.read().rsplit(b"\n", 2)[:2]
    before, _, after = line.partition(b"-000000000007")
    lines = itertools.cycle([before + b"-%012x" % number + after + b"\n" for number in range(8192)])
    made, sink = shell(image, True)
    os.makedirs(made.agent.setup.workspace, exist_ok=True)  # as the server's start does
    made.framer.feed(opening + b"\n")
    made.take()

    def one():
        made.fast_path.feed(next(lines))
        made.settle()
        made.log.flush()

    one()
    assert b'"isError":false' in sink.last, sink.last
    profile, plans = made.handlers._profile, made.handlers._engine._plans
    job = jobs.Command(["/bin/sh", "-c", "true"])
    found = blocks([one, lambda: plans.memory(profile, job)], rounds)
    made.log.close()
    return {"no child": found[0], "of it: the plan": found[1]}


def netrules(rounds: int) -> dict:
    from clawlite.protocols.net.netrules import decide_addresses, decide_host, parse_url
    from clawlite.protocols.sandbox.profile import Profile

    hosts = ["host-%d.example" % number for number in range(99)] + ["*.example.com"]
    rules = Profile(
        ["bench", 0, [1, hosts, True], [0, [], []], [0, False], [0, [], []], [None] * 6]
    )
    addresses = [bytes((93, 184, 216, 34 + number)) for number in range(4)] + [
        b"\x26\x06\x28" + bytes(12) + b"\1"
    ] * 4

    def one():
        host = parse_url("https://api.v2.example.com/reports/2026?format=json")[1]
        decide_host(rules, host)
        assert len(decide_addresses(rules, host, addresses)) == 8

    return {"a fetch, name known": blocks([one], rounds)[0]}


def scan(image: str, rounds: int) -> dict:
    """64 KB of tool output: secrets of all kinds and three known ones in 30 forms each; orders
    of strangers; one audit record.
    """
    from clawlite.core.image.image import Image
    from clawlite.scan.guard import Guard

    with open(image, "rb") as file:
        data = file.read()
    guard = Guard(Image(lambda offset, length: data[offset : offset + length], len(data)))
    for number in range(3):
        guard.learn("value %d of a secret of this agent" % number)
    line = (
        "2026-11-22T02:00:00Z app[%d]: GET https://example.com/a/%d?b=1 took %d ms, commit "
        "1f0e9d8c7b6a59483726%d; rule %d of all passed.\n"
    )
    lines = [
        line % (n, n, n % 90, n, n % 7)
        if n % 8
        else "The password and the token of user %d are in /etc/app/token.conf (key: unset).\n" % n
        for n in range(700)
    ]
    source = "".join(lines)[:65536]
    dump = "".join(
        "%08x: %04x %04x %04x\n" % (n, n * 7 % 65536, n * 31 % 65536, n * 101 % 65536)
        for n in range(2800)
    )[:65536]
    bare = Guard(Image(lambda offset, length: data[offset : offset + length], len(data)))
    bare._lookers = 0

    def secrets(text):
        assert bare.result("t", text, None, {})[0] is text

    def orders():
        assert not guard._patterns().found(source)

    found = blocks(
        [lambda: secrets(source), lambda: secrets(dump), lambda: guard.text(source), orders], rounds
    )
    return dict(
        zip(
            (
                "secrets, 64 KB of text",
                "secrets, 64 KB of a dump",
                "secrets, three known, 64 KB",
                "injection, 64 KB of text",
            ),
            found,
        )
    )


def main(suite: str, image: str, rounds: str, *more: str) -> None:
    rounds = int(rounds)
    if suite == "decision":
        cases = decision([image] + list(more), rounds)
    elif suite == "netrules":
        cases = netrules(rounds)
    elif suite == "scan":
        cases = scan(image, rounds)
    elif suite in ("call", "load"):
        cases = {"call": call, "load": load}[suite](image, rounds, *more)
    else:
        cases = {"turn": turn, "sandbox": sandbox}[suite](image, rounds)
    core = "pure" if cbor.__file__.endswith(".py") else "cython"
    os.write(STDOUT, json.dumps({"core": core, "cases": cases}).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
