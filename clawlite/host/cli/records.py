"""Commands of cli.py that show what a board has on record (host/board_console/board_records.py).

The code that shows the records is that of a Raspberry Pi (clawlite/linux), from command.py.
"""

import click


def _shown(name: str):
    @click.command(
        name,
        hidden=True,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("rest", nargs=-1, type=click.UNPROCESSED)
    @click.option("--port", metavar="PORT", is_flag=False, flag_value="")
    @click.option("--dir", "folder", metavar="DIR")
    @click.pass_context
    def command(ctx, rest, port, folder):
        from clawlite.host.board_console.board_records import Records

        with Records(port or None, folder) as records:
            ctx.exit(ctx.obj.show(name, list(rest), records))

    return command


audit, trace = _shown("audit"), _shown("trace")
