"""JSON values to what a function of tools.py says it takes, and back: members of an Enum, instances
of a dataclass (host/schema/own_types.py has their schemas).

Loaded only for a tools.py that defines classes.
"""

import functools
import inspect


def adapt(space: dict) -> dict:
    """Return *space* with functions in the place of those that name such a type (or return one)."""
    if not any(_is_own(one) for one in space.values()):
        return space
    made = dict(space)
    for name, function in space.items():
        if inspect.isfunction(function) and not name.startswith("_"):
            made[name] = _adapt(function, space)
    return made


def _is_own(one) -> bool:
    return isinstance(one, type) and (
        hasattr(one, "__members__") or hasattr(one, "__dataclass_fields__")
    )


def _adapt(function, space: dict):
    hints = _hints(function, space)

    @functools.wraps(function)
    def call(**arguments):
        for name in arguments:
            if name in hints:
                arguments[name] = _convert(arguments[name], hints[name], space)
        result = function(**arguments)
        return _finish(result) if inspect.isgenerator(result) else _plain(result)

    return call


def _finish(generator):
    result = yield from generator
    return _plain(result)


def _hints(one, space: dict) -> dict:
    """Return {name: type} of the annotations of *one*; a text among them is looked up."""
    found = {}
    for name, hint in getattr(one, "__annotations__", {}).items():
        found[name] = eval(hint, space) if isinstance(hint, str) else hint
    return found


def _convert(value, hint, space: dict):
    """Return *value*, which fits the schema of *hint*, as that type."""
    if isinstance(hint, str):
        hint = eval(hint, space)
    if isinstance(hint, type) and _is_own(hint):
        if value is None or isinstance(value, hint):
            return value
        if hasattr(hint, "__members__"):
            return hint(value)
        hints = _hints(hint, space)
        return hint(**{name: _convert(part, hints[name], space) for name, part in value.items()})
    inner: tuple = getattr(hint, "__args__", ())
    if isinstance(value, list) and len(inner) == 1:
        return [_convert(part, inner[0], space) for part in value]
    if isinstance(value, dict) and len(inner) == 2 and inner[0] is str:
        return {name: _convert(part, inner[1], space) for name, part in value.items()}
    for part in inner:  # Optional, a union, Annotated; not the values of a Literal
        if hasattr(part, "__forward_arg__"):
            part = eval(part.__forward_arg__, space)
        if part is not type(None) and (isinstance(part, type) or hasattr(part, "__args__")):
            return _convert(value, part, space)
    return value


def _plain(value):
    """Return *value* with JSON values in the place of members and instances."""
    if hasattr(type(value), "__members__"):
        return value.value
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value
