"""The conformance that this runtime declares (CKP 0.2.0, section 11), and the clauses that its
tests check.

The declaration follows from what the compiler builds.  The clauses are in ``clauses.json``, which
tests/helpers/record_clauses.py writes from tests/ckp/clauses.toml.  A passing test run has shown
each clause that is "held" there, and that the file is current.  A checkout has the results of its
last test run (build/results): there the table shows those results."""

import json
import pathlib

from clawlite import __version__
from clawlite.core.base.printable import join_lines
from clawlite.core.protocol.handshake import SUPPORTED
from clawlite.host.base.kinds import KINDS, LEVELS

# a test holds it; it waits for something; it binds others, or is a SHOULD that is not done
STATES = ("held", "pending", "others")
FILE = pathlib.Path(__file__).with_name("clauses.json")
# tests/helpers/clause_results.py
LAST_RUN = pathlib.Path(__file__).resolve().parents[3] / "build" / "results" / "clauses.json"


def declaration(file: pathlib.Path = FILE, last_run: pathlib.Path = LAST_RUN) -> dict:
    """Return {"runtime", "spoken", "clauses"}: what ``clawlite conformance --json`` prints.

    runtime   the declaration of section 11
    spoken    versions of the protocol
    clauses   {"levels": {level: {"MUST" | "SHOULD": {state: count}}}, "pending": [clause],
              "last_run": None or {"at": ISO 8601, "levels": {level: {"held" | "failed" | "not run":
              count}}, "failed": [id], "not run": [id]}}, None where the file is missing
    """
    supported = list(KINDS)
    level = [name for name, needed in LEVELS if set(needed) <= set(supported)][0]
    return {
        "runtime": {
            "name": "clawlite",
            "version": __version__,
            "clawkernel": {
                "version": SUPPORTED[-1],
                "conformance": level,
                "primitives_supported": supported,
            },
        },
        "spoken": list(SUPPORTED),
        "clauses": _clauses(file, last_run),
    }


def _clauses(file: pathlib.Path, last_run: pathlib.Path):
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    levels = {}
    for clause in found["clauses"]:
        kinds = levels.setdefault(
            clause["level"], {kind: dict.fromkeys(STATES, 0) for kind in ("MUST", "SHOULD")}
        )
        kinds[clause["kind"]][clause["state"]] += 1
    pending = [
        dict(clause, reason=found["pending"][clause["waits_for"]])
        for clause in found["clauses"]
        if clause["state"] == "pending"
    ]
    return {"levels": levels, "pending": pending, "last_run": _read_run(found["clauses"], last_run)}


def _read_run(clauses: list, last_run: pathlib.Path):
    """Return what the last test run showed of the clauses that tests hold; None without one."""
    try:
        run = json.loads(last_run.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    levels, named = {}, {"failed": [], "not run": []}
    for clause in clauses:
        if clause["state"] != "held":
            continue
        verdict = run["clauses"].get(clause["id"], "not run")
        counts = levels.setdefault(clause["level"], dict.fromkeys(("held", *named), 0))
        counts[verdict] += 1
        if verdict in named:
            named[verdict].append(clause["id"])
    return {"at": run["at"], "levels": levels, **named}


def text(found: dict) -> str:
    """Return a declaration as people read it."""
    runtime, kernel = found["runtime"], found["runtime"]["clawkernel"]
    lines = [
        f"{runtime['name']} {runtime['version']}: CKP {kernel['version']} (speaks "
        f"{' and '.join(found['spoken'])}), {kernel['conformance']}",
        "primitives: " + ", ".join(kernel["primitives_supported"]),
    ]
    if found["clauses"] is None:
        return join_lines(lines + ["clauses: the table is not part of this installation"])
    lines += ["", "clauses        held by tests   waiting   others' or not done"]
    for level, kinds in sorted(found["clauses"]["levels"].items()):
        for kind, counts in kinds.items():
            lines.append(
                f"  {level} {kind:7} {counts['held']:15} {counts['pending']:9} "
                f"{counts['others']:23}"
            )
    lines += _last_run(found["clauses"]["last_run"])
    groups = {}
    for clause in found["clauses"]["pending"]:
        groups.setdefault((clause["waits_for"], clause["reason"]), []).append(clause["id"])
    return join_lines(
        lines
        + [""]
        + [
            f"waiting for {name}: {reason} ({', '.join(ids)})"
            for (name, reason), ids in sorted(groups.items())
        ]
    )


def _last_run(run) -> list:
    if run is None:
        return ["", "the last test run: not part of this installation"]
    lines = ["", f"the last test run, {run['at']}"]
    for level, counts in sorted(run["levels"].items()):
        lines.append(
            f"  {level} " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        )
    return lines + [
        f"  {verdict}: {', '.join(run[verdict])}"
        for verdict in ("failed", "not run")
        if run[verdict]
    ]
