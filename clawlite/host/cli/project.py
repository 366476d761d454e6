"""The commands for projects, manifests, images and board profiles: each calls the work, and prints
what came of it.  clawlite/verbs.py declares them.
"""

import sys

from clawlite.host.cli import ui


def new(name, lists, template, endpoint, model, offline, local, board, as_json):
    from clawlite.core.base.errors import ClawError
    from clawlite.host.projects import gallery
    from clawlite.host.projects import new as project

    if lists:
        return ui.show(gallery.describe(), as_json, ui.show_gallery)
    if name is None:
        raise ClawError(
            "expected NAME, the folder of the project",
            "clawlite new NAME; clawlite new --list shows what it may begin as",
        )
    if not (template or endpoint or model or offline or local or board) and ui.is_asking():
        template, endpoint, offline, local, board = _ask_for_project()
    made = project.new(name, template or project.DEFAULT, endpoint, model, offline, board, local)
    if board is None:
        return ui.show_new_project(name, made)
    from clawlite.host.boards import boards as profiles

    way = "with --port PORT on the %s: clawlite ports lists the ports"
    if profiles.load(board)["runtime"] == "cpython":
        way = "on the %s: clawlite flash --ssh HOST"
    return ui.show_new_project(name, made, way % board)


def _ask_for_project() -> tuple:
    """Ask what the project is for: (template, endpoint, offline, local, board)."""
    from clawlite.host.boards import boards as profiles
    from clawlite.host.projects import gallery
    from clawlite.host.serial.ports import ports

    attached = [name for port in ports() for name in port["boards"] if port["usb"]]
    titles = {row["name"]: row["title"] for row in profiles.rows()}
    devices = [(name, titles.get(name, "")) for name in dict.fromkeys(attached)]
    board = ui.choose(
        "Where will it run?",
        [*devices, ("here", "this computer; or type the name of a board, such as pico-w")],
        sorted(titles),
    )
    kinds = gallery.describe()
    template = ui.choose(
        "What should it begin as?", [(one["name"], one["about"]) for one in kinds], ()
    )
    endpoint, offline, local = None, True, False
    other = None if board == "here" else board
    if next(one["model"] for one in kinds if one["name"] == template):
        endpoint, offline, local = _ask_for_model(template, other)
    return template, endpoint, offline, local, other


def _ask_for_model(template: str, board: str | None) -> tuple:
    """Return (endpoint or None, whether no model is asked, whether the local model is)."""
    from clawlite.host.projects.new import ENDPOINT, can_understand

    words = "one of 37 MB in this machine, for plain words: no key; it is fetched when you agree"
    ways = [
        ("none", "rules of its own: no key, no network"),
        *([("words", words)] if can_understand(template, board) else []),
        ("local", f"a server on this computer, {ENDPOINT}"),
        ("address", "another server with an OpenAI-compatible API"),
    ]
    way = ui.choose("Which model shall it ask?", ways, ())
    if way == "address":
        return ui.ask_text("Its address, such as https://api.example.com/v1"), False, False
    return None, way == "none", way == "words"


def check(manifest, board, allowed, as_json, watches, as_sarif):
    from clawlite.host.base.problems import ManifestErrors
    from clawlite.host.builder.check import check as run

    if watches:
        return _watch(manifest or ".", board, allowed, as_json)
    if as_sarif:
        try:
            return ui.show_sarif([], run(manifest or ".", board, allowed)["warnings"])
        except ManifestErrors as e:
            return ui.show_sarif(e.problems, [])
    return ui.show(run(manifest or ".", board, allowed), as_json, ui.show_check)


def _watch(manifest, board, allowed, as_json):
    import os

    from clawlite.core.base.errors import ClawError
    from clawlite.host.builder import watching
    from clawlite.host.builder.check import check as run

    folder = manifest if os.path.isdir(manifest) else os.path.dirname(manifest) or "."
    for names in watching.changes(folder):
        if names:
            ui.print_note("", "changed: " + ", ".join(names[:3]) + (" ..." if names[3:] else ""))
        try:
            ui.show(run(manifest, board, allowed), as_json, ui.show_check)
        except ClawError as e:
            ui.print_error(e, as_json)
        sys.stdout.flush()  # who reads a pipe waits for it


def schema(what, writes):
    from clawlite.host.builder import editor_schemas

    if writes:
        ui.show_schemas(editor_schemas.write("."), editor_schemas.first_line)
    else:
        ui.print_document(editor_schemas.make(what or "claw"))


def build(manifest, output, board, key_file, refresh, accepted, allowed, as_json):
    from clawlite.host.builder.build import build as run

    with ui.Elapsed("Building") as elapsed:
        built = run(
            manifest or ".", output, key_file, board, refresh, allowed, accepted, elapsed.reach
        )
    ui.show(built, as_json, ui.show_build)


def add(driver, manifest, index, replace, dry_run, as_json):
    from clawlite.host.builder import drivers as work

    with ui.Elapsed("Fetching"):
        found = work.add(driver, manifest or ".", index, replace, dry_run)
    ui.show(found, as_json, ui.show_added, dry_run)


def remove(driver, manifest, dry_run, as_json):
    from clawlite.host.builder import drivers as work

    found = work.remove(driver, manifest or ".", dry_run)
    ui.show(found, as_json, ui.show_removed, dry_run)


def drivers(manifest, as_json):
    from clawlite.host.builder import drivers as work

    found = work.rows(manifest or ".")
    ui.show(found, as_json, ui.show_drivers)
    return 1 if any(file["problem"] for one in found for file in one["files"]) else 0


def discover(manifest, names, dry_run, as_json):
    from clawlite.host.builder.discover import discover as run

    ui.show(run(manifest or ".", names, dry_run), as_json, ui.show_discovery, dry_run)


def inspect(image, as_json):
    from clawlite.host.builder import inspection

    found, text = inspection.inspect_file(image)
    ui.show_lines(found, as_json, *text.split("\n"))


def tools(manifest, may, as_json):
    from clawlite.host.builder import tool_table

    name = manifest or tool_table.default_manifest()
    if may is not None:
        ui.show(tool_table.decision_of(name, may), as_json, ui.show_decision)
    else:
        found = tool_table.rows(name)
        ui.show_lines(found, as_json, *tool_table.text(found).split("\n"))


def conformance(as_json):
    from clawlite.host.manifest import conformance

    found = conformance.declaration()
    ui.show_lines(found, as_json, *conformance.text(found).split("\n"))


def boards(board, as_json):
    from clawlite.host.boards import boards as profiles
    from clawlite.host.boards import text

    if board is None:
        rows = profiles.rows()
        ui.show_lines(rows, as_json, *text.table(rows))
    else:
        row = profiles.row(board)
        ui.show_lines(row, as_json, *text.board_lines(row))


def new_board(name, source):
    from clawlite.host.boards import boards as profiles

    ui.show_new_board(profiles.new(name, source), source)


def wiring(folder, board, output, as_json):
    from clawlite.host.wiring import drawing
    from clawlite.host.wiring import wiring as work

    found = work.find(folder or ".", board)
    if output:
        drawing.save(output, drawing.draw(found))
        return ui.print_note(f"Wrote {output}: {found.agent} on {found.board}.")
    if not as_json and not sys.stdout.isatty():
        return ui.print_data(*drawing.draw(found))
    return ui.show(work.rows(found), as_json, ui.show_wiring, found)
