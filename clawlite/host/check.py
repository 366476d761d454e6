"""``clawlite check``: is it valid CKP, and what of it does this version build?"""
from clawlite.host import board_fit, boards, compiler, findings, manifest
from clawlite.host.problems import ManifestErrors


def check(name: str, board: str = None) -> dict:
    """Return {file, tools, rules, not_built, dead, shadowed, warnings}: counts, why it could not be built here, a line each, and
    what is most likely not meant (host/findings.py).

    Raises ``ManifestErrors`` with every problem when it is no valid CKP, or *board* cannot honour it.
    """
    loaded = manifest.load(name)
    profile = boards.profile(board, loaded.folder) if board else None
    not_built = []
    try:
        built = compiler.build(loaded)
    except ManifestErrors as e:
        not_built = [problem.text() for problem in e.problems]
        if profile:
            board_fit.refuse(loaded, profile)
    else:
        if profile:
            board_fit.refuse(loaded, profile, board_fit.Need(loaded, built.data))
    return {"file": loaded.file, "tools": len(loaded.tools), "rules": sum(len(p.spec.rules) for p in loaded.policies),
            "not_built": not_built, **findings.find(loaded)}
