"""A check that a model adds to its types (``more``) gets data of any shape: the types are checked
beside it, so it must not fall over what does not fit them.
"""

import importlib
import itertools
import pkgutil

import pytest
from msgspec import structs

import clawlite.host
from clawlite.host.models.common import Strict

VALUES = (None, True, 0, -1, 1.5, "", "x", [], [None], [[]], ["x", {}], {}, {"x": None}, {"x": []})


def models() -> list:
    for module in pkgutil.walk_packages(clawlite.host.__path__, "clawlite.host."):
        if ".cli" not in module.name and ".bench" not in module.name:
            importlib.import_module(module.name)

    def below(one) -> set:
        return {one}.union(*map(below, one.__subclasses__()))

    found = [one for one in below(Strict) if "check_rules" in vars(one)]
    return sorted(found, key=lambda one: one.__qualname__)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_a_check_takes_any_shape(model):
    names = [field.encode_name for field in structs.fields(model)]
    told = []

    def report(path, *said, **named):
        told.append(path)

    shapes = [{name: value} for name in names for value in VALUES]
    shapes += [dict.fromkeys(names, value) for value in VALUES]
    pairs = itertools.combinations(names, 2)
    shapes += [{a: x, b: y} for a, b in pairs for x in VALUES for y in VALUES]
    for shape in shapes:
        model.check_rules(shape, report)
    assert all(isinstance(path, tuple) for path in told)
