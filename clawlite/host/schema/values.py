"""Values within a JSON Schema: what a keyword demands of its own value, as numbers and names
that survive CBOR.
"""

from decimal import Decimal

from clawlite.core.base.errors import ClawError
from clawlite.core.base.jsonvalue import show

_VALUE_DEPTH = 8  # arrays and objects within one value of `enum` or `const`
_PLACES = 15  # decimal places of `multipleOf`: ten to this power is exact in a double


class SchemaError(ClawError):
    """A schema that cannot be compiled.

    path     list of keys and positions from the schema's root
    message  what was found and expected, without the path
    """

    def __init__(self, path: list, message: str):
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return "%s: %s" % ("".join("/%s" % key for key in self.path) or "/", self.message)


def height(node) -> int:
    """Return how many lists and maps nest in *node*."""
    if type(node) is list:
        return 1 + max(map(height, node), default=0)
    if type(node) is dict:
        return 1 + max(map(height, node.values()), default=0)
    return 0


def number(value, path: list):
    """Return a number as it is stored: an int where it is one, a finite float otherwise."""
    if type(value) is int:
        if not -1 << 63 <= value < 1 << 63:
            raise SchemaError(path, "expected a number within 64 bits")
        return value
    if type(value) is not float:
        raise SchemaError(path, "expected a number, got %s" % show(value))
    if value - value != 0:
        raise SchemaError(path, "expected a finite number, got %r" % value)
    return int(value) if value == int(value) and abs(value) < 1 << 53 else value


def count(value, path: list) -> int:
    """Return a size; ``2.0`` is one, as in the meta-schema."""
    found = number(value, path)
    if type(found) is not int or not 0 <= found < 1 << 31:
        raise SchemaError(path, "expected a whole number, 0 .. 2147483647, got %s" % show(value))
    return found


def step(value, path: list):
    """Return the argument of MULTIPLE: an integer, or [integer, decimal places]."""
    found = number(value, path)
    if not found > 0:
        raise SchemaError(path, "expected a number above 0, got %s" % show(value))
    if type(found) is int:
        return found
    _, digits, exponent = Decimal(repr(found)).as_tuple()
    mantissa = int("".join(map(str, digits)))
    if not -_PLACES <= exponent < 0:
        raise SchemaError(
            path, "expected at most %d decimal places and 15 digits, got %r" % (_PLACES, value)
        )
    return [mantissa, -exponent]


def strings(value, path: list) -> list:
    """Return a list of different names."""
    if type(value) is not list:
        raise SchemaError(path, "expected an array of names, got %s" % show(value))
    for at, name in enumerate(value):
        if type(name) is not str:
            raise SchemaError(path + [at], "expected text, got %s" % show(name))
        if name in value[:at]:
            raise SchemaError(path + [at], "%s is there twice" % show(name))
    return value


def constant(value, path: list, depth: int = 0):
    """Return a value of `enum` or `const` as it is stored."""
    if depth > _VALUE_DEPTH:
        raise SchemaError(path, "expected a value that nests at most %d deep" % _VALUE_DEPTH)
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is list:
        return [constant(item, path + [at], depth + 1) for at, item in enumerate(value)]
    if type(value) is dict:
        for name in value:
            if type(name) is not str:
                raise SchemaError(path, "expected text as a name, got %s" % show(name))
        return {name: constant(item, path + [name], depth + 1) for name, item in value.items()}
    return number(value, path)
