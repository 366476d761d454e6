"""Commands of cli.py that tell a board what it keeps for itself
(host/board_console/provision.py).
"""

import click

from clawlite.host.cli import ui


@click.command(hidden=True)
@click.argument("verb", type=click.Choice(("set", "list", "remove")))
@click.argument("name", required=False)
@click.option(
    "--port",
    metavar="PORT",
    is_flag=False,
    flag_value="",
    help="the board; at the end, --port without a value: the only board",
)
@click.option(
    "--dir", "folder", metavar="DIR", help="a folder in its place: the --fs of a virtual board"
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def secrets(verb, name, port, folder, as_json):
    """Secrets that a board keeps for itself; set reads the value from stdin, or asks for it
    without showing it.
    """
    from clawlite.host.board_console import provision
    from clawlite.host.flash import flash as work

    if (name is None) != (verb == "list"):
        raise click.UsageError(f"secrets {verb} {'takes no name' if name else 'NAME'}")
    value = provision.value_of("Value of " + name) if verb == "set" else None
    with work.target(port or None, folder) as board:
        if verb == "list":
            return ui.names(board.name, provision.secrets(board), as_json)
        provision.set_secret(board, name, value) if verb == "set" else provision.remove_secret(
            board, name
        )
    ui.provisioned(board.name, "secret", name, verb, as_json)


@click.command()
@click.argument("ssid", required=False)
@click.option(
    "--port",
    metavar="PORT",
    is_flag=False,
    flag_value="",
    help="a device, a link to one, or an id of clawlite ports; else the only board",
)
@click.option(
    "--dir", "folder", metavar="DIR", help="a folder in its place: the --fs of a virtual board"
)
@click.option(
    "--country",
    metavar="CC",
    help="the country of the board, two letters; it decides which radio channels are allowed",
)
@click.option("--open", "is_open", is_flag=True, help="a network without a password")
@click.option("--remove", is_flag=True, help="forget this network")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def wifi(ssid, port, folder, country, is_open, remove, as_json):
    """Let a board join the network SSID.  Without SSID, show which it may join.

    The password comes from stdin, or is asked for without being shown.  The board tries its
    networks in the order in which they came."""
    from clawlite.host.board_console import provision
    from clawlite.host.flash import flash as work

    if ssid is None and (country or is_open or remove):
        raise click.UsageError("name the network: clawlite wifi SSID")
    password = (
        provision.value_of("Password of " + ssid)
        if ssid is not None and not is_open and not remove
        else ""
    )
    if not password and not is_open and not remove and ssid is not None:
        raise click.UsageError("there is no password; for a network without one: --open")
    with work.target(port or None, folder) as board:
        if ssid is None:
            return ui.names(
                board.name, [one["ssid"] for one in provision.networks(board)[1]], as_json
            )
        provision.leave(board, ssid) if remove else provision.join(board, ssid, password, country)
    ui.provisioned(board.name, "network", ssid, "remove" if remove else "set", as_json)
