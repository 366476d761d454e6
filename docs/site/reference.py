"""Writes what of the documents follows from the sources: ``make reference``.

    python docs/site/reference.py [--check]

1. A page has blocks between ``<!-- written by make reference: NAME -->`` and ``<!-- end of what it
   wrote -->``.  Pages below docs/reference are written as a whole.
2. ``--check`` writes nothing, names the pages that are not current, and exits with 1.
3. The pictures of diagrams.py are written, too.
4. It also writes what devices check a manifest by, linux/runtime/manifest_schemas.json, and the
   udev rules of all boards, firmware-host/raspberrypi/70-clawlite.rules.
5. What is written is not counted among the words of the documents.
"""

import ast
import json
import re
import sys
from binascii import b2a_base64
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
import diagrams  # noqa: E402

END = "<!-- end of what it wrote -->"
BLOCK = re.compile(r"(<!-- written by make reference: ([a-z ]+) -->\n\n)(.*?)(\n\n%s)" % END, re.S)


def table(titles: list, rows: list) -> str:
    """Return a table of Markdown."""
    lines = ["| %s |" % " | ".join(titles), "|%s" % ("---|" * len(titles))]
    return "\n".join([*lines, *("| %s |" % " | ".join(map(str, row)) for row in rows)])


# -- tools


def describe_type(part: dict) -> str:
    if "enum" in part:
        return " \\| ".join('"%s"' % value for value in part["enum"])
    return part["items"]["type"] + "[]" if part["type"] == "array" else part["type"]


def describe_bounds(part: dict) -> str:
    told = ["default %s" % part["default"]] if "default" in part else []
    if "exclusiveMinimum" in part:
        told.append("above %s, at most %s" % (part["exclusiveMinimum"], part["maximum"]))
    elif "maximum" in part:
        told.append("%s to %s" % (part.get("minimum", 0), part["maximum"]))
    for kind, unit in (("Length", "characters"), ("Items", "of them"), ("Properties", "of them")):
        if "max" + kind in part:
            told.append("%s to %s %s" % (part.get("min" + kind, 0), part["max" + kind], unit))
    return "; ".join(told)


def list_tools() -> str:
    """Return the arguments of the built-in tools, from the registry in the package."""
    from clawlite.host.base import yaml_text
    from clawlite.host.documents import registry

    rows = []
    for name in registry.names():
        path = ROOT / "clawlite/host/documents/registry" / (name + ".yaml")
        data = yaml_text.read(path.read_bytes(), name).data
        spec = data["spec"]
        hints = ", ".join(hint[:-4] for hint, on in spec["annotations"].items() if on) or "-"
        head = ["`%s`" % name, data["metadata"]["labels"]["category"], hints]
        parts = spec["input_schema"]["properties"]
        needed = spec["input_schema"].get("required", [])
        if not parts:
            rows.append([head[0], "-", "-", "", *head[1:]])
        for argument, part in parts.items():
            shown = "`%s`%s" % (argument, "" if argument in needed else ", optional")
            rows.append([head[0], shown, describe_type(part), describe_bounds(part), *head[1:]])
            head = ["", "", ""]
    return table(["tool", "argument", "type", "bounds", "category", "hints"], rows)


def list_results() -> str:
    """Return the fields of their results."""
    from clawlite.host.documents import registry

    rows = []
    for name in registry.names():
        schema = registry.schemas(name)[1]
        if schema and "properties" in schema:
            fields = [
                "`%s` (%s)" % (field, describe_type(part)) if part else "`%s`" % field
                for field, part in schema["properties"].items()
            ]
            rows.append(["`%s`" % name, ", ".join(fields) or "-"])
    return table(["tool", "fields of its result"], rows)


# -- methods


def describe_method(row: list) -> list:
    name, taken, needs, key, section, *parameters = row
    told = ", ".join("`%s`" % one for one in parameters)
    key = "-" if key == "-" else "`%s`" % key
    return ["`claw.%s`" % name, taken, needs, key, section, told]


def list_methods(*texts: str) -> str:
    """Return the methods of the rows in *texts*."""
    rows = [row.split() for text in texts for row in text.split("\n")[1:-1]]
    titles = ["method", "taken", "needs", "key", "CKP", "parameters"]
    return table(titles, map(describe_method, rows))


def list_session_methods() -> str:
    from clawlite.core.protocol import method_table
    from clawlite.linux.tasks import task_group
    from clawlite.protocols.swarm import swarm_methods

    return list_methods(method_table.own(), swarm_methods.ROWS, task_group.ROWS)


def list_rule_methods() -> str:
    from clawlite.linux.rules.rule_group import RuleGroup

    return list_methods(RuleGroup.rows)


def list_watch_methods() -> str:
    from clawlite.linux.tasks import watch_group

    return list_methods(watch_group.ROWS)


def list_record_methods() -> str:
    from clawlite.linux.records import record_group

    return list_methods(record_group.ROWS)


# -- errors, metrics


def list_errors() -> str:
    """Return the errors of the wire: what the first paragraph of each class says."""
    from clawlite.core.base import errors

    rows = []
    for name, one in vars(errors).items():
        about = getattr(one, "__doc__", None) if hasattr(one, "code") else None
        if about and one is not errors.ClawError and one is not errors.TransientError:
            about = " ".join(about.partition("\n\n")[0].split()).replace("``", "`")
            rows.append([one.code, name, about])
    return table(["code", "class", "means"], sorted(rows, key=sort_code))


def sort_code(row: list) -> tuple:
    """JSON-RPC's own codes come first."""
    return row[0] > -32100, -row[0]


def list_metrics() -> str:
    """Return what telemetry counts: the metric, where the manifest turns it on, and its unit."""
    from clawlite.linux.telemetry.event import METRICS

    titles = ["metric", "kind", "unit", "turned on by", "of what"]
    return table(titles, [["`%s`" % name, *rest] for name, *rest in METRICS])


# -- boards, rooms, decisions


def list_boards() -> str:
    """Return what profiles say of each board."""
    from clawlite.host.boards import boards

    rows = []
    for one in boards.load_all():
        heap, flash = (f"{n:,}" if n else "-" for n in (one.heap_bytes, one.flash_bytes))
        adc = "any, simulated" if one.pins.simulated else ", ".join(one.pins.adc) or "none"
        links = ", ".join(one.network.links) or "none"
        rows.append(["`%s`" % one.name, one.word_bits, heap, flash, links, one.console.wire, adc])
    titles = ["board", "words", "heap, bytes", "files, bytes", "network", "console", "ADC pins"]
    return table(titles, rows)


def list_rooms(layer: str) -> str:
    """Return what each room of clawlite/*layer* says that it is for."""
    rows = []
    for path in sorted((ROOT / "clawlite" / layer).glob("*/__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text())).partition("\n\n")[0]
        text = text.partition("\nImports:")[0].partition("Imports:")[0]
        rows.append(["`%s`" % path.parent.name, " ".join(text.split())])
    return table(["room", "what it is for"], rows)


def list_decisions() -> str:
    rows = []
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title = path.read_text().splitlines()[0].removeprefix("# ")
        rows.append(["[%s](%s)" % (title[:4], path.name), title[6:]])
    return table(["number", "decision"], rows)


# -- settings, events, limits


def list_settings() -> str:
    """Return each key of clawlite.toml, as its schema has it."""
    from clawlite.host.builder import editor_schemas

    whole = editor_schemas.make("clawlite")
    rows: list = []
    walk_settings(whole, whole["$defs"]["File"], "", rows)
    return table(["key", "type", "bounds", "needed"], rows)


def walk_settings(whole: dict, part: dict, above: str, rows: list) -> None:
    """Append a row for each key below *above*."""
    for key, one in part["properties"].items():
        name, inner = above + key, resolve(whole, one)
        if inner.get("type") == "array":
            item = resolve(whole, inner.get("items", {}))
            inner, name = (item, name + "[]") if "properties" in item else (inner, name)
        elif isinstance(inner.get("additionalProperties"), dict):
            item = resolve(whole, inner["additionalProperties"])
            inner, name = (item, name + ".NAME") if "properties" in item else (inner, name)
        if "properties" in inner:
            walk_settings(whole, inner, name + ".", rows)
        else:
            needed = "yes" if key in part.get("required", []) else ""
            rows.append(["`%s`" % name, tell_type(whole, inner), tell_bounds(inner), needed])


def resolve(whole: dict, part: dict) -> dict:
    return whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def tell_type(whole: dict, part: dict) -> str:
    for key in ("oneOf", "anyOf"):
        if key in part:
            return " \\| ".join(tell_type(whole, resolve(whole, one)) for one in part[key])
    if "enum" in part:
        return " \\| ".join("`%s`" % one for one in part["enum"])
    if part.get("type") == "array":
        return tell_type(whole, resolve(whole, part.get("items", {}))) + "[]"
    kind = part.get("type", "object" if "properties" in part else "any")
    return kind if isinstance(kind, str) else " \\| ".join(kind)


def tell_bounds(part: dict) -> str:
    names = ("default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
    told = ["%s %s" % (name, part[name]) for name in names if part.get(name) is not None]
    return ", ".join(told).replace("|", "\\|")


def list_events() -> str:
    """Return the events of the log: their fields, and the files that write them."""
    found: dict = {}
    for path in list_sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Dict):
                continue
            keys = [one.value for one in node.keys if isinstance(one, ast.Constant)]
            if keys[:1] == ["event"] and isinstance(node.values[0], ast.Constant):
                fields, files = found.setdefault(node.values[0].value, (set(), set()))
                fields.update(keys[1:])
                files.add(str(path.relative_to(ROOT)))
    rows = [
        ["`%s`" % name, ", ".join("`%s`" % one for one in sorted(fields)), ", ".join(sorted(files))]
        for name, (fields, files) in sorted(found.items())
        if isinstance(name, str)
    ]
    return table(["event", "fields", "written by"], rows)


LIMIT = re.compile(r"^(MAX_[A-Z0-9_]+) = ([0-9][0-9_ */+-]*?)(?:  # (.*))?$", re.M)


def list_limits() -> str:
    """Return the bounds of the sources, each with what its line says of it."""
    rows = [
        ["`%s`" % name, value, (about or "").replace("|", "\\|"), path.relative_to(ROOT)]
        for path in list_sources()
        for name, value, about in LIMIT.findall(path.read_text())
        if about
    ]
    return table(["bound", "value", "of what", "in"], rows)


def list_sources() -> list:
    folders = ("clawlite", "firmware-host/micropython")
    return sorted(path for one in folders for path in (ROOT / one).rglob("*.py"))


# -- the manifest check of devices


def write_schemas() -> str:
    """Return clawlite/linux/runtime/manifest_schemas.json: a line for each name, as devices look
    one up.
    """
    from clawlite.host.builder import editor_schemas

    whole = json.loads(json.dumps(editor_schemas.make("claw")).replace("#/$defs/", ""))
    named = whole["$defs"]
    for one in named.values():
        one.pop("description", None)
    parts = {"kind": {}, "metadata": named["Metadata"], "spec": named["ClawSpec"]}
    root = {
        "type": "object",
        "properties": {**whole["properties"], **parts},
        "required": ["metadata", "spec"],
        "additionalProperties": False,
    }
    wanted = list_references(root)
    for name in wanted:  # it grows
        wanted += [one for one in list_references(named[name]) if one not in wanted]
    schemas = {"root": root, "patterns": list_patterns(), **{name: named[name] for name in wanted}}
    rows = ('"%s": %s' % (name, json.dumps(one)) for name, one in schemas.items())
    return "{\n%s\n}\n" % ",\n".join(rows)


def list_references(schema: dict) -> list:
    return list(dict.fromkeys(re.findall(r'"\$ref": "(\w+)"', json.dumps(schema))))


def list_patterns() -> dict:
    """Return {pattern: (what is expected, its automaton in Base64)}."""
    from clawlite.host.models import common
    from clawlite.host.schema.automata import compile_pattern

    found = {}
    for one in vars(common).values():
        meta = getattr(one, "__metadata__", [None])[0]
        if meta and meta.pattern:
            pattern = meta.pattern.replace("\\Z", "$")
            table = b2a_base64(compile_pattern(pattern), newline=False).decode()
            found[pattern] = meta.extra["expected"], table
    return found


BLOCKS = {
    "tools": list_tools,
    "results": list_results,
    "methods": list_session_methods,
    "rule methods": list_rule_methods,
    "watch methods": list_watch_methods,
    "record methods": list_record_methods,
    "errors": list_errors,
    "metrics": list_metrics,
    "boards": list_boards,
    "rooms of protocols": lambda: list_rooms("protocols"),
    "rooms of linux": lambda: list_rooms("linux"),
    "rooms of host": lambda: list_rooms("host"),
    "decisions": list_decisions,
}
PAGES = {
    "settings": (
        "Settings of clawlite.toml",
        "What each does: [settings](../settings.md).",
        list_settings,
    ),
    "events": ("Events of the log", "`clawlite logs -f` shows them.", list_events),
    "limits": ("Limits", "The bounds of the sources.", list_limits),
}


def write_udev_rules() -> str:
    """Return rules that give the serial ports of all boards to the person at the seat and to the
    group dialout.
    """
    from clawlite.host.boards import boards

    lines = [
        "# The serial ports of boards, made from boards/*.toml.  Copy it to "
        "/etc/udev/rules.d, then: sudo udevadm control --reload && sudo udevadm trigger",
        "# ModemManager keeps its hands off them: it would talk to a board that has just "
        "been plugged in.",
    ]
    for usb in sorted({usb.lower() for profile in boards.load_all() for usb in profile.usb or ()}):
        vendor, product = usb.split(":")
        lines.append(
            'SUBSYSTEM=="tty", ATTRS{idVendor}=="%s", ATTRS{idProduct}=="%s", '
            'GROUP="dialout", MODE="0660", TAG+="uaccess", '
            'ENV{ID_MM_DEVICE_IGNORE}="1"' % (vendor, product)
        )
    return "\n".join(lines) + "\n"


def make_page(title: str, about: str, rows) -> str:
    return "# %s\n\n<!-- written by make reference -->\n\n%s\n\n%s\n" % (title, about, rows())


def list_changes() -> dict:
    """Return {path: text} of the pages that are not current."""
    wanted = {DOCS / "reference" / (name + ".md"): make_page(*PAGES[name]) for name in PAGES}
    for path in sorted(DOCS.glob("*.md")) + [DOCS / "adr/README.md"]:
        text = path.read_text("utf-8")
        wanted[path] = BLOCK.sub(lambda m: m[1] + BLOCKS[m[2]]() + m[4], text)
    wanted.update({path: draw() for path, draw in diagrams.PICTURES.items()})
    wanted[ROOT / "clawlite/linux/runtime/manifest_schemas.json"] = write_schemas()
    wanted[ROOT / "firmware-host/raspberrypi/70-clawlite.rules"] = write_udev_rules()
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text("utf-8") != text
    }


def main(words: list) -> int:
    changes = list_changes()
    for path, text in changes.items():
        print(path.relative_to(ROOT))
        if "--check" not in words:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if changes and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
