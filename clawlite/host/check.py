"""``clawlite check``: is it valid CKP, and what of it does this version build?"""
from clawlite.host import boards, compiler, findings, manifest
from clawlite.host.problems import ManifestErrors


def check(name: str, board: str = None) -> dict:
    """Return {file, tools, rules, not_built, dead, shadowed, warnings}: counts, why it could not be built here, a line each, and
    what is most likely not meant (host/findings.py).

    Raises ``ManifestErrors`` when it is no valid CKP, with every problem; ``ClawError`` when *board* cannot honour it.
    """
    loaded = manifest.load(name)
    if board:
        boards.demand(loaded, board)
    not_built = []
    try:
        compiler.build(loaded)
    except ManifestErrors as e:
        not_built = [problem.text() for problem in e.problems]
    return {"file": loaded.file, "tools": len(loaded.tools), "rules": sum(len(p.spec.rules) for p in loaded.policies),
            "not_built": not_built, **findings.find(loaded)}
