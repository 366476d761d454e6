"""The commands that need click: declarations and nothing else (work lives in modules, printing in
ui.py); standalone.py has the others.

Exit codes: 0 done, 1 failed, 2 bad usage or manifest, 3 no board or several, 4 port busy or not
permitted, 5 refused, 124 timed out, 130 Ctrl-C."""

import types

import click

from clawlite import __version__
from clawlite.core.base.errors import ClawError
from clawlite.host.cli import boards as cli_boards
from clawlite.host.cli import provision, records, ui
from clawlite.host.cli.gateway import gateway


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="clawlite %(version)s")
def cli():
    """clawlite: Claw Kernel Protocol agents for small boards."""


@cli.command()
@click.argument("name")
@click.option(
    "--template", default="greenhouse", help="greenhouse (default), chat, blink, swarm or empty"
)
@click.option(
    "--endpoint",
    metavar="URL",
    help="ask this server with an OpenAI-compatible API before the rules; default: "
    "http://127.0.0.1:11434/v1",
)
@click.option(
    "--model", metavar="MODEL", help="the name of the model on that server; default: llama3.2"
)
@click.option("--offline", is_flag=True, help="use only rules; no model is asked")
@click.option(
    "--board",
    metavar="BOARD",
    help="use pins of this board, and a gateway if it has no network",
)
def new(name, template, endpoint, model, offline, board):
    """Make a project in the folder NAME.  It builds and runs as it is."""
    from clawlite.host.projects import new as project

    ui.show_new_project(name, project.new(name, template, endpoint, model, offline, board), board)


@cli.command()
@click.argument("manifest", default=".")
@click.option("--board", metavar="BOARD", help="refuse what this board cannot do")
@click.option(
    "--allow-folder",
    "allowed",
    metavar="DIR",
    multiple=True,
    help="files of the manifest may also be in this folder",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def check(manifest, board, allowed, as_json):
    """Validate a manifest.  Every problem has its file, its line and what was expected."""
    from clawlite.host.build.check import check as run

    ui.checked(run(manifest, board, allowed), as_json)


@cli.command()
@click.argument("manifest", default=".")
@click.option(
    "-o",
    "output",
    metavar="FILE",
    help="where the image goes; by default claw.cbor beside the manifest",
)
@click.option("--board", metavar="BOARD", help="refuse what this board cannot do")
@click.option("--key-file", metavar="FILE", help="sign the image with this device key")
@click.option(
    "--refresh",
    is_flag=True,
    help="fetch again what came from other registries; refuse what has changed",
)
@click.option(
    "--accept",
    "accepted",
    metavar="NAME",
    multiple=True,
    help="ask the MCP server NAME again, and take what it has changed",
)
@click.option(
    "--allow-folder",
    "allowed",
    metavar="DIR",
    multiple=True,
    help="files of the manifest may also be in this folder",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def build(manifest, output, board, key_file, refresh, accepted, allowed, as_json):
    """Compile a manifest to an image.  Shows sizes, dead and shadowed rules.

    Runs what the manifest names, as you and without a sandbox, to list its tools: programs of MCP
    servers, and tool providers in tools.py.  Build only what you trust.
    """
    from clawlite.host.build.build import build as run

    with ui.Elapsed("Building"):
        built = run(manifest, output, key_file, board, refresh, allowed, accepted)
    ui.built(built, as_json)


@cli.command()
@click.argument("manifest", default=".")
@click.option(
    "--service", "names", metavar="NAME", multiple=True, help="only this one of clawlite.toml"
)
@click.option("--dry-run", "is_dry", is_flag=True, help="show what differs, and write nothing")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def discover(manifest, names, is_dry, as_json):
    """Ask MCP servers of services for their tools, and write them to .claw-tools.json."""
    from clawlite.host.build.discover import discover as run

    ui.discovered(run(manifest, names, is_dry), is_dry, as_json)


class _Boards(click.Group):
    """``boards new`` is a command; any other word is the name of a board."""

    def resolve_command(self, ctx, args):
        return super().resolve_command(ctx, args if args[0] == "new" else ["show", *args])


@cli.group(
    cls=_Boards, invoke_without_command=True, subcommand_metavar="[BOARD | new NAME --from BOARD]"
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
@click.pass_context
def boards(ctx, as_json):
    """Show the boards that are known.  One of them in full; or begin a profile of your own in
    ./boards.
    """
    from clawlite.host.boards import boards as profiles

    if ctx.invoked_subcommand is None:
        ui.boards(profiles.rows(), as_json)


@boards.command(hidden=True)
@click.argument("board")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
def show(board, as_json):
    """Show one board."""
    from clawlite.host.boards import boards as profiles

    ui.board(profiles.row(board), as_json)


@boards.command("new")
@click.argument("name")
@click.option("--from", "source", metavar="BOARD", required=True, help="the board to start from")
def new_board(name, source):
    """Write boards/NAME.toml after another board's profile."""
    from clawlite.host.boards import boards as profiles

    ui.board_made(profiles.new(name, source), source)


for _command in (
    *cli_boards.COMMANDS,
    gateway,
    provision.secrets,
    provision.wifi,
    records.audit,
    records.trace,
):
    cli.add_command(_command)


def main(args: list[str], editor=None, secret=None, show=None, sandboxes=None) -> int:
    """Run the command line; return the exit code.

    editor  function(limit, columns) -> lineedit.Editor, for the console
    secret  function(agent, name) -> value of a secret, for the gateway
    show    function("audit" or "trace", arguments, ``board_records.Records``) -> exit code
    sandboxes  function(folder) -> what contains the gateway's programs, or None
    """
    tools = types.SimpleNamespace(editor=editor, secret=secret, show=show, sandboxes=sandboxes)
    try:
        return (
            cli.main(
                args,
                prog_name="clawlite",
                standalone_mode=False,
                obj=tools,
            )
            or 0
        )
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.Abort:
        return 130
    except click.ClickException as e:
        e.show()
        if "--json" in args:
            ui.document({"error": ClawError(e.format_message()).to_json()})
        return 2
    except ClawError as e:
        return ui.print_error(e, "--json" in args)
