"""``clawlite check``: is it valid CKP, and what of it does this version build?"""
from clawlite.host import compiler, manifest
from clawlite.host.problems import ManifestErrors


def check(name: str) -> dict:
    """Return {file, tools, rules, not_built}: counts, and why it could not be built here, a line each.

    Raises ``ManifestErrors`` when it is no valid CKP, with every problem.
    """
    loaded = manifest.load(name)
    not_built = []
    try:
        compiler.build(loaded)
    except ManifestErrors as e:
        not_built = [problem.text() for problem in e.problems]
    return {"file": loaded.file, "tools": len(loaded.tools), "rules": sum(len(p.spec.rules) for p in loaded.policies),
            "not_built": not_built}
