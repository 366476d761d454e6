"""Tool providers of tools.py: objects with a namespace, a list of tools and a call (clawft, "Custom
Tool Providers"; protocols/mcp/tool_provider.py).

    TOOL_PROVIDERS = [Plants()]

1. That tools.py has them is read from its text (``declared``).  What they list is known only when
   the file runs: a build does that, once for each text of tools.py, and pins the answer in
   clawlite.lock.  All else reads the lock.
2. Their tools are functions of tools.py for the rest of the compiler, named NAMESPACE__TOOL.
3. A list that is no good is refused by a build before it is pinned.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from clawlite.core.base.errors import ClawError
from clawlite.core.base.render import canonical
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import NOT_ASKED, enquote, value_text
from clawlite.host.documents import lock
from clawlite.host.documents.primitives import Primitive
from clawlite.host.documents.registries import change_error
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.mcp.injection_check import gives_orders
from clawlite.host.schema import validity
from clawlite.host.systems.processes import KILL, base_variables, signal_all
from clawlite.host.tools.model import ToolSpec
from clawlite.host.tools.signature import FILE, Function
from clawlite.protocols.mcp.mcp_pin import pin_of
from clawlite.protocols.mcp.tool_definitions import HINTS
from clawlite.protocols.mcp.tool_provider import LIST

URI = f"{FILE}#{LIST}"  # of the entry in the lock
MAX_TOOLS = 500  # of all providers
TIMEOUT_S = 30
_PACKAGE = str(Path(__file__).resolve().parents[3])  # the folder of ``clawlite``
_SAID = 2000  # characters of stderr that are shown
_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_WANTED = "letters, digits, hyphens and single underscores between them"


def find_list(source: bytes) -> int:
    """Return the line on which the text of a tools.py declares tool providers; 0: it has none."""
    if LIST.encode() not in source:
        return 0
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == LIST for one in targets):
            return node.lineno
    return 0


def bind(sources: Sources, version, problems) -> tuple[list, bool]:
    """Return ([Primitive] of the Tools that the lock knows of, whether the lock lacks them)."""
    source = sources.files.get(FILE, b"")
    line = find_list(source)
    if not line:
        return [], False
    place = LinePlace(sources.find_path(FILE), line, (LIST,))
    try:
        entry = lock.read(sources).get(URI)
    except Refused as e:
        problems.add(place, (), e.message, hint=e.hint)
        return [], True
    if entry is None or entry.url != _digest(source):
        return [], True
    rows = json.loads(entry.text)
    return [_tool(name, definition, version, place) for name, definition in rows], False


def _tool(namespace: str, definition: dict, version, place) -> Primitive:
    theirs = definition["name"]
    name, pin = f"{namespace}__{theirs}", pin_of(definition).hex()
    schema = definition.get("inputSchema") or {"type": "object"}
    about = definition.get("description") or name
    hints = definition.get("annotations") or {}
    spec = ToolSpec(
        description=about,
        input_schema=schema,
        output_schema=definition.get("outputSchema"),
        annotations={key: value for key, value in hints.items() if key in HINTS} or None,
    )
    function = Function(
        name, f"{namespace}/{theirs}/{pin}", place.line, about, schema, False, False
    )
    uri = f"claw://local/tool/{name}"
    return Primitive("Tool", name, version, {}, {}, spec, uri, "function", place, function)


def refuse(manifest) -> None:
    """Add a problem when the lock does not have what the providers of *manifest* list."""
    source = dict(manifest.sources).get(FILE, b"")
    line = find_list(source)
    if line and manifest.lacks_providers:
        manifest.problems.add(
            LinePlace(os.path.join(os.path.dirname(manifest.file), FILE), line, (LIST,)),
            (),
            f"what these tool providers list {NOT_ASKED}",
            hint="clawlite build runs tools.py here and pins their tools in clawlite.lock",
        )


def pin(manifest, allowed=(), refresh: bool = False) -> list[str]:
    """Ask the tool providers of *manifest* where the lock lacks their list, and pin it; return its
    URI in a list.

    refresh  ask them all the same, and compare
    Raises ``ClawError`` for a tools.py that cannot be asked, a list that is no good, or one that
    has changed; then nothing is written.
    """
    source = dict(manifest.sources).get(FILE, b"")
    sources = Sources(manifest.folder, allowed)
    entries = lock.read(sources)
    old = entries.get(URI)
    if not find_list(source):
        if old is None:  # an image that is kept is made anew once the lock has more
            manifest.facts.extend((*key, found) for key, found in sources.facts.items())
        else:
            del entries[URI]
            lock.write(sources, list(entries.values()))
        return []
    if old is not None and old.url == _digest(source) and not refresh:
        return []
    file = sources.find_path(FILE)
    rows = _check(_run_list(os.path.abspath(file), manifest.settings), file)
    text = json.dumps(rows, ensure_ascii=False, indent=1, sort_keys=True)
    new = lock.Entry(URI, _digest(source), lock.digest(text), text)
    if old is not None and old.url == new.url and old.sha256 != new.sha256:
        raise change_error(
            old,
            new,
            f"look at what has changed; to accept it, remove its entry from {lock.FILE} and "
            "build again",
        )
    if new != old:
        entries[URI] = new
        lock.write(sources, list(entries.values()))
    return [URI]


def _digest(source: bytes) -> str:
    return "sha256:" + lock.digest(source.decode("utf-8", "replace"))


# -- what they say


def _run_list(path: str, settings) -> list:
    """Run the tools.py at *path* in an empty folder, with the variables that its tools will have;
    return the result of ``protocols.mcp.tool_provider.list_tools`` for it.
    """
    names = settings.sandbox.environment if settings.sandbox else None
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        with tempfile.TemporaryDirectory() as home:
            env = {**base_variables(), "LANG": "C.UTF-8"}
            env |= {"HOME": home, "PYTHONPATH": _PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
            env |= {name: os.environ[name] for name in names or () if name in os.environ}
            process = subprocess.Popen(
                [sys.executable, "-m", "clawlite.host.tools.provider_list", path],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                cwd=home,
                env=env,
                start_new_session=True,
            )
            try:
                process.wait(TIMEOUT_S)
                why = "it ended without a list"
            except subprocess.TimeoutExpired:
                why = f"it did not list its tools within {TIMEOUT_S} s"
            finally:
                _end(process)
        out.seek(0)
        data = out.read(lock.MAX_LOCK + 1)
        errors.seek(max(errors.seek(0, os.SEEK_END) - _SAID, 0))
        said = errors.read().decode("utf-8", "replace").strip()
    if len(data) > lock.MAX_LOCK:
        raise _wrong(path, f"it lists more than {lock.MAX_LOCK:,} bytes of tools")
    try:
        found = json.loads(data)
        data.decode().encode("utf-8")
    except (ValueError, RecursionError):
        raise _wrong(path, why + (f", and said:\n{said}" if said else "")) from None
    if "error" in found:
        message, hint = found["error"]
        raise ClawError(f"{path}: {message}", hint)
    return found["listed"]


def _end(process: subprocess.Popen) -> None:
    """End the process and all that it started."""
    signal_all(process.pid, KILL)
    process.wait()


def _wrong(path: str, message: str, hint: str = "mend it: a build asks it for its tools"):
    return ClawError(f"{path}: {message}", hint)


def _check(listed: list, path: str) -> list:
    """Return [[namespace, definition], ...], in order.  Raises ``ClawError``."""
    rows: list = []
    for index, (namespace, definitions) in enumerate(listed):
        where = f"{LIST}[{index}]"
        _name(namespace, f"{where}.namespace", path)
        if namespace in [one for one, _ in listed[:index]]:
            raise _wrong(
                path,
                f"{where}.namespace: another provider has the name {enquote(namespace)}",
                "give each provider a namespace of its own",
            )
        if not isinstance(definitions, list):
            raise _wrong(
                path, f"{where}.list_tools(): expected a list, found {value_text(definitions)}"
            )
        seen: set = set()
        for number, definition in enumerate(definitions):
            what = f"the tool {number} of {namespace}"
            _definition(definition, what, path)
            name = definition["name"]
            if name in seen:
                raise _wrong(
                    path,
                    f"{namespace}.list_tools() names {enquote(name)} twice",
                    "names are unique within a provider",
                )
            seen.add(name)
            if len(namespace) + 2 + len(name) > 64:
                full = f"{namespace}__{name}"
                raise _wrong(
                    path, f"{full} has {len(full)} characters, and models can call names of 64"
                )
            rows.append([namespace, definition])
    if len(rows) > MAX_TOOLS:
        raise _wrong(path, f"its tool providers list {len(rows)} tools, at most {MAX_TOOLS}")
    return rows


def _name(name, where: str, path: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        said = enquote(name[:100]) if isinstance(name, str) else value_text(name)
        raise _wrong(
            path,
            f"{where}: expected {_WANTED}, found {said}",
            "__ stands between the namespace and the tool alone",
        )


def _definition(definition, what: str, path: str) -> None:
    if not isinstance(definition, dict):
        raise _wrong(path, f"{what}: expected a dict with name, description, inputSchema")
    _name(definition.get("name"), f"{what}, name", path)
    what = f"{what}, {definition['name']}"
    for field, kind in (
        ("description", str),
        ("inputSchema", dict),
        ("outputSchema", dict),
        ("annotations", dict),
    ):
        value = definition.get(field)
        if value is not None and not isinstance(value, kind):
            raise _wrong(
                path, f"{what}, {field}: expected a {kind.__name__}, found {value_text(value)}"
            )
    if not definition.get("description"):
        raise _wrong(path, f"{what}: has no description", "the model reads it: say what it does")
    for field, check in (("inputSchema", validity.check_arguments), ("outputSchema", _any)):
        if definition.get(field) is not None:
            found: list = []
            check(definition[field], lambda *args, **named: found.append(_describe(*args, **named)))
            if found:
                raise _wrong(path, f"{what}, {field}{found[0]}")
    if any(gives_orders(canonical(definition.get(f))) for f in ("description", "inputSchema")):
        raise _wrong(
            path,
            f"{what}: what it says of itself gives orders to a model",
            "describe what it does, and nothing else",
        )


def _any(schema: dict, report) -> None:
    validity.check(schema, report)


def _describe(path: tuple, message: str, expected="", found="", hint="", key=False) -> str:
    """Return what a check of schemas reports (schema/validity.py), as the end of a sentence."""
    at = "".join(f".{one}" for one in path)
    parts = [message, expected and f"expected {expected}", found and f"found {found}"]
    return f"{at}: " + ", ".join(part for part in parts if part)
