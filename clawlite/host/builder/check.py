"""``clawlite check``: find out whether a manifest is valid CKP, and whether this version can build
it."""

from clawlite.host.base.problems import NOT_ASKED, ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest


def check(name: str, board: str = None, allowed=()) -> dict:
    """Return {file, tools, rules, not_asked, drivers, dead, shadowed, warnings}: counts; what a
    build asks first, a line each; ``pinned_drivers.list_rows``; and what is most likely not meant
    (host/compiler/lint.py).

    allowed  folders outside of the manifest's that its files may lie in
    Raises ``ManifestErrors`` with every problem for which ``build`` refuses it, or *board* cannot
    honour it: a part that is valid CKP and that this version does not have is one of them
    (ADR 0005)."""
    loaded = manifest.load(name, allowed)
    profile = boards.profile(board, loaded.folder) if board else None
    not_asked = []
    try:
        built = compiler.build(loaded)
    except ManifestErrors as e:
        if profile:
            board_fit.refuse(loaded, profile)
        wrong = [problem for problem in e.problems if NOT_ASKED not in problem.message]
        if wrong:
            raise ManifestErrors(wrong) from None
        not_asked = [problem.text() for problem in e.problems]
    else:
        if profile:
            board_fit.refuse(loaded, profile, board_fit.Need(loaded, built.data))
    found = lint.find(loaded)
    found["warnings"] += board_fit.notes(loaded, profile)
    return {
        "file": loaded.file,
        "tools": len(loaded.tools),
        "rules": sum(len(p.spec.rules) for p in loaded.policies),
        "not_asked": not_asked,
        "drivers": loaded.driver_rows(),
        **found,
    }
