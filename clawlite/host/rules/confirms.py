"""The section of an image with what must follow a call: ``[confirm]`` of clawlite.toml, by the name
of a tool, and ``confirm`` of a pin.

    [confirm]
    water = { reading = "flow", above = 5, within = "3s", pins = ["pump"] }

    [[pins]]
    name = "pump"
    confirm = { reading = "flow", above = 5, within = "3s" }        # pins: the pin itself

A pin's holds for ``digital-write`` and ``pwm-write`` that switch it on, and for each function of
tools.py that does so by a constant (host/hardware/pin_uses.py).
"""

from clawlite.core.rules import table
from clawlite.core.teach.row_text import parse_duration, show_duration
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.hardware import pin_uses
from clawlite.host.providers.rule_calls import find_called
from clawlite.host.tools import signature

_DRIVEN = ("output", "pwm")


def section(manifest, tools: list, readings: list, timeouts: dict) -> list | None:
    """Return the section, None when nothing is declared.

    tools       [(name that a rule calls it by, ``Primitive``), ...]
    readings    of the section of readings and rules
    timeouts    {name: ms after which the tool is ended, 0 for never}
    """
    on = find_outputs(manifest)
    compiler = _Compiler(manifest, dict(tools), readings, timeouts)
    for name, wanted in manifest.settings.confirm.items():
        compiler.add_tool(name, wanted)
    for index, pin in enumerate(manifest.settings.pins):
        if pin.confirm:
            compiler.add_pin(index, pin, on)
    level = manifest.sandbox.spec.level if manifest.sandbox else None
    for path, tool in find_one_piece(manifest) if level == "none" else ():
        manifest.notes.append(
            (
                manifest.settings.where(*path),
                f"{tool.name} runs in one piece: the reading is looked at after its end; let "
                "its function yield, or run it at sandbox level process",
            )
        )
    return compiler.rows or None


def find_one_piece(manifest) -> list:
    """Return [(path in clawlite.toml, tool), ...] of the functions of tools.py that must be
    followed by something, and run in one piece.
    """
    settings, on = manifest.settings, find_outputs(manifest)
    found: list[tuple] = []
    for tool in manifest.tools:
        if not tool.function or tool.function.is_generator:
            continue
        named = [one for one in settings.confirm if find_called(one, [tool.name])]
        found += [(("confirm", one), tool) for one in named]
        found += [
            (("pins", index, "confirm"), tool)
            for index, pin in enumerate(settings.pins)
            if pin.confirm and not named and pin.name in on.get(tool.function.function, ())
        ]
    return found


def find_outputs(manifest) -> dict[str, set]:
    """Return {name of a function of tools.py: the pins that it switches on}."""
    source = dict(manifest.sources).get(signature.FILE)
    return pin_uses.find_switched_on(source, manifest.settings.pins) if source else {}


class _Compiler:
    def __init__(self, manifest, tools: dict, readings: list, timeouts: dict):
        self.manifest, self.tools, self.timeouts = manifest, tools, timeouts
        self.readings = {reading[table.NAME]: reading for reading in readings}
        self.rows = []

    def report(self, path: tuple, message: str, hint: str = "", key: bool = False):
        manifest = self.manifest
        manifest.problems.add(manifest.settings.place, path, message, hint=hint, key=key)

    def add_tool(self, written: str, wanted):
        path, name = ("confirm", written), find_called(written, self.tools)
        if name is None:
            self.report(
                path,
                f"unknown tool {enquote(written)}",
                did_you_mean(written, self.tools)
                or "tools here: " + (", ".join(self.tools) or "none"),
                True,
            )
            return
        row = self.row(path, name, None, wanted, wanted.pins or [])
        tool = self.tools[name]
        if tool.kind == "Skill" or tool.spec.composite:
            self.report(path, f"{name} has no effect of its own", "name a tool that it calls", True)
        elif tool.spec.retry:
            self.report(
                path,
                f"{name} is tried again when it fails (retry), and an effect that does not come is "
                "not tried again",
                f"remove retry from {name}",
                True,
            )
        self.check_time(path, name, tool, row)
        self.rows.append(row)

    def add_pin(self, index: int, pin, on: dict):
        path = ("pins", index, "confirm")
        if pin.kind not in _DRIVEN:
            self.report(
                path,
                f"nothing sets {pin.name}, a pin of kind {pin.kind}",
                "remove confirm, or change the kind",
                True,
            )
            return
        pins = [pin.name] if pin.confirm.pins is None else pin.confirm.pins
        row = self.row(path, None, pin.name, pin.confirm, pins)
        self.rows.append(row)
        for name, tool in self.tools.items():
            pins_on = on.get(tool.function.function, ()) if tool.function else ()
            named = [one for one in self.manifest.settings.confirm if find_called(one, [name])]
            if pin.name in pins_on and not named:
                self.check_time(path, name, tool, row)
                self.rows.append([name, None, *row[2:]])

    def row(self, path: tuple, tool, pin, wanted, pins: list) -> list:
        reading = self.readings.get(wanted.reading)
        if reading is None:
            self.report(
                (*path, "reading"),
                f"there is no reading {enquote(wanted.reading)}",
                did_you_mean(wanted.reading, self.readings)
                or f"readings here: {', '.join(self.readings) or 'none'}; "
                "[[reading]] in the reflex file declares one",
            )
        kinds = {one.name: one.kind for one in self.manifest.settings.pins}
        for number, name in enumerate(pins):
            if kinds.get(name) not in _DRIVEN:
                outputs = [one for one, kind in kinds.items() if kind in _DRIVEN]
                self.report(
                    (*path, "pins", number),
                    f"there is no pin {enquote(name)}"
                    if name not in kinds
                    else f"{enquote(name)} is of kind {kinds[name]}, and has no safe state",
                    did_you_mean(name, outputs)
                    or "outputs here: " + (", ".join(outputs) or "none"),
                )
        is_below = wanted.above is None
        limit = wanted.below if is_below else wanted.above
        limit = int(limit) if limit is not None and limit == int(limit) else limit
        return [tool, pin, reading, is_below, limit, parse_duration(wanted.within) or 0, pins]

    def check_time(self, path: tuple, name: str, tool, row: list):
        most = self.timeouts[name]
        if most and row[table.WITHIN_MS] > most:
            self.report(
                (*path, "within"),
                f"{name} is ended after {show_duration(most)}, before that time is over",
                f"expected at most {show_duration(most)}, or a longer timeout_ms of {name}",
            )
