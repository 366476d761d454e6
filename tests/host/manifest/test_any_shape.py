"""A check that a model adds to its types (``more``) gets data of any shape: the types are checked
beside it, so it must not fall over what does not fit them.
"""

import importlib
import itertools
import pkgutil

import pytest
from msgspec import structs

import clawlite.host
from clawlite.host.hardware import devices
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


@pytest.mark.parametrize("table, model", [("begin", devices.Begin), ("field", devices.Field)])
def test_the_check_of_a_devices_file_takes_any_shape_in_its_tables(table, model):
    names = [field.encode_name for field in structs.fields(model)]
    deeper = ([[1, ["x"]]], [[1, [[]]]], [[[], {}]], [1, 2, [3]], [[], {}, ["x"]], [1, "x", None])
    told = []

    def report(path, *said, **named):
        told.append(path)

    for name, value in itertools.product(names, VALUES + deeper):
        one = {"at": 0, "size": 1, "terms": [], name: value}
        known = {"size": 8, "quantities": {"x": {}}}
        devices.DeviceFile.check_rules({**known, table: [one]}, report)
    for value in VALUES + deeper:
        devices.DeviceFile.check_rules({"memory": {"0x00": value}, "scale": [value, 1]}, report)
    assert {path[0] for path in told} == {table, "memory", "scale"}
