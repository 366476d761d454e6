"""``clawlite doctor``: what is wrong on this machine, and the one command that mends it, with the
standard library alone.

A check is a function(here) -> list of rows (check, state, what, mend); its state is one of ``OK``,
``WRONG`` (exit code 1), ``NOTE`` (not wrong, but good to know) and ``NONE`` (does not apply here).
A fifth part, for --json alone, is a dict.  Nothing is changed, no port is opened.
"""

import os
import sys

from clawlite.core.base.printable import escape_ends
from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG, Machine
from clawlite.linux.io.jsontext import document


def show(port, as_json: bool) -> int:
    """Show what is wrong; return the exit code."""
    rows = examine(Machine(port=port))
    print(
        document([dict(zip(("check", "state", "what", "mend", "found"), row)) for row in rows])
        if as_json
        else text(rows, sys.stdout.isatty())
    )
    return 1 if any(row[1] == WRONG for row in rows) else 0


def examine(here: Machine) -> list:
    """Return the rows of all checks."""
    from clawlite.linux.doctor import doctor_agent, doctor_machine, doctor_ports

    return [
        row
        for part in (doctor_machine, doctor_ports, doctor_agent)
        for check in part.CHECKS
        for row in check(here)
    ]


def text(rows: list, is_terminal: bool = False) -> str:
    """Return what a person reads: what does not apply is left out; on a terminal what is wrong
    is bold.
    """
    lines = []
    for check, state, what, mend in [row[:4] for row in rows]:
        if state != NONE:
            head = "%-6s" % {OK: "ok", WRONG: "WRONG", NOTE: "note"}[state]
            lines.append(
                (
                    "\x1b[1m%s\x1b[0m" % head
                    if is_terminal and state == WRONG and "NO_COLOR" not in os.environ
                    else head
                )
                + " "
                "%-9s "
                "%s" % (check, escape_ends(what))
            )
            if mend:
                lines.append("       %-9s mend it: %s" % ("", escape_ends(mend)))
    wrong = sum(row[1] == WRONG for row in rows)
    return "\n".join(
        lines
        + [
            "%d thing%s wrong." % (wrong, " is" if wrong == 1 else "s are")
            if wrong
            else "Nothing is wrong."
        ]
    )
