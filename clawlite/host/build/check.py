"""``clawlite check``: find out whether a manifest is valid CKP, and what this version can build of
it."""

from clawlite.host.base.problems import NOT_ASKED, ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler
from clawlite.host.fit import board_fit
from clawlite.host.manifest import lint_warnings, manifest
from clawlite.host.manifest.unsupported import LATER
from clawlite.host.providers.remotes import MEANT_ELSEWHERE


def check(name: str, board: str = None, allowed=()) -> dict:
    """Return {file, tools, rules, not_built, not_asked, dead, shadowed, warnings}: counts; why it
    could not be built here, and what a build asks first, a line each; and what is most likely not
    meant (host/manifest/lint_warnings.py).

    allowed  folders outside of the manifest's that its files may lie in
    Raises ``ManifestErrors`` with every problem when it is no valid CKP, or *board* cannot honour
    it (what cannot be built is no image for any board), or a Sandbox or Policy of it cannot be kept
    as it is written: a protection is not put off; or a file that clawlite alone knows
    (clawlite.toml, reflex, replay) is wrong, or a schedule, a path or an endpoint means nothing:
    nothing else could read it either."""
    loaded = manifest.load(name, allowed)
    profile = boards.profile(board, loaded.folder) if board else None
    not_built, not_asked = [], []
    try:
        built = compiler.build(loaded)
    except ManifestErrors as e:
        for problem in e.problems:
            (not_asked if NOT_ASKED in problem.message else not_built).append(problem.text())
        if profile:
            board_fit.refuse(loaded, profile)
        if profile or any(_is_wrong_anywhere(loaded, problem) for problem in e.problems):
            raise
    else:
        if profile:
            board_fit.refuse(loaded, profile, board_fit.Need(loaded, built.data))
    return {
        "file": loaded.file,
        "tools": len(loaded.tools),
        "rules": sum(len(p.spec.rules) for p in loaded.policies),
        "not_built": not_built,
        "not_asked": not_asked,
        **lint_warnings.find(loaded),
    }


def _is_wrong_anywhere(loaded, problem) -> bool:
    """Return whether *problem* is an error of ``check``: no version could ever build it, or it
    would leave a protection without effect.

    That holds for a schedule or a path without a meaning, an endpoint that is none, for a problem
    in a file of clawlite's own, about a secret, and in a Sandbox or a Policy.  A feature that this
    version does not have yet is valid anyway, wherever it stands."""
    if LATER in problem.message:
        return False
    if problem.file.endswith(".toml") or problem.file in (
        loaded.settings.reflex_file,
        loaded.settings.replay_file,
    ):
        return True
    if problem.path[-1:] in (("secret_ref",), ("schedule",), ("path",)):
        return True
    if problem.path[-1:] == ("endpoint",) and problem.message not in MEANT_ELSEWHERE:
        return True
    for primitive in loaded.policies + ([loaded.sandbox] if loaded.sandbox else []):
        place = primitive.place
        if problem.file == place.where()[0] and problem.path[: len(place.path)] == place.path:
            return True
    return False
