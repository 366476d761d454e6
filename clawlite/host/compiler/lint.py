"""Find settings of a manifest that are valid but most likely not meant: for ``clawlite check`` and
``build``.

dead        a rule that matches no tool
shadowed    a rule that an earlier one always beats; a rule that denies what is left is none, though
            the tools of today leave it nothing
warnings    what each feature warns of, and what has no effect
"""

from clawlite.host.compiler.work import Work
from clawlite.host.manifest.features import FEATURES
from clawlite.host.policy import folding, policy_warnings


def find(manifest) -> dict:
    """Return {dead, shadowed: [{id, file, line}], warnings: [{file, line, message}]} of *manifest*:
    rules in their order, warnings by file and line.

    It need not be one that this version builds.
    """
    work = Work(manifest)
    reached = [one for entry, _, bound in work.decided for one in (entry, *(bound or ()))]
    dead, shadowed = folding.find_unreached(work.rules, work.tools, reached)
    rest = _denies_the_rest(work.rules)
    found = [one for feature in FEATURES for one in feature.warn(manifest, work)]
    return {
        "dead": [_rule(manifest, flat) for flat in dead],
        "shadowed": [_rule(manifest, flat) for flat in shadowed if flat is not rest],
        "warnings": [
            {"file": file, "line": line, "message": message}
            for (file, line), message in sorted(found + manifest.notes, key=lambda one: one[0])
        ],
    }


def _denies_the_rest(rules: list):
    """Return the first of *rules* that is for every tool, if it denies it, or None."""
    for flat in rules:
        if flat.rule.scope == "all" and flat.rule.conditions is None:
            return flat if flat.rule.action == "deny" else None
    return None


def _rule(manifest, flat) -> dict:
    file, line = policy_warnings.place_of(manifest, flat)
    return {"id": flat.rule.id, "file": file, "line": line}
