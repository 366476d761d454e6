"""What is asked of a bus stands in groups (bus_protocol.py), and each bus has all of its groups."""

import ast
import inspect
from pathlib import Path

import pytest

from clawlite.linux.swarm import bus_protocol
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.bus_protocol import CommandBus, MemberBus, ShareableBus, TaskBus
from clawlite.linux.swarm.replicated_bus import ReplicatedBus
from clawlite.linux.swarm.shared_memory import MemoryBus
from clawlite.linux.swarm_commands.in_process_socket import SocketBus
from clawlite.linux.swarm_commands.shared_bus import End

MOST = 7  # methods of a group
LINUX = Path(bus_protocol.__file__).parents[1]
PAIRS = [
    (made, of)
    for made, kinds in (
        (Bus, (MemberBus, CommandBus, TaskBus, ShareableBus)),
        (MemoryBus, (MemberBus, TaskBus)),
        (ReplicatedBus, (MemberBus, CommandBus, TaskBus, ShareableBus)),
        (End, (MemberBus,)),
        (SocketBus, (CommandBus,)),
    )
    for of in kinds
]


def list_groups() -> list:
    return [
        one
        for one in vars(bus_protocol).values()
        if inspect.isclass(one) and one.__module__ == bus_protocol.__name__
    ]


def list_methods(group) -> dict:
    """Return {name: function} of the methods that *group* itself or what it is made of names."""
    return {
        name: value
        for one in group.__mro__
        if one.__module__ == bus_protocol.__name__
        for name, value in vars(one).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


@pytest.mark.parametrize("group", list_groups(), ids=lambda group: group.__name__)
def test_a_group_has_at_most_seven_methods(group):
    own = [name for name, value in vars(group).items() if inspect.isfunction(value)]
    own = [name for name in own if not name.startswith("_")]
    assert len(own) <= MOST, own


@pytest.mark.parametrize(("made", "of"), PAIRS, ids=lambda one: one.__name__)
def test_a_bus_has_what_is_asked_of_it(made, of):
    for name, asked in list_methods(of).items():
        method = inspect.signature(getattr(made, name))
        wanted = inspect.signature(asked).parameters.values()
        method.bind(*wanted)  # it takes as many values


@pytest.mark.parametrize("room", ["swarm", "swarm_commands"])
def test_nothing_is_passed_on_by_name(room):
    for path in (LINUX / room).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.name not in ("__getattr__", "__getattribute__"), path
