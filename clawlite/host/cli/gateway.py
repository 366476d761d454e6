"""``clawlite gateway``: each command calls the work, and prints what came of it.
clawlite/verbs.py declares them.
"""

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import did_you_mean
from clawlite.host.cli import ui


def serve(project, port, uncontained, secret, sandboxes, local, **where):
    from clawlite.host.gateway.gateway import Doors
    from clawlite.host.gateway.gateway import serve as run

    return run(project, list(port), Doors(**where), secret, sandboxes, uncontained, local)


def token(name, doors):
    from clawlite.host.gateway.gateway import doors_of, make_token
    from clawlite.protocols.secrets.door_token import DOORS

    found = [door.strip() for door in doors.split(",")]
    if unknown := [door for door in found if door not in DOORS]:
        raise ClawError(
            f"--for: expected one of {', '.join(DOORS)}, found {unknown[0][:40]!r}",
            did_you_mean(unknown[0], DOORS) or "clawlite gateway token --help",
        )
    had, opened = doors_of(name), tuple(dict.fromkeys(found))
    print(f"{name}:{make_token(name, opened)}")
    if had:
        lost = "" if set(had) == set(opened) else f", which opened {', '.join(had)},"
        ui.print_note(f"The token that {name} had before{lost} is no longer valid.")


def devices(as_json):
    from clawlite.host.gateway import report

    ui.show(report.devices(), as_json, ui.print_rows, "No device was here.")


def history(count, as_json):
    from clawlite.host.gateway import report

    ui.show(report.history(count), as_json, ui.print_rows, "Nothing was asked.")


def audit(count, as_json):
    from clawlite.host.gateway import report

    ui.show(report.audit(count), as_json, ui.print_rows, "Nothing happened.")
