"""tools.py beside claw.yaml: every public function in it is a tool.  Read with ``ast``, never
imported.

1. A tool is a top-level ``def`` without a leading underscore.  Its docstring is the description,
   its annotations the schema.
2. The file runs on MicroPython too, so what is a SyntaxError there is refused here.
3. ``board`` without an annotation is given by the runtime and no argument of the tool.
"""

import ast
import dataclasses
import re
import warnings

from clawlite.host.base.document import LinePlace, decode
from clawlite.host.base.problems import ManifestErrors, Problems
from clawlite.host.schema.annotations import Unsupported, annotation_schema, default_value, name_of
from clawlite.host.schema.own_types import OwnTypes, read_types

FILE = "tools.py"
MAX_TOOLS = 256
_NOT_ON_BOARDS = (
    (
        ast.AsyncFunctionDef,
        "async def",
        "write a plain def; a tool that waits is a generator that yields between its steps",
    ),
    (ast.Match, "match", "use if and elif"),
    (ast.TryStar, "except*", "use except"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PARAMETER = re.compile(r"([A-Za-z_]\w*)[ \t]*:[ \t]+(\S.*)")


@dataclasses.dataclass
class Function:
    """A function of tools.py.

    name          of the tool: water-plants; function: water_plants
    line          of its def
    description   first paragraph of the docstring
    schema        JSON Schema of its arguments, properties in the order of the parameters
    is_generator  it has a yield, so that a timeout can end it between steps
    has_board     its parameter ``board`` is given by the runtime
    fields        set of names of the fields of its result: empty when it is no dict, None when its
                  text does not tell
    """

    name: str
    function: str
    line: int
    description: str
    schema: dict
    is_generator: bool
    has_board: bool
    fields: set | None = None


def read(source: bytes, file: str, problems: Problems) -> tuple:
    """Return ([Function] of the text of tools.py, in file order, names of those left out); mistakes
    go to *problems*.

    *file* is the name for messages.  Functions with a mistake are left out: their tools are not
    missing.  Of a text that is no Python nothing is known: the names are None.
    """
    tree = parse(source, file, problems)
    if tree is None:
        return [], None
    check_boards(tree, file, problems)
    types = read_types(tree)
    functions, broken, seen = [], set(), {}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if node.name in seen:
            problems.add(
                LinePlace(file, node.lineno),
                (node.name,),
                f"this name is already defined on line {seen[node.name]}",
                hint="rename one of them",
            )
            continue
        seen[node.name] = node.lineno
        function = _Reader(node, file, problems, types).function()
        if function is None:
            broken.add(node.name.replace("_", "-"))
        else:
            functions.append(function)
    if len(functions) > MAX_TOOLS:
        problems.add(
            LinePlace(file),
            (),
            f"{len(functions)} public functions; at most {MAX_TOOLS} can be tools",
            hint="begin the names of helpers with an underscore",
        )
    return functions, broken


def check_boards(tree: ast.Module, file: str, problems: Problems) -> None:
    """Add a problem for each form that is a SyntaxError in MicroPython."""
    for node in ast.walk(tree):
        for kind, word, hint in _NOT_ON_BOARDS:
            if isinstance(node, kind):
                problems.add(
                    LinePlace(file, node.lineno),
                    (),
                    f"{word} does not run on a MicroPython board",
                    hint=hint,
                )
        if isinstance(node, ast.arguments) and node.posonlyargs:
            problems.add(
                LinePlace(file, node.posonlyargs[0].lineno),
                (),
                'positional-only parameters ("/") do not run on a MicroPython board',
                hint='remove the "/"',
            )


def parse(source: bytes, file: str, problems: Problems):
    """Return the syntax tree of *source*, None for what is no Python, which goes to *problems*."""
    try:
        text = decode(source, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, feature_version=(3, 11))
            # it may parse and be no program: a stray break
            compile(tree, file, "exec", dont_inherit=True)
            return tree
    except ManifestErrors as e:
        problems.extend(e)
    except SyntaxError as e:
        problems.add(
            LinePlace(file, e.lineno or 0), (), f"not Python: {e.msg}", hint="mend that line"
        )
    except ValueError as e:  # a NUL, before Python 3.11.4
        problems.add(LinePlace(file), (), f"not Python: {e}", hint="mend that line")
    except (RecursionError, MemoryError) as e:
        problems.add(
            LinePlace(file), (), f"not Python: {e or 'too deeply nested'}", hint="nest it less"
        )
    return None


class _Reader:
    """One def to one Function."""

    def __init__(self, node: ast.FunctionDef, file: str, problems: Problems, types: OwnTypes):
        self.node, self.file, self.problems, self.types = node, file, problems, types
        self.failed = False

    def _problem(self, line: int, message: str, hint: str = "", parameter: str = "") -> None:
        self.failed = True
        path = (self.node.name, parameter) if parameter else (self.node.name,)
        self.problems.add(LinePlace(self.file, line), path, message, hint=hint)

    def function(self):
        node = self.node
        name = node.name.replace("_", "-")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}", name):
            self._problem(
                node.lineno,
                "a tool's name has 1 to 63 letters, digits and underscores",
                "rename the function",
            )
        doc = ast.get_docstring(node) or ""
        told = [doc] + [
            part.value
            for part in ast.walk(node.args)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        lone = _SURROGATE.search("".join(told))
        if lone:
            self._problem(
                node.lineno,
                f"its docstring or a parameter has the half of a "
                f"character, U+{ord(lone[0]):04X}, which no text holds",
                "write the whole character, or \\U and its eight digits",
            )
            return None
        paragraphs = doc.split("\n\n", 1)
        description = " ".join(paragraphs[0].split())
        if not description:
            self._problem(
                node.lineno,
                "a public function is a tool and needs a docstring: the model reads it",
                "describe it, or begin its name with an underscore",
            )
        schema, has_board = self._schema(
            _parameter_docs(paragraphs[1] if len(paragraphs) > 1 else "")
        )
        if self.failed:
            return None
        fields = _result_fields(node, self.types.schemas)
        is_generator = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in _own_nodes(node))
        return Function(
            name, node.name, node.lineno, description, schema, is_generator, has_board, fields
        )

    def _schema(self, docs: dict) -> tuple:
        arguments = self.node.args
        for extra, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
            if extra:
                self._problem(
                    extra.lineno,
                    f"{stars}{extra.arg}: a tool's parameters are known by name",
                    "name each parameter",
                )
        if arguments.posonlyargs:
            self.failed = True  # the whole-file check has said so
        missing = [None] * (len(arguments.args) - len(arguments.defaults))
        pairs = list(zip(arguments.args, missing + arguments.defaults)) + list(
            zip(arguments.kwonlyargs, arguments.kw_defaults)
        )
        properties, required, has_board = {}, [], False
        for parameter, default in pairs:
            if parameter.arg == "board" and parameter.annotation is None:
                has_board = True
                continue
            properties[parameter.arg] = self._property(
                parameter, default, docs.get(parameter.arg, "")
            )
            if default is None:
                required.append(parameter.arg)
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            schema["required"] = required
        return schema, has_board

    def _property(self, parameter: ast.arg, default, doc: str) -> dict:
        name = parameter.arg
        if parameter.annotation is None:
            self._problem(
                parameter.lineno,
                "this parameter has no annotation",
                f"write its type: {name}: int",
                name,
            )
            return {}
        named = {name_of(part) for part in ast.walk(parameter.annotation)}
        for word in sorted(named.intersection(self.types.wrong)):
            line, message, hint = self.types.wrong[word]
            self._problem(line, message, hint, name)
            return {}
        try:
            found = annotation_schema(parameter.annotation, self.types.schemas)
            if doc:
                found["description"] = doc
            if default is not None:
                found["default"] = self._default(default, found)
            return found
        except Unsupported as e:
            self._problem(parameter.lineno, e.args[0], e.args[1], name)
            return {}

    def _default(self, node: ast.expr, schema: dict):
        """Return the JSON value of a default: a literal, or a member of an Enum of this file."""
        if isinstance(node, ast.Attribute):
            member = self.types.members.get((name_of(node.value), node.attr))
            if member is not None and member in schema.get("enum", ()):
                return member
        return default_value(node, schema)


_PLAIN = ("str", "int", "float", "bool", "list", "List", "None")


def _result_fields(node: ast.FunctionDef, schemas: dict) -> set | None:
    """Return the names of the fields that the result of *node* can have (``Function.fields``)."""
    annotation = node.returns
    if isinstance(annotation, ast.Constant):  # None, or a type in quotation marks
        word = str(annotation.value)
    else:
        word = name_of(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
    if word in schemas:
        return set(schemas[word].get("properties", ()))
    if word in _PLAIN:
        return set()
    found: set = set()
    for part in _own_nodes(node):
        if not isinstance(part, ast.Return) or part.value is None:
            continue
        if not isinstance(part.value, ast.Dict):
            return None
        for key in part.value.keys:
            if not isinstance(key, ast.Constant):
                return None
            found.add(str(key.value))
    return found


def _parameter_docs(text: str) -> dict:
    """Return {name: text} of the ``name: text`` lines; deeper lines below one go on with it."""
    docs, name, indent = {}, "", 0
    for line in text.splitlines():
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        found = _PARAMETER.fullmatch(stripped)
        if name and stripped and depth > indent:
            docs[name] += " " + stripped
        elif found:
            name, indent = found.group(1), depth
            docs[name] = found.group(2)
        else:
            name = ""
    return docs


def _own_nodes(node: ast.FunctionDef):
    """Yield what is in the function itself, and not in a function inside it."""
    todo: list = list(node.body)
    while todo:
        item = todo.pop()
        yield item
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(item)
