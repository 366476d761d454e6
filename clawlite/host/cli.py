"""The command line of the host: declarations and nothing else (work lives in modules, printing in ui.py).

Exit codes: 0 done, 1 failed, 2 bad usage or manifest, 3 no board or several, 4 port busy or not permitted, 124 timed out.
"""
import types

import click


from clawlite.core.errors import ClawError
from clawlite.host import cli_provision, ui
from clawlite.host.cli_gateway import gateway

DEVICE_HELP = """Talk to an agent:

\b
  clawlite run [MANIFEST|IMAGE]          on this terminal
  clawlite ask TEXT [MANIFEST|IMAGE]     one turn, then exit
  clawlite run [MANIFEST|IMAGE] --port P     build, flash a board, console
  clawlite ask TEXT --port P                 one turn of the agent on a board
  clawlite serve [MANIFEST|IMAGE] --stdio    CKP JSON-RPC for an operator
  clawlite trace [CALL] [MANIFEST|IMAGE]     why policy decided a past call so
  clawlite secrets set NAME | list | remove NAME   what an agent keeps for itself
  clawlite audit [verify] [MANIFEST|IMAGE]   what is on record, and whether all of it is
  clawlite service install|remove|status|talk      an agent that systemd starts
  clawlite doctor [--port P]                 what is wrong here, and what mends it

MANIFEST is claw.yaml in the current folder unless named."""


@click.group(epilog=DEVICE_HELP)
def cli():
    """clawlite: Claw Kernel Protocol agents for small boards."""


@cli.command()
@click.argument("name")
@click.option("--template", default="greenhouse", help="greenhouse (default), chat, blink or empty")
@click.option("--endpoint", metavar="URL", help="a server with an OpenAI-compatible API, asked before the rules; http://127.0.0.1:11434/v1")
@click.option("--model", metavar="MODEL", help="what that server calls the model; llama3.2")
@click.option("--offline", is_flag=True, help="the rules alone: no model is asked")
def new(name, template, endpoint, model, offline):
    """Make a project in the folder NAME that builds and runs as it is."""
    from clawlite.host import new as project
    ui.made(name, project.new(name, template, endpoint, model, offline))


@cli.command()
@click.argument("manifest", default=".")
@click.option("--board", metavar="BOARD", help="refuse what this board cannot honour")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def check(manifest, board, as_json):
    """Validate a manifest; every problem with file, line and what was expected."""
    from clawlite.host.check import check as run
    ui.checked(run(manifest, board), as_json)


@cli.command()
@click.argument("manifest", default=".")
@click.option("-o", "output", metavar="FILE", help="where the image goes; by default claw.cbor beside the manifest")
@click.option("--board", metavar="BOARD", help="refuse what this board cannot honour")
@click.option("--key-file", metavar="FILE", help="sign the image with this device key")
@click.option("--refresh", is_flag=True, help="fetch again what other registries gave; what has changed is refused")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def build(manifest, output, board, key_file, refresh, as_json):
    """Compile a manifest to an image; sizes, dead and shadowed rules."""
    from clawlite.host.build import build as run
    ui.built(run(manifest, output, key_file, board, refresh), as_json)


@cli.command()
@click.argument("image")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def inspect(image, as_json):
    """Show what an image holds."""
    from clawlite.host import inspection
    ui.inspected(inspection.inspect_file(image), as_json)


@cli.command()
@click.argument("manifest", default=".")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def tools(manifest, as_json):
    """Show every tool an agent has: arguments, sandbox, handler, and what policy will say.

    MANIFEST may be an image.
    """
    from clawlite.host import tool_table
    ui.tools(tool_table.rows(manifest), as_json)


class _Boards(click.Group):
    """``boards new`` is a command; any other word is the name of a board."""

    def resolve_command(self, ctx, args):
        return super().resolve_command(ctx, args if args[0] == "new" else ["show", *args])


@cli.group(cls=_Boards, invoke_without_command=True, subcommand_metavar="[BOARD | new NAME --from BOARD]")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
@click.pass_context
def boards(ctx, as_json):
    """Show the boards that are known, one of them, or begin a profile of your own in ./boards."""
    from clawlite.host import boards as profiles
    if ctx.invoked_subcommand is None:
        ui.boards(profiles.rows(), as_json)


@boards.command(hidden=True)
@click.argument("board")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def show(board, as_json):
    """Show one board."""
    from clawlite.host import boards as profiles
    ui.board(profiles.row(board), as_json)


@boards.command("new")
@click.argument("name")
@click.option("--from", "source", metavar="BOARD", required=True, help="the board that it is most like")
def new_board(name, source):
    """Write boards/NAME.toml after another board's profile."""
    from clawlite.host import boards as profiles
    ui.board_made(profiles.new(name, source), source)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def conformance(as_json):
    """Show what this runtime declares, and what its tests hold it to."""
    from clawlite.host.conformance import declaration
    ui.declared(declaration(), as_json)


@cli.command()
@click.argument("suites", nargs=-1, type=click.Choice(("build", "load", "ready", "decision", "call", "turn", "netrules", "scan", "micropython", "provider", "memory")))
@click.option("--rounds", default=31, type=click.IntRange(2, 1000), help="samples of each case, taken in turns; 31")
@click.option("--sim", is_flag=True, help="what a board must bear, on the real MicroPython: the suite micropython")
@click.option("-o", "output", metavar="FILE.jsonl", help="write the rows here too")
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout, one a row")
def bench(suites, rounds, sim, output, as_json):
    """Measure this machine: times, memory, and what the project promises of them."""
    from clawlite.host.bench import show
    show((*suites, "micropython") if sim and "micropython" not in suites else suites, rounds, as_json, output)


@cli.command()
@click.option("--board", default="sim", help="the board to stand in for, with its heap; sim")
@click.option("--heap", metavar="N", help="size of the heap, such as 96k; words have 64 bits here")
@click.option("--pty-link", "link", metavar="PATH", help="a symbolic link to the port, the same over runs")
@click.option("--fs", "folder", metavar="DIR", help="keep the board's files there; else they are gone at the end")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def sim(board, heap, link, folder, as_json):
    """Start a virtual board: real MicroPython on a pseudo-terminal; Ctrl-C ends it."""
    from clawlite.host.sim import serve
    return serve(board, heap, link, folder, lambda facts: ui.simulating(facts, as_json))


@cli.command()
@click.option("--watch", is_flag=True, help="a line for each change, until Ctrl-C")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout; with --watch one a line")
def ports(watch, as_json):
    """Show what is attached: ports, boards, who has them open."""
    from clawlite.host import ports as serial
    if watch:
        return ui.watched(serial.watch(), as_json)
    ui.attached(serial.ports(), as_json)


@cli.command()
@click.argument("manifest", default=".")
@click.option("--port", metavar="PORT", help="a device, a link to one, or an id of clawlite ports; else the only board")
@click.option("--dir", "folder", metavar="DIR", help="a folder in its place: a mounted card, the --fs of a virtual board")
@click.option("--ssh", metavar="HOST", help="a Raspberry Pi or other Linux machine, as ssh takes it: pi@raspberrypi.local")
@click.option("--firmware", metavar="FILE", help="MicroPython itself: UF2 onto a board's drive, an ESP image through esptool")
@click.option("--board", metavar="BOARD", help="refuse what this board cannot honour; else as the port says")
@click.option("--dry-run", is_flag=True, help="show what would change, and change nothing")
@click.option("--yes", is_flag=True, help="do not ask")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def flash(manifest, port, folder, ssh, firmware, board, dry_run, yes, as_json):
    """Write an agent to a board, and see it boot.

    MANIFEST may be an image.  What the board runs stays until the new one is whole, and is there to fall back to.
    """
    def agree():
        ui.agree("--yes", yes)
    if firmware is not None:
        from clawlite.host import flash_firmware
        if ssh is not None:
            raise click.UsageError("--firmware is for a board, --ssh for a Linux machine")
        return ui.flashed_firmware(flash_firmware.flash(firmware, port, folder, board, dry_run,
                                                        lambda found: ui.flashing_firmware(found, as_json), agree, ui.Progress()), as_json)
    from clawlite.host import flash as work
    with work.target(port, folder, ssh) as target:
        ui.flashed(work.flash(manifest, target, dry_run, board, lambda found: ui.flashing(found, as_json), agree, ui.Progress()), as_json)


@cli.command()
@click.argument("folder", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def firmware(folder, as_json):
    """Write what every MicroPython board gets into DIR: for mip, and for freezing into firmware of your own."""
    from clawlite.host import firmware_package
    ui.packaged(folder, firmware_package.write(folder), as_json)


@cli.command(hidden=True)
@click.argument("manifest", default=".")
@click.option("--port", metavar="PORT", is_flag=False, flag_value="", required=True, help="the board; --port alone at the end: the only one")
@click.option("--board", metavar="BOARD", help="refuse what this board cannot honour; else as the port says")
@click.option("--yes", is_flag=True, help="do not ask before it is flashed")
@click.pass_obj
def run(editor, manifest, port, board, yes):
    """Build an agent, flash it to a board, and talk to it there."""
    from clawlite.host import console_serial
    from clawlite.host import flash as work
    with work.target(port or None) as target:
        ui.flashed(work.flash(manifest, target, False, board, lambda found: ui.flashing(found, False), lambda: ui.agree("--yes", yes), ui.Progress()),
                   False, False)
        port = target.name
    return console_serial.start(port, editor, False, 120, (), None)


@cli.command(hidden=True)
@click.argument("text")
@click.option("--port", metavar="PORT", is_flag=False, flag_value="", required=True, help="the board; --port alone at the end: the only one")
@click.option("--approve", is_flag=True, help="answer yes to what asks first")
@click.option("--timeout", default=120.0, type=click.FloatRange(0.1), help="seconds that the answer may take; 120")
def ask(text, port, approve, timeout):
    """Ask the agent on a board once."""
    from clawlite.host.board_ask import ask as put
    return put(text, port or None, approve, timeout)


@cli.command()
@click.option("--port", metavar="PORT", help="a device, a link to one, or an id of clawlite ports; else the only board")
@click.option("--records", is_flag=True, help="show machine records too")
@click.option("--log", metavar="FILE", help="append all that comes and goes, with times")
@click.option("--prompt", "prompts", multiple=True, metavar="TEXT", help="what the board's prompt is, if it is another than its settings' default")
@click.option("--timeout", default=120.0, type=click.FloatRange(0.1), help="seconds that a script waits for the board's prompt; 120")
@click.option("--line", "mode", default="auto", type=click.Choice(("auto", "plain", "reliable")), help="frames with checksums; auto: where the board has a UART")
@click.pass_obj
def console(tools, port, records, log, prompts, timeout, mode):
    """Talk to a board over its serial port; Ctrl-] leaves, Ctrl-C and Ctrl-D go to the board.

    Without a terminal the lines of stdin go in one by one, as the board's prompt comes back.
    """
    from clawlite.host import console_serial
    return console_serial.start(port, tools.editor, records, timeout, prompts, log, mode)


cli.add_command(gateway)


for _command in (cli_provision.secrets, cli_provision.wifi):
    cli.add_command(_command)


def main(args: list[str], editor=None, secret=None) -> int:
    """Run the command line; return the exit code.

    editor  function(limit, columns) -> lineedit.Editor, for the console
    secret  function(agent, name) -> value of a secret, for the gateway
    """
    try:
        return cli.main(args, prog_name="clawlite", standalone_mode=False, obj=types.SimpleNamespace(editor=editor, secret=secret)) or 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.Abort:
        return 130
    except click.ClickException as e:
        e.show()
        return 2
    except ClawError as e:
        return ui.failed(e, "--json" in args)
