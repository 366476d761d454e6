"""What is known of a tool before a rule calls it: the fields of its result, and which arguments its
schema refuses.
"""

import dataclasses

from clawlite.core.formats.schema import check
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.schema.automata import PatternError, compile_pattern
from clawlite.host.schema.compile import compile_schema
from clawlite.host.schema.values import SchemaError


@dataclasses.dataclass
class Callable:
    """A tool that rules may call.

    schema  JSON Schema of its arguments
    fields  set of names of the fields of its result: empty when it is no object, None when they
            are not known
    """

    schema: dict
    fields: set | None

    def refusals(self, arguments: dict) -> list[tuple]:
        """Return [(name, message, hint)] of what the schema refuses in *arguments*; the name is ""
        for one that is missing.

        arguments  {name: a constant, or a list for a value that is not known yet}
        """
        if not _is_schema(self.schema):
            return []
        known, found = self.schema.get("properties", {}), []
        meant = [did_you_mean(name, known) for name in arguments if name not in known]
        for name in self.schema.get("required", ()):
            if name not in arguments and f"did you mean {enquote(name)}?" not in meant:
                found.append(
                    ("", f"the tool needs the argument {enquote(name)}", f"add {name} = ...")
                )
        for name, value in arguments.items():
            if name in known:
                wrong = None if isinstance(value, list) else _violation(known[name], value)
                if wrong:
                    found.append((name, f"the tool refuses it: {wrong}", ""))
            elif self._is_closed() and name not in self.schema.get("required", ()):
                hint = did_you_mean(name, known) or "it has " + (", ".join(known) or "none")
                found.append((name, "the tool has no such argument", hint))
        return found

    def _is_closed(self) -> bool:
        """Return whether there are no other arguments than the properties."""
        schema = self.schema
        return schema.get("additionalProperties") is False and "patternProperties" not in schema


class _Pool:
    def __init__(self):
        self.tables = []

    def add(self, pattern: str, dollar: str = "end") -> int:
        self.tables.append(compile_pattern(pattern, dollar))
        return len(self.tables) - 1


def _is_schema(schema) -> bool:
    """Return whether *schema* can be compiled: if not, the build says what is wrong with it."""
    try:
        compile_schema(schema, _Pool())
    except (SchemaError, PatternError):
        return False
    return True


def _violation(schema, value) -> str:
    """Return why *schema*, a part of a whole one, refuses *value*, "" when it does not."""
    pool = _Pool()
    try:
        program = compile_schema(schema, pool)
    except (SchemaError, PatternError):  # a $ref to another part
        return ""
    return check(program, value, pool.tables.__getitem__, "value") or ""


def find_called(name, tools) -> str | None:
    """Return the one of *tools*, names, that *name* means, also with _ for -; None for none."""
    if not isinstance(name, str):
        return None
    return next((one for one in (name, name.replace("_", "-")) if one in tools), None)


def find_callables(tools: list) -> dict:
    """Return {name that a rule calls it by: ``Callable``} of *tools* ([(name, Primitive)])."""
    return {
        name: Callable(tool.spec.input_schema or {"type": "object"}, _fields(tool))
        for name, tool in tools
    }


def _fields(tool) -> set | None:
    schema = tool.spec.output_schema
    if schema:
        kinds = schema.get("type")
        if isinstance(kinds, str) and kinds != "object":
            return set()
        is_open = schema.get("additionalProperties") not in (None, False)
        return set(schema["properties"]) if "properties" in schema and not is_open else None
    if tool.function:
        return tool.function.fields
    return set() if tool.origin == "registry" else None  # the others of the registry return text
