"""One policy engine, at work for policies.py: ``engines.py NAME CASE...``.

CASE is a JSON file: {"rules": as a Policy document has them, "requests": [[tool, category or "",
path or "", action that decides], ...]}.  First each engine decides each request, and ends with an
error where its answer is not the action.  Then it reads lines from stdin, the number of a case and
how often to decide its requests, and prints the nanoseconds of one decision.

What an engine can prepare is prepared: rules are parsed, and requests have the form that it takes.
The rules are such that no two fit one request, so engines without an order can have them."""

import json
import sys
import time
from fnmatch import fnmatchcase
from functools import partial

_WORKSPACE = "/workspace/notes"
_CEL = {
    "name": "name == '%s'",
    "glob": "name.startsWith('%s')",
    "category": "category == '%s'",
    "destructive": "destructive",
    "path": f"(path == '{_WORKSPACE}' || path.startsWith('{_WORKSPACE}/'))",
}
_CEDAR = {
    "name": 'context.name == "%s"',
    "glob": 'context.name like "%s*"',
    "category": 'context.category == "%s"',
    "destructive": "context.destructive",
    "path": f'context.path like "{_WORKSPACE}/*"',
}


def clawlite(case: dict, path: str):
    """Return (function for each request, that returns "allow" or "deny")."""
    from clawlite.core.image.image import RULE_ID
    from clawlite.core.policy import policy
    from clawlite.linux.files import files

    image = files.open_image(path.removesuffix(".json"))
    actions = {rule["id"]: rule["action"] for rule in case["rules"]}

    def one(name, arguments):
        tool = image.tool(name)
        return policy.decide(image, tool.entry, policy.paths_of(tool.paths, arguments))

    for name, category, where, _ in case["requests"]:
        arguments = {"path": where} if where else {"text": "x"}
        yield (
            partial(one, name, arguments),
            lambda decided: actions[decided[policy.DECISION_RULE][RULE_ID]],
        )


def naive(case: dict, path: str):
    """The loop that everybody writes first."""

    def fits(rule, name, category, where):
        match, wanted = rule.get("match", {}), rule.get("conditions", {}).get("path_within")
        return (
            ("name" not in match or fnmatchcase(name, match["name"]))
            and ("category" not in match or match["category"] == category)
            and (wanted is None or where == wanted or where.startswith(wanted + "/"))
        )

    def one(*request):
        for rule in case["rules"]:
            if fits(rule, *request):
                return rule["action"]

    for name, category, where, _ in case["requests"]:
        yield partial(one, name, category, where), str


def cel(case: dict, path: str):
    """Rust CEL: expressions of 32 rules each, as nested conditions."""
    import cel

    programs, rules = [], case["rules"]
    for at in range(0, len(rules), 32):
        text = "''"
        for rule in reversed(rules[at : at + 32]):
            text = f"({_conditions(rule, _CEL) or 'true'}) ? '{rule['action']}' : {text}"
        programs.append(cel.compile(text))

    def one(context):
        for program in programs:
            found = program.execute(context)
            if found:
                return found

    for name, category, where, _ in case["requests"]:
        context = cel.Context(
            variables={"name": name, "category": category, "path": where, "destructive": True}
        )
        yield partial(one, context), str


def _conditions(rule: dict, forms: dict) -> str:
    """Return the conditions of *rule* as an engine writes them; *forms* has its form of each."""
    match, found = rule.get("match", {}), []
    if "name" in match:
        stem = match["name"].removesuffix("*")
        found.append(forms["name" if stem == match["name"] else "glob"] % stem)
    if "category" in match:
        found.append(forms["category"] % match["category"])
    if "annotations" in match:
        found.append(forms["destructive"])
    if "conditions" in rule:
        found.append(forms["path"])
    return " && ".join(found)


_REGO = """package tools
import rego.v1
default action := "deny"
action := data.names[input.name]
action := data.categories[input.category]
action := "allow" if {
    data.files[input.category]
    startswith(input.path, "%s/")
}
action := "deny" if {
    data.hints[input.category]
    input.destructive
}
action := "allow" if {
    some stem in data.stems
    startswith(input.name, stem)
}
"""


def regorus(case: dict, path: str):
    """Rego in Rust, written by hand over indexed data: a loop over globs alone."""
    import regorus

    data = {"names": {}, "categories": {}, "files": {}, "hints": {}, "stems": []}
    for rule in case["rules"]:
        match = rule.get("match", {})
        if match.get("name", "").endswith("*"):
            data["stems"].append(match["name"].removesuffix("*"))
        elif "name" in match:
            data["names"][match["name"]] = rule["action"]
        elif "conditions" in rule:
            data["files"][match["category"]] = True
        elif "annotations" in match:
            data["hints"][match["category"]] = True
        elif match:
            data["categories"][match["category"]] = rule["action"]
    engine = regorus.Engine()
    engine.add_policy("tools.rego", _REGO % _WORKSPACE)
    engine.add_data_json(json.dumps(data))

    def one(text):
        engine.set_input_json(text)
        return engine.eval_rule("data.tools.action")

    for name, category, where, _ in case["requests"]:
        text = json.dumps({"name": name, "category": category, "path": where, "destructive": True})
        yield partial(one, text), str


def cedarpy(case: dict, path: str):
    """Cedar: what no policy permits is denied."""
    import cedarpy

    texts = []
    for rule in case["rules"]:
        conditions = _conditions(rule, _CEDAR)
        if conditions:
            effect = "permit" if rule["action"] == "allow" else "forbid"
            texts.append(f"{effect}(principal, action, resource) when {{ {conditions} }};")
    policies = cedarpy.PolicySet.from_str("\n".join(texts))
    entities = cedarpy.Entities.from_json_str("[]")
    for name, category, where, _ in case["requests"]:
        request = {
            "principal": 'Agent::"bench"',
            "action": 'Action::"call"',
            "resource": 'Tool::"any"',
            "context": {"name": name, "category": category, "path": where, "destructive": True},
        }
        yield (
            partial(cedarpy.is_authorized, request, policies, entities),
            lambda found: "allow" if found.decision == cedarpy.Decision.Allow else "deny",
        )


_CASBIN = """
[request_definition]
r = name, category, path
[policy_definition]
p = kind, what, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = (p.kind == "name" && r.name == p.what) || (p.kind == "glob" && keyMatch(r.name, p.what)) || \
(p.kind == "category" && r.category == p.what) || \
(p.kind == "files" && r.category == p.what && keyMatch(r.path, "%s/*"))
"""


def casbin(case: dict, path: str):
    """Casbin: a hint is a category here, since all tools of the requests have it."""
    import casbin

    model = casbin.Enforcer.new_model(text=_CASBIN % _WORKSPACE)
    enforcer = casbin.Enforcer(model)
    rows = []
    for rule in case["rules"]:
        match = rule.get("match", {})
        if "name" in match:
            rows.append(["glob" if match["name"].endswith("*") else "name", match["name"]])
        elif match:
            rows.append(["files" if "conditions" in rule else "category", match["category"]])
        else:
            continue
        rows[-1].append(rule["action"])
    enforcer.add_policies(rows)
    for name, category, where, _ in case["requests"]:
        yield (
            partial(enforcer.enforce, name, category or "-", where or "-"),
            lambda found: "allow" if found else "deny",
        )


def main(name: str, paths: list) -> None:
    works = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            case = json.load(file)
        work = []
        wanted = [request[3] for request in case["requests"]]
        for (function, action), expected in zip(globals()[name](case, path), wanted):
            answer = action(function())
            if answer != expected:
                sys.exit(f"{name}: {path}: request {len(work)}: {answer}, expected {expected}")
            work.append(function)
        works.append(work)
    print("ready", flush=True)
    for line in sys.stdin:
        number, times = map(int, line.split())
        work = works[number]
        begin = time.perf_counter_ns()
        for _ in range(times):
            for function in work:
                function()
        print((time.perf_counter_ns() - begin) / (times * len(work)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
