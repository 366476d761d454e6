"""The commands that need the standard library alone: inspect, tools, conformance, bench; and
``mcp serve --port``, which needs pyserial.

A device that has the wheel and no other package runs them.  An image needs no package; a manifest
needs the compiler's."""

import argparse

from clawlite.core.base.errors import ClawError

VERBS = ("inspect", "tools", "conformance", "bench")
MOST_ROUNDS = 1000


class _Parser(argparse.ArgumentParser):
    """Bad usage is a ``ClawError``, told like any other."""

    def __init__(self, verb: str, what: str):
        super().__init__(prog="clawlite " + verb, description=what, allow_abbrev=False)

    def error(self, message: str):
        raise ClawError(f"{self.prog}: {message}", f"see: {self.prog} --help")


def main(args: list[str]) -> int:
    """Run the command line *args*, whose first word is one of ``VERBS``; return the exit code.

    Raises ``ImportError`` where a manifest, a board or a suite needs a package that is missing.
    """
    from clawlite.host.cli import ui

    parser = {
        "inspect": _inspect,
        "tools": _tools,
        "conformance": _conformance,
        "bench": _bench,
        "mcp": _mcp,
    }[args[0]]()
    try:
        found = parser.parse_intermixed_args(args[1:])
        return found.run(found) or 0
    except SystemExit as e:  # argparse, after --help
        return int(e.code or 0)
    except ClawError as e:
        return ui.print_error(e, "--json" in args)


def _json(parser, what: str = "one JSON document on stdout") -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help=what)


def _inspect() -> _Parser:
    def run(found):
        from clawlite.host.cli import ui
        from clawlite.host.image import inspection

        ui.inspected(inspection.inspect_file(found.image), found.as_json)

    parser = _Parser("inspect", "Show what an image holds.")
    parser.add_argument("image", metavar="IMAGE")
    _json(parser)
    parser.set_defaults(run=run)
    return parser


def _tools() -> _Parser:
    def run(found):
        from clawlite.host.build import tool_table
        from clawlite.host.cli import ui

        name = found.manifest or tool_table.default_manifest()
        if found.may is not None:
            ui.show_decision(tool_table.decision_of(name, found.may), found.as_json)
        else:
            ui.tools(tool_table.rows(name), found.as_json)

    parser = _Parser(
        "tools",
        "Show every tool that an agent has. With arguments, sandbox, "
        "handler, and what policy will say.",
    )
    parser.add_argument(
        "manifest",
        metavar="MANIFEST",
        nargs="?",
        help="claw.yaml here by default, or claw.cbor where there is none; may be an image",
    )
    parser.add_argument(
        "--may",
        metavar="TOOL",
        help="show only what policy says of this tool; with a manifest also of one that it lacks",
    )
    _json(parser)
    parser.set_defaults(run=run)
    return parser


def _conformance() -> _Parser:
    def run(found):
        from clawlite.host.cli import ui
        from clawlite.host.manifest import conformance

        ui.declared(conformance.declaration(), found.as_json)

    parser = _Parser(
        "conformance", "Show what this runtime declares, and what its tests hold it to."
    )
    _json(parser)
    parser.set_defaults(run=run)
    return parser


def _mcp() -> _Parser:
    def run(found):
        from clawlite.host.board_console import board_offer
        from clawlite.host.build.build import image_for

        if found.http is not None:
            raise ClawError(
                "the tools of a board are served on stdin and stdout alone: a board has one "
                "operator at a time, and over HTTP there would be several clients",
                "let the MCP client start this command without --http",
            )
        return board_offer.serve(image_for(found.manifest), found.port)

    parser = _Parser(
        "mcp serve", "The tools of the agent on a board, for an MCP client on stdin and stdout."
    )
    parser.add_argument("serve", choices=("serve",), help=argparse.SUPPRESS)
    parser.add_argument(
        "manifest",
        metavar="MANIFEST",
        nargs="?",
        default=".",
        help="of the agent that runs there; may be its image",
    )
    parser.add_argument("--port", metavar="PORT", required=True, help="the board")
    parser.add_argument("--http", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def _bench() -> _Parser:
    from clawlite.host.bench import bench

    parser = _Parser(
        "bench",
        "Measure this machine or a board. Times, memory, and what the "
        "project promises of them; exit code 1 "
        "when a target was missed.",
    )
    parser.add_argument("suites", metavar="SUITE", nargs="*", help=", ".join(bench.SUITES))
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--here",
        action="store_true",
        help="measure this device without a compiler and other packages",
    )
    where.add_argument(
        "--ssh", metavar="HOST", help="a Raspberry Pi or other Linux machine, as ssh takes it"
    )
    where.add_argument(
        "--port",
        metavar="PORT",
        help="a MicroPython board: a device, a link to one, or an id of clawlite ports",
    )
    where.add_argument(
        "--sim",
        action="store_true",
        help="measure what a board must withstand, on MicroPython here: the suites "
        "micropython and boards",
    )
    where.add_argument(
        "--compare",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="compare two files of -o, and measure nothing; exit code 1 when something got worse",
    )
    parser.add_argument(
        "--rounds",
        type=_rounds,
        default=31,
        help="samples of each case, taken in turns, 2 to %d; 31" % MOST_ROUNDS,
    )
    parser.add_argument(
        "--long",
        action="store_true",
        dest="is_long",
        help="also measure what takes minutes: 100,000 rules, cut power, gateways that "
        "break, a newcomer's "
        "script",
    )
    parser.add_argument(
        "--rows",
        metavar="FILE.jsonl",
        help="also count these rows, which other programs measured (make bench)",
    )
    parser.add_argument(
        "--no-fail", action="store_true", help="exit code 0 although a target was missed"
    )
    parser.add_argument("-o", dest="output", metavar="FILE.jsonl", help="write the rows here too")
    _json(parser, "JSON lines on stdout, one a row")
    parser.set_defaults(run=_measure)
    return parser


def _rounds(word: str) -> int:
    is_number = word.isascii() and word.isdigit() and len(word) < 9
    if not is_number or not 2 <= int(word) <= MOST_ROUNDS:
        raise argparse.ArgumentTypeError(f"expected 2 to {MOST_ROUNDS}, got {word}")
    return int(word)


def _measure(found) -> int:
    from clawlite.host.bench import bench
    from clawlite.host.cli import ui
    from clawlite.host.firmware import cache

    if found.compare:
        worse = bench.compare(*found.compare, found.as_json)
        return 1 if worse and not found.no_fail else 0
    cache.on_miss = ui.compiling
    suites = bench.suites_of(found.suites, found.sim)
    before = bench.read(found.rows) if found.rows else []
    if found.here or found.ssh is not None or found.port is not None:
        from clawlite.host.bench import device

        rows = (
            device.measure_here
            if found.here
            else device.over_ssh
            if found.ssh is not None
            else device.on_port
        )
        place = () if found.here else (found.ssh,) if found.ssh is not None else (found.port,)

        def measure(took):
            rows(*place, suites, found.rounds, took)
    else:

        def measure(took):
            bench.run(suites, found.rounds, took, found.is_long)

    explain = device.explain if found.port is not None else None
    whole = suites or (*bench.SUITES, *bench.ELSEWHERE)
    if found.here or found.ssh is not None or found.port is not None:
        whole = ()  # what that device has, and no list of what it lacks
    missed = bench.show(measure, found.as_json, found.output, whole, before, explain)
    return 1 if missed and not found.no_fail else 0
