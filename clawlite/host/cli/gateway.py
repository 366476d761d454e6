"""``clawlite gateway``: declarations and nothing else."""

import click

from clawlite.host.cli import ui


class _Gateway(click.Group):
    """The first word may be a command; anything else are projects and options of ``gateway``
    itself.
    """

    def parse_args(self, ctx, args):
        return super().parse_args(
            ctx,
            args
            if args and (args[0] in self.commands or args[0] == "--help")
            else ["serve", *args],
        )


@click.group(
    cls=_Gateway,
    subcommand_metavar="[PROJECT]... [OPTIONS] | token NAME | devices | history | audit",
)
def gateway():
    """Keys and network for devices without them.  What it takes: clawlite gateway serve --help."""


@gateway.command()
@click.argument("projects", nargs=-1)
@click.option(
    "--port",
    "port_names",
    multiple=True,
    metavar="PORT",
    help="a device, a link to one, or an id of clawlite ports; may be repeated",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="serve devices on the LAN, which have tokens: clawlite gateway token NAME",
)
@click.option(
    "--proxy",
    metavar="ADDRESS:PORT",
    help="serve runners that speak the HTTP API of OpenAI or Anthropic, which have tokens, too",
)
@click.option(
    "--a2a",
    metavar="ADDRESS:PORT",
    help="start the agent of PROJECT, and serve it to agents that speak A2A and have tokens",
)
@click.option(
    "--a2a-url",
    metavar="URL",
    help="the address at which A2A clients reach --a2a, if it is another one",
)
@click.option(
    "--a2a-approver",
    "approvers",
    multiple=True,
    metavar="NAME",
    help="the token NAME may approve calls of its tasks over A2A; may be repeated",
)
@click.option(
    "--tls-cert",
    "certificate",
    metavar="FILE",
    help="certificate for --listen, --proxy and --a2a, PEM",
)
@click.option("--tls-key", "key", metavar="FILE", help="its key, unless it is in the same file")
@click.option(
    "--uncontained",
    multiple=True,
    metavar="NAME",
    help="start the program of the MCP server NAME without a sandbox; may be repeated",
)
@click.pass_obj
def serve(tools, projects, port_names, uncontained, **where):
    """Serve devices until Ctrl-C.  PROJECT is a folder with claw.yaml, a folder of those, or an
    image; else the current folder.
    """
    from clawlite.host.gateway.gateway import Doors
    from clawlite.host.gateway.gateway import serve as run

    doors, names = Doors(**where), list(port_names)
    return run(list(projects), names, doors, tools.secret, tools.sandboxes, uncontained)


@gateway.command()
@click.argument("name")
@click.option(
    "--for",
    "doors",
    metavar="DOOR",
    default="device",
    help="what it opens: device (the default), proxy, a2a or mcp; several between commas",
)
def token(name, doors):
    """Make the token of the device, runner or client NAME.  NAME:TOKEN is printed this once: the
    board's secret GATEWAY_TOKEN, the API key of a runner, or the bearer of a client.
    """
    from clawlite.core.net.door_token import DOORS
    from clawlite.host.gateway.gateway import doors_of, make_token

    found = [door.strip() for door in doors.split(",")]
    if unknown := [door for door in found if door not in DOORS]:
        raise click.BadParameter(
            f"expected one of {', '.join(DOORS)}, found {unknown[0][:40]!r}", param_hint="--for"
        )
    had, opened = doors_of(name), tuple(dict.fromkeys(found))
    print(f"{name}:{make_token(name, opened)}")
    if had:
        lost = "" if set(had) == set(opened) else f", which opened {', '.join(had)},"
        ui.print_note(f"The token that {name} had before{lost} is no longer valid.")


@gateway.command()
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def devices(as_json):
    """Show the devices that were here.  Agent, image, when, and what each has spent."""
    from clawlite.host.gateway import report

    ui.print_rows(report.devices(), as_json, "No device was here.")


@gateway.command()
@click.option("-n", "count", default=20, type=click.IntRange(1), help="the last N requests; 20")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def history(count, as_json):
    """Show what was asked and answered."""
    from clawlite.host.gateway import report

    ui.print_rows(report.history(count), as_json, "Nothing was asked.")


@gateway.command()
@click.option("-n", "count", default=20, type=click.IntRange(1), help="the last N events; 20")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def audit(count, as_json):
    """Show what happened."""
    from clawlite.host.gateway import report

    ui.print_rows(report.audit(count), as_json, "Nothing happened.")
