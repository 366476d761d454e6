"""What Setup of the page does, by the functions of the commands: ``python -m
clawlite.host.cli.setup``, a process of its own for each job.

    a job, on stdin, by "do"
        look                        what is attached, and which projects are here
        fit: board                  which templates fit the board, and why others do not
        make: name, template, board    as clawlite new
        plan: name, port, board     as clawlite flash --dry-run
        flash: name, port, board    as clawlite flash --yes
    lines, on stdout    {"progress": ...}, and at last {"result": ...} or {"error": why, "hint"}

A project has its folder below ``projects_folder``; a board may be left out.
"""

import json
import os
import re
import sys
import tempfile
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.host.base.home import base_folder

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_MOST_JOB = 4096  # bytes
_MOST_PROJECTS = 100  # that are listed


def projects_folder() -> str:
    """Return the folder of the projects that Setup makes."""
    return os.path.join(base_folder("XDG_DATA_HOME", ".local", "share"), "clawlite", "projects")


def main() -> int:
    """Do the job on stdin; return the exit code."""
    try:
        job = json.loads(sys.stdin.buffer.read(_MOST_JOB))
        verb = _JOBS.get(str(job.get("do"))) if isinstance(job, dict) else None
        if verb is None:
            raise ClawError("do: expected one of %s" % ", ".join(_JOBS), "send one of these")
        _tell({"result": verb(job)})
        return 0
    except ClawError as e:
        _tell({"error": str(e), "hint": e.hint or ""})
    except (OSError, ValueError) as e:
        _tell({"error": str(e), "hint": ""})
    return 1


def _tell(line: dict) -> None:
    print(json.dumps(line), flush=True)


def _text(job: dict, key: str) -> str:
    value = job.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise ClawError(
            f"{key}: expected a text of 1 to 200 printable characters", "send it with the job"
        )
    return value


def _board(job: dict) -> Any:
    """Return the name of the board, or None."""
    return None if job.get("board") is None else _text(job, "board")


def _project(job: dict) -> str:
    """Return the folder of the project that *job* names."""
    name = _text(job, "name")
    if not _NAME.fullmatch(name):
        raise ClawError(
            "name: expected 1 to 40 small letters, digits and hyphens", "choose another name"
        )
    return os.path.join(projects_folder(), name)


def _look(job: dict) -> dict:
    from clawlite.host.boards import boards
    from clawlite.host.projects import gallery
    from clawlite.host.serial import ports

    folder = projects_folder()
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    projects = [one for one in names if os.path.isfile(os.path.join(folder, one, "claw.yaml"))]
    return {
        "ports": [port for port in ports.ports() if port["boards"] or port["usb"]],
        "titles": {profile.name: profile.title for profile in boards.load_all()},
        "templates": gallery.describe(),
        "projects": projects[:_MOST_PROJECTS],
        "more": max(0, len(projects) - _MOST_PROJECTS),
        "folder": folder,
    }


def _fit(job: dict) -> dict:
    """Tell of each template whether it fits a board, and why not."""
    from clawlite.host.builder.check import check
    from clawlite.host.projects import gallery, new

    board, found = _text(job, "board"), []
    kinds = gallery.describe()
    for number, kind in enumerate(kinds):
        with tempfile.TemporaryDirectory() as folder:
            row = {"name": kind["name"], "about": kind["about"], "fits": True, "why": ""}
            try:
                path = os.path.join(folder, "project")
                new.new(path, kind["name"], offline=True, board=board)
                check(path, board)
            except ClawError as e:
                row["fits"] = False
                row["why"] = (str(e) + (f" - {e.hint}" if e.hint else "")).replace(folder, "")
        found.append(row)
        _tell({"progress": {"done": number + 1, "of": len(kinds)}, "row": row})
    return {"templates": found}


def _make(job: dict) -> dict:
    from clawlite.host.projects import new

    path = _project(job)
    os.makedirs(projects_folder(), 0o700, exist_ok=True)
    template, board = _text(job, "template"), _board(job)
    return {"folder": path, "files": new.new(path, template, offline=True, board=board)}


def _flash(job: dict) -> dict:
    from clawlite.host.flash import flash as work

    path, done = _project(job), [0]

    def tell(total: int, more: int):
        done[0] += more
        _tell({"progress": {"done": done[0], "of": total}})

    with work.target(_text(job, "port")) as target:
        is_plan, board = job["do"] == "plan", _board(job)
        return work.flash(path, target, is_plan, board, lambda found: None, lambda: None, tell)


_JOBS = {"look": _look, "fit": _fit, "make": _make, "plan": _flash, "flash": _flash}

if __name__ == "__main__":
    sys.exit(main())
