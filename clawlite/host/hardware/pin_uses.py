"""Pins and buses that tools.py names, ``board.write("pump", 1)`` and ``board.i2c("room")``,
compared with clawlite.toml.

1. The file is read with ``ast`` and never run.  Only a name that is a text, or a constant of the
   module that is assigned once, is compared.
2. ``board`` is the parameter of that name of a function, or of one around it, as long as the
   function assigns nothing to it.
3. What is found would be refused on every call (core/image/pins.py, core/buses/busboard.py), so it
   is a problem and no warning.
"""

import ast
import warnings

from clawlite.core.image.pins import FULL
from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems, did_you_mean, enquote, one_of

_MOST = {"output": 1, "pwm": FULL}
# method of ``board`` -> the kind of its bus
_BUSES = {
    "i2c": "i2c",
    "spi": "spi",
    "uart": "uart",
    "onewire": "one-wire",
    "dht": "dht",
    "neopixel": "neopixel",
}
# method of ``board`` -> the field that a PWM pin must have
_WAVES = {"servo": "pulse_us", "tone": "frequency_hz"}


def check(source: bytes, file: str, pins: list, buses: list, problems: Problems) -> None:
    """Add a problem for each use of a pin or a bus in the text of tools.py that *pins*
    ([``pin_settings.Pin``]) and *buses* ([``buses.Bus``]) do not allow.

    *source* must be Python (``signature.read`` has said so otherwise); *file* is its name for
    messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    _Uses(tree, file, {pin.name: pin for pin in pins}, buses, problems).visit(tree)


def find_switched_on(source: bytes, pins: list) -> dict[str, set]:
    """Return {name of a function of tools.py: the pins that it, or a function of the file that it
    calls, switches on by a constant: takes out of its safe state}.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found, calls = {}, {}
    safe = {pin.name: pin.safe or 0 for pin in pins if not pin.pulse_us}
    for name, node in functions.items():
        uses = _Uses(tree, "", {}, [], Problems())
        uses.visit(node)
        found[name] = {
            pin
            for pin, value in uses.written
            if isinstance(value, int) and value != safe.get(pin, 0)
        }
        named = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
        calls[name] = {one.id for one in named if one.id in functions}
    for _ in functions:
        for name, called in calls.items():
            found[name] = found[name].union(*[found[one] for one in called])
    return found


class _Uses(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, file: str, pins: dict, buses: list, problems: Problems):
        self._file, self._pins, self._buses, self._problems = file, pins, buses, problems
        self._has_board = False
        self.written = []  # (name, value) of each write, None for what is no constant
        stored = [
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        ]
        stored += [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
        self._constants = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and stored.count(node.targets[0].id) == 1
        }

    def _visit_function(self, node) -> None:
        outer = self._has_board
        arguments = [*node.args.args, *node.args.kwonlyargs]
        assigned = any(
            isinstance(inner, ast.Name) and inner.id == "board" and isinstance(inner.ctx, ast.Store)
            for inner in ast.walk(node)
        )
        self._has_board = not assigned and (
            outer or any(one.arg == "board" and one.annotation is None for one in arguments)
        )
        self.generic_visit(node)
        self._has_board = outer

    visit_FunctionDef = visit_Lambda = _visit_function

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func
        if not (
            self._has_board
            and isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id == "board"
        ):
            return
        if called.attr in ("read", "write"):
            self._compare(
                node,
                called.attr == "write",
                self._argument(node, 0, "name"),
                self._argument(node, 1, "value"),
            )
        elif called.attr == "button":
            self._compare(node, False, self._argument(node, 0, "pin"), None)
        elif called.attr in _WAVES:
            self._compare_wave(node, called.attr, self._argument(node, 0, "pin"))
        elif called.attr in _BUSES:
            self._compare_bus(node, called.attr, self._argument(node, 0, "name"))

    def _argument(self, call: ast.Call, index: int, keyword: str):
        """Return the constant that *call* is given there, or None."""
        if any(isinstance(one, ast.Starred) for one in call.args):
            return None
        found = (
            call.args[index]
            if index < len(call.args)
            else next((one.value for one in call.keywords if one.arg == keyword), None)
        )
        found = self._constants.get(found.id) if isinstance(found, ast.Name) else found
        return found.value if isinstance(found, ast.Constant) else None

    def _compare_bus(self, node: ast.Call, method: str, name) -> None:
        kind = _BUSES[method]
        able = [bus.name for bus in self._buses if bus.kind == kind]
        if not isinstance(name, str) or name in able:
            return
        others = [bus.kind for bus in self._buses if bus.name == name]
        self._problems.add(
            LinePlace(self._file, node.lineno),
            (),
            f"the bus {enquote(name)} is of kind {enquote(others[0])}"
            if others
            else f"no {kind} bus is called {enquote(name)}",
            enquote(kind) if others else "",
            hint=did_you_mean(name, able)
            or (
                f"clawlite.toml has {one_of(able)}"
                if able
                else f'declare it in clawlite.toml under [[buses]] with kind = "{kind}"'
            ),
        )

    def _compare_wave(self, node: ast.Call, method: str, name) -> None:
        field = _WAVES[method]
        able = [pin.name for pin in self._pins.values() if getattr(pin, field)]
        if not isinstance(name, str) or name in able:
            return
        self._problems.add(
            LinePlace(self._file, node.lineno),
            (),
            f"the pin {enquote(name)} is not declared for a {method}"
            if name in self._pins
            else f"no pin is called {enquote(name)}",
            hint=did_you_mean(name, able)
            or f'give it kind = "pwm" and {field} in clawlite.toml, under [[pins]]',
        )

    def _compare(self, node: ast.Call, writes: bool, name, value) -> None:
        if writes:
            self.written.append((name, value))
        if not isinstance(name, str):
            return
        place, pin = LinePlace(self._file, node.lineno), self._pins.get(name)
        if pin is None:
            able = [one.name for one in self._pins.values() if not writes or one.kind in _MOST]
            self._problems.add(
                place,
                (),
                f"no pin is called {enquote(name)}",
                hint=did_you_mean(name, able)
                or (
                    f"clawlite.toml has {one_of(self._pins)}"
                    if self._pins
                    else "declare it in clawlite.toml under [[pins]]"
                ),
            )
        elif writes and pin.kind not in _MOST:
            self._problems.add(
                place,
                (),
                f"the pin {enquote(name)} is of kind {enquote(pin.kind)} and cannot be written",
                hint='kind = "output" or "pwm" in clawlite.toml can',
            )
        elif writes and isinstance(value, (int, float)) and not 0 <= int(value) <= _MOST[pin.kind]:
            self._problems.add(
                place,
                (),
                f"the pin {enquote(name)} of kind {enquote(pin.kind)}",
                f"0 to {_MOST[pin.kind]}",
                str(value),
            )
