"""The commands for what is on a wire: virtual boards, ports, flash, console, and what a board
keeps.  Each calls the work, and prints what came of it.  clawlite/verbs.py declares them.
"""

import contextlib
import shlex

from clawlite.core.base.errors import ClawError
from clawlite.host.cli import ui


def sim(board, heap, link, folder, as_json):
    from clawlite.host.sim.sim import serve

    return serve(board, heap, link, folder, lambda facts: ui.show_sim(facts, as_json))


def ports(watch, as_json):
    from clawlite.host.serial import ports as serial

    if watch:
        return ui.show_changes(serial.watch(), as_json)
    ui.show(serial.ports(), as_json, ui.show_ports)


def flash(manifest, port, folder, ssh, firmware, board, key, dry_run, yes, as_json):
    def agree():
        ui.agree("--yes", yes)

    if firmware is not None:
        from clawlite.host.flash import firmware as flash_firmware

        if ssh is not None or key is not None:
            raise ClawError(
                "--firmware writes MicroPython alone: without --ssh and --device-key",
                "leave them out",
            )
        return ui.show(
            flash_firmware.flash(
                firmware,
                port,
                folder,
                board,
                dry_run,
                _show_unless(as_json, ui.show_firmware_plan),
                agree,
                ui.ByteProgress(),
            ),
            as_json,
            ui.show_firmware,
        )
    from clawlite.host.firmware import cache
    from clawlite.host.flash import flash as work

    cache.on_miss = ui.note_compiling
    with work.target(port, folder, ssh) as target:
        ui.show(
            work.flash(
                manifest or ".",
                target,
                dry_run,
                board,
                _show_unless(as_json, ui.show_flash_plan),
                agree,
                ui.ByteProgress(),
                key,
            ),
            as_json,
            ui.show_flash,
        )


def _show_unless(as_json: bool, show):
    return (lambda found: None) if as_json else show


def firmware(folder, as_json):
    from clawlite.host.firmware import package

    ui.show({"folder": folder, "files": package.write(folder)}, as_json, ui.show_package)


def run(manifest, port, board, yes, editor):
    """Build an agent, flash it to a board, and talk to it there."""
    from clawlite.host.board_console import serial as console_serial
    from clawlite.host.firmware import cache
    from clawlite.host.flash import flash as work

    cache.on_miss = ui.note_compiling
    with work.target(port or None) as target:
        found = work.flash(
            manifest or ".",
            target,
            False,
            board,
            ui.show_flash_plan,
            lambda: ui.agree("--yes", yes),
            ui.ByteProgress(),
        )
        ui.show_flash(found, False)
        port = target.name
    return console_serial.start(
        port, editor, False, 120, (), None, is_ready=found["said"] is not None
    )


def ask(text, manifest, port, approve, timeout):
    """Ask the agent on a board once."""
    if manifest is not None:
        raise ClawError(
            f"a board has its agent already: there is no place for {manifest}",
            f"leave it out, or flash it first: clawlite flash {shlex.quote(manifest)}",
        )
    from clawlite.host.board_console.board_ask import ask as put

    return put(text, port or None, approve, timeout)


def serve_tools(manifest, port, http):
    """Serve the tools of the agent on a board to an MCP client."""
    from clawlite.host.board_console import mcp_server
    from clawlite.host.builder.build import image_for

    if http is not None:
        raise ClawError(
            "the tools of a board are served on stdin and stdout alone: a board has one "
            "operator at a time, and over HTTP there would be several clients",
            "let the MCP client start this command without --http",
        )
    return mcp_server.serve(image_for(manifest or "."), port)


def console(port, records, log, prompts, timeout, mode, editor):
    from clawlite.host.board_console import serial as console_serial

    return console_serial.start(port, editor, records, timeout, prompts, log, mode)


def logs(saved):
    from clawlite.host.board_console import saved_log

    saved_log.show(saved)


# -- what a board keeps for itself


def list_secrets(manifest, port, folder, as_json):
    with _board_of_one_agent(manifest, port, folder) as (board, provision):
        names = provision.secrets(board)
    ui.show_lines([{"name": name} for name in names], as_json, *names)


def set_secret(name, manifest, port, folder, as_json):
    from clawlite.host.board_console.provision import value_of

    value = value_of("Value of " + name) if manifest is None else ""
    with _board_of_one_agent(manifest, port, folder) as (board, provision):
        provision.set_secret(board, name, value)
    ui.show_provision(board.name, "secret", name, "set", as_json)


def remove_secret(name, manifest, port, folder, as_json):
    with _board_of_one_agent(manifest, port, folder) as (board, provision):
        provision.remove_secret(board, name)
    ui.show_provision(board.name, "secret", name, "remove", as_json)


@contextlib.contextmanager
def _board_of_one_agent(manifest, port, folder):
    from clawlite.host.board_console import provision
    from clawlite.host.flash import flash as work

    if manifest is not None:
        raise ClawError(
            f"there is no place for {manifest}: a board has one agent, and list takes no name",
            "leave it out",
        )
    with work.target(port or None, folder) as board:
        yield board, provision


def wifi(ssid, port, folder, country, is_open, remove, as_json):
    from clawlite.host.board_console import provision
    from clawlite.host.flash import flash as work

    if ssid is None and (country or is_open or remove):
        raise ClawError("expected SSID", "name the network: clawlite wifi SSID")
    password = ""
    if ssid is not None and not is_open and not remove:
        password = provision.value_of("Password of " + ssid)
        if not password:
            raise ClawError("there is no password", "for a network without one: --open")
    with work.target(port or None, folder) as board:
        if ssid is None:
            names = [one["ssid"] for one in provision.networks(board)[1]]
            return ui.show_lines([{"name": name} for name in names], as_json, *names)
        provision.leave(board, ssid) if remove else provision.join(board, ssid, password, country)
    ui.show_provision(board.name, "network", ssid, "remove" if remove else "set", as_json)
