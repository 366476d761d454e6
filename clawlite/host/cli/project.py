"""The commands for projects, manifests, images and board profiles: each calls the work, and prints
what came of it.  clawlite/verbs.py declares them.
"""

from clawlite.host.cli import ui


def new(name, template, endpoint, model, offline, board):
    from clawlite.host.projects import new as project

    ui.show_new_project(name, project.new(name, template, endpoint, model, offline, board), board)


def check(manifest, board, allowed, as_json, watches, as_sarif):
    from clawlite.host.base.problems import ManifestErrors
    from clawlite.host.build.check import check as run

    if watches:
        return _watch(manifest or ".", board, allowed, as_json)
    if as_sarif:
        try:
            return ui.show_sarif([], run(manifest or ".", board, allowed)["warnings"])
        except ManifestErrors as e:
            return ui.show_sarif(e.problems, [])
    return ui.checked(run(manifest or ".", board, allowed), as_json)


def _watch(manifest, board, allowed, as_json):
    import os
    import sys

    from clawlite.core.base.errors import ClawError
    from clawlite.host.build import watching
    from clawlite.host.build.check import check as run

    folder = manifest if os.path.isdir(manifest) else os.path.dirname(manifest) or "."
    for names in watching.changes(folder):
        if names:
            ui.print_note("", "changed: " + ", ".join(names[:3]) + (" ..." if names[3:] else ""))
        try:
            ui.checked(run(manifest, board, allowed), as_json)
        except ClawError as e:
            ui.print_error(e, as_json)
        sys.stdout.flush()  # who reads a pipe waits for it


def schema(what, writes):
    from clawlite.host.build import editor_schemas

    if writes:
        ui.show_schemas(editor_schemas.write("."), editor_schemas.first_line)
    else:
        ui.document(editor_schemas.make(what or "claw"))


def build(manifest, output, board, key_file, refresh, accepted, allowed, as_json):
    from clawlite.host.build.build import build as run

    with ui.Elapsed("Building"):
        built = run(manifest or ".", output, key_file, board, refresh, allowed, accepted)
    ui.built(built, as_json)


def add(driver, manifest, index, replace, dry_run, as_json):
    from clawlite.host.build import drivers as work

    with ui.Elapsed("Fetching"):
        found = work.add(driver, manifest or ".", index, replace, dry_run)
    ui.drivers_added(found, dry_run, as_json)


def remove(driver, manifest, dry_run, as_json):
    from clawlite.host.build import drivers as work

    ui.driver_removed(work.remove(driver, manifest or ".", dry_run), dry_run, as_json)


def drivers(manifest, as_json):
    from clawlite.host.build import drivers as work

    return ui.drivers(work.rows(manifest or "."), as_json)


def discover(manifest, names, dry_run, as_json):
    from clawlite.host.build.discover import discover as run

    ui.discovered(run(manifest or ".", names, dry_run), dry_run, as_json)


def inspect(image, as_json):
    from clawlite.host.image import inspection

    ui.inspected(inspection.inspect_file(image), as_json)


def tools(manifest, may, as_json):
    from clawlite.host.build import tool_table

    name = manifest or tool_table.default_manifest()
    if may is not None:
        ui.show_decision(tool_table.decision_of(name, may), as_json)
    else:
        ui.tools(tool_table.rows(name), as_json)


def conformance(as_json):
    from clawlite.host.manifest import conformance

    ui.declared(conformance.declaration(), as_json)


def boards(board, as_json):
    from clawlite.host.boards import boards as profiles

    if board is None:
        ui.boards(profiles.rows(), as_json)
    else:
        ui.board(profiles.row(board), as_json)


def new_board(name, source):
    from clawlite.host.boards import boards as profiles

    ui.board_made(profiles.new(name, source), source)
