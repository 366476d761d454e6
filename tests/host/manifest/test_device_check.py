"""A device refuses a manifest where the types of the compiler's models do, and nowhere else."""

import copy
import re

import pytest
from msgspec import inspect

from clawlite.core.base.errors import ImageError
from clawlite.host.base.kinds import KINDS
from clawlite.host.manifest.features import MODELS
from clawlite.host.models import walk
from clawlite.linux.runtime.manifest_check import check

EXAMPLES = ("a", "1.0.0", "0.3.0", "30d", "https://a.example/v1")
OTHERS = (None, True, 0, -1, 5, 5.0, 0.5, "", "nope", [], ["nope", 5], {}, {"nope": 5})
# what the compiler says of more than a type; it is left to the compiler
RULES = re.compile(r"this field is for mode|stdio:///PATH")


def make_example(kind):
    """Return a value of a msgspec type, with all its fields."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        return make_example(kind.types[0])
    if isinstance(kind, inspect.StructType):
        return {field.name: make_example(field.type) for field in kind.fields}
    if isinstance(kind, inspect.ListType):
        return [make_example(kind.item_type)]
    if isinstance(kind, inspect.DictType):
        return {"a": make_example(kind.value_type)}
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, inspect.StrType):
        return [one for one in EXAMPLES if re.search(kind.pattern or "", one)][0]
    return True if isinstance(kind, (inspect.BoolType, inspect.AnyType)) else kind.ge or 1


def list_changes(value):
    """Yield what becomes of *value* when one thing in it is another one."""
    if isinstance(value, dict):
        yield {**value, "nope": 1}
    keys = range(len(value)) if isinstance(value, list) else value
    for key in keys if isinstance(value, (list, dict)) else ():
        less = copy.copy(value)
        del less[key]
        yield less
        for one in (*OTHERS, *list_changes(value[key])):
            other = copy.copy(value)
            other[key] = one
            yield other


def list_problems(value: dict, spec) -> set:
    """Return {(path, what is said)} of the compiler."""
    found = set()
    walk.convert(value, spec, lambda path, *said, **more: found.add((path, str(said))))
    return found


def is_refused(slot: str, value: dict) -> bool:
    """Return whether a device refuses a manifest with *value* inline."""
    entry = {"inline": value}
    is_list = slot in ("providers", "channels", "tools", "skills", "policies", "world_models")
    spec = {"identity": "i.yaml", "providers": ["p.yaml"], slot: [entry] if is_list else entry}
    try:
        check({"kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    except ImageError:
        return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_refuses_what_the_types_of_a_primitive_refuse(kind):
    (slot, _), spec = KINDS[kind], MODELS[kind]
    whole = make_example(inspect.type_info(spec))
    known, answers = list_problems(whole, spec), {is_refused(slot, whole)}
    assert answers == {False}
    for changed in list_changes(whole):
        said = [one for one in list_problems(changed, spec) - known if not RULES.search(one[1])]
        answers.add(is_refused(slot, changed))
        assert is_refused(slot, changed) == bool(said), (changed, said)
    assert answers == {False, True}
