"""The commands for what is on a wire, as declarations: virtual boards, ports, flash, console;
cli.py puts them into the command line.
"""

import shlex

import click

from clawlite.core.base.errors import ClawError
from clawlite.host.cli import ui

COMMANDS = []


def _command(**named):
    """Return a decorator that makes a command and keeps it in ``COMMANDS``."""

    def keep(function):
        COMMANDS.append(click.command(**named)(function))
        return COMMANDS[-1]

    return keep


@_command()
@click.option("--board", default="sim", help="the board to simulate, with its heap; default: sim")
@click.option("--heap", metavar="N", help="size of the heap, such as 96k; words have 64 bits here")
@click.option(
    "--pty-link",
    "link",
    metavar="PATH",
    help="make this symbolic link to the port, which then stays the same",
)
@click.option(
    "--fs",
    "folder",
    metavar="DIR",
    help="keep the board's files in this folder; by default they are removed at the end",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def sim(board, heap, link, folder, as_json):
    """Start a virtual board.  It is real MicroPython on a pseudo-terminal; Ctrl-C ends it."""
    from clawlite.host.sim.sim import serve

    return serve(board, heap, link, folder, lambda facts: ui.simulating(facts, as_json))


@_command()
@click.option("--watch", is_flag=True, help="a line for each change, until Ctrl-C")
@click.option(
    "--json", "as_json", is_flag=True, help="one JSON document on stdout; with --watch one a line"
)
def ports(watch, as_json):
    """Show what is attached.  Ports, boards, who has them open."""
    from clawlite.host.serial import ports as serial

    if watch:
        return ui.watched(serial.watch(), as_json)
    ui.attached(serial.ports(), as_json)


@_command()
@click.argument("manifest", default=".")
@click.option(
    "--port",
    metavar="PORT",
    help="a device, a link to one, or an id of clawlite ports; else the only board",
)
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    help="write to this folder instead: a mounted card, the --fs of a virtual board",
)
@click.option(
    "--ssh",
    metavar="HOST",
    help="a Raspberry Pi or other Linux machine, as ssh takes it: pi@raspberrypi.local",
)
@click.option(
    "--firmware",
    metavar="FILE",
    help="MicroPython itself: UF2 onto a board's drive, an ESP image through esptool",
)
@click.option(
    "--board",
    metavar="BOARD",
    help="check the agent for this board; default: the board at the port",
)
@click.option(
    "--device-key",
    "key",
    metavar="FILE",
    help="sign the image with this key; the board then runs only images that are signed with it",
)
@click.option("--dry-run", is_flag=True, help="show what would change, and change nothing")
@click.option("--yes", is_flag=True, help="do not ask")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def flash(manifest, port, folder, ssh, firmware, board, key, dry_run, yes, as_json):
    """Write an agent to a board, and see it boot.

    MANIFEST may be an image.  What the board runs stays until the new one is whole, and is there to
    fall back to."""

    def agree():
        ui.agree("--yes", yes)

    if firmware is not None:
        from clawlite.host.flash import firmware as flash_firmware

        if ssh is not None or key is not None:
            raise click.UsageError(
                "--firmware writes MicroPython alone: without --ssh and --device-key"
            )
        return ui.flashed_firmware(
            flash_firmware.flash(
                firmware,
                port,
                folder,
                board,
                dry_run,
                lambda found: ui.flashing_firmware(found, as_json),
                agree,
                ui.ByteProgress(),
            ),
            as_json,
        )
    from clawlite.host.firmware import cache
    from clawlite.host.flash import flash as work

    cache.on_miss = ui.compiling
    with work.target(port, folder, ssh) as target:
        ui.flashed(
            work.flash(
                manifest,
                target,
                dry_run,
                board,
                lambda found: ui.flashing(found, as_json),
                agree,
                ui.ByteProgress(),
                key,
            ),
            as_json,
        )


@_command()
@click.argument("folder", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def firmware(folder, as_json):
    """Write what every MicroPython board gets.  Into DIR: for mip, and for freezing into
    firmware of your own.
    """
    from clawlite.host.firmware import package

    ui.packaged(folder, package.write(folder), as_json)


@_command(hidden=True)
@click.argument("manifest", default=".")
@click.option(
    "--port",
    metavar="PORT",
    is_flag=False,
    flag_value="",
    required=True,
    help="the board; at the end, --port without a value: the only board",
)
@click.option(
    "--board",
    metavar="BOARD",
    help="check the agent for this board; default: the board at the port",
)
@click.option("--yes", is_flag=True, help="do not ask before it is flashed")
@click.pass_obj
def run(tools, manifest, port, board, yes):
    """Build an agent, flash it to a board, and talk to it there."""
    from clawlite.host.board_console import serial as console_serial
    from clawlite.host.firmware import cache
    from clawlite.host.flash import flash as work

    cache.on_miss = ui.compiling
    with work.target(port or None) as target:
        found = work.flash(
            manifest,
            target,
            False,
            board,
            lambda found: ui.flashing(found, False),
            lambda: ui.agree("--yes", yes),
            ui.ByteProgress(),
        )
        ui.flashed(found, False, False)
        port = target.name
    return console_serial.start(
        port, tools.editor, False, 120, (), None, is_ready=found["said"] is not None
    )


@_command(hidden=True)
@click.argument("text")
@click.argument("manifest", required=False)
@click.option(
    "--port",
    metavar="PORT",
    is_flag=False,
    flag_value="",
    required=True,
    help="the board; at the end, --port without a value: the only board",
)
@click.option("--approve", is_flag=True, help="approve every call that asks first")
@click.option(
    "--timeout",
    default=120.0,
    type=click.FloatRange(0.1),
    help="seconds that the answer may take; 120",
)
def ask(text, manifest, port, approve, timeout):
    """Ask the agent on a board once."""
    if manifest is not None:
        error = ClawError(
            f"a board has its agent already: there is no place for {manifest}",
            f"leave it out, or flash it first: clawlite flash {shlex.quote(manifest)}",
        )
        error.exit_code = 2
        raise error
    from clawlite.host.board_console.board_ask import ask as put

    return put(text, port or None, approve, timeout)


@_command()
@click.option(
    "--port",
    metavar="PORT",
    help="a device, a link to one, or an id of clawlite ports; else the only board",
)
@click.option("--records", is_flag=True, help="show machine records too")
@click.option("--log", metavar="FILE", help="append all input and output to this file, with times")
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="TEXT",
    help="the prompt of the board, if it is not the default one",
)
@click.option(
    "--timeout",
    default=120.0,
    type=click.FloatRange(0.1),
    help="seconds that a script waits for the board's prompt; 120",
)
@click.option(
    "--line",
    "mode",
    default="auto",
    type=click.Choice(("auto", "plain", "reliable")),
    help="frames with checksums; auto: where the board has a UART",
)
@click.pass_obj
def console(tools, port, records, log, prompts, timeout, mode):
    """Talk to a board over its serial port.  Ctrl-] leaves, Ctrl-C and Ctrl-D go to the board.

    Without a terminal the lines of stdin go in one by one, as the board's prompt comes back.
    """
    from clawlite.host.board_console import serial as console_serial

    return console_serial.start(port, tools.editor, records, timeout, prompts, log, mode)


@_command()
@click.argument("file", metavar="FILE")
def logs(file):
    """Show a saved log of a board, with its tracebacks decoded.

    FILE is what clawlite console --log or another terminal program saved; - is stdin.
    """
    from clawlite.host.board_console import saved_log

    saved_log.show(file)
