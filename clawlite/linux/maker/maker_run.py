"""Run the code of tools.py.

1. Its modules are imported from what the image was checked with, not from a folder; each run has
   modules of its own, so that agents of one process do not share them.
2. A driver in the folder ``drivers`` that has the name of a module of Python is not used: it brings
   boards what Python has.
3. What it prints goes to *show* and never to stdout, which is the agent's.
4. Nothing here reads files: a process of its own gets the code from the agent.
"""

import builtins
import os
import sys

MOST_PRINTED = 16384  # bytes that one call in a process of its own prints to the log
# that board_modules.py has, or may have
_OF_BOARDS = frozenset(
    "micropython time utime ustruct ubinascii uos ujson uio ucollections".split()
)
_DRIVERS = "drivers/"
_BOARDS_ONLY = ("machine", "onewire", "_onewire", "neopixel", "network", "rp2", "esp", "esp32")
_MOST_AT_ONCE = 2000  # characters of one print


def run(code, path: str, modules: dict, show) -> dict:
    """Run *code*; return the names that it defines.

    path     of the file that the code is of
    modules  {name: code} of the modules that it may import; "drivers/NAME" is a driver, and
             "drivers/NAME/MODULE" one of a package
    show     function(text) that takes what is printed
    """
    own = dict(vars(builtins))
    loaded: dict = {}
    places = _places(modules)

    def load(name: str):
        parent, _, last = name.rpartition(".")
        above = load(parent) if parent and name not in loaded else None
        if name in loaded:  # its package may have loaded it
            return loaded[name]
        module = loaded[name] = type(sys)(name)
        place = places[name]
        is_package = not place or place.endswith("/__init__")
        module.__dict__["__builtins__"] = own
        module.__dict__["__package__"] = name if is_package else parent
        if is_package:
            module.__dict__["__path__"] = []
        try:
            if place:
                module.__dict__["__file__"] = os.path.join(os.path.dirname(path), place + ".py")
                exec(modules[place], module.__dict__)
        except BaseException:
            del loaded[name]
            raise
        if above:
            setattr(above, last, module)
        return module

    def import_name(name, globals=None, locals=None, fromlist=(), level=0):
        full = _absolute(name, globals or {}, level) if level else name
        top = full.partition(".")[0]
        if top in places:
            if full not in places:
                raise ModuleNotFoundError("No module named %r" % full, name=full)
            module = load(full)
            for one in fromlist or ():
                if not hasattr(module, one) and "%s.%s" % (full, one) in places:
                    load("%s.%s" % (full, one))
            return module if fromlist else load(top)
        if not level and name in _OF_BOARDS:
            from clawlite.linux.maker import board_modules

            place = places.get((globals or {}).get("__name__")) or ""
            found = board_modules.find(name, place.startswith(_DRIVERS))
            if found is not None:
                return found
        return __import__(name, globals, locals, fromlist, level)

    def print_text(*parts, sep=" ", end="\n", file=None, flush=False):
        if file is not None and file not in (sys.stdout, sys.stderr):
            print(*parts, sep=sep, end=end, file=file, flush=flush)
            return
        text = (" " if sep is None else sep).join([str(part) for part in parts])
        if len(text) > _MOST_AT_ONCE:
            text = "%s... (%d characters)" % (text[:_MOST_AT_ONCE], len(text))
        show(text)

    own["__import__"] = import_name
    own["print"] = print_text
    space = {"__name__": "tools", "__file__": path, "__builtins__": own}
    exec(code, space)
    return space


def _places(modules: dict) -> dict:
    """Return {name as it is imported: its key in *modules*; None for a folder without a file
    ``__init__.py``}, without drivers that have the name of a module of Python.
    """
    found: dict = {}
    for key in modules:
        parts = key.removeprefix(_DRIVERS).split("/")
        if key.startswith(_DRIVERS) and parts[0] in sys.stdlib_module_names:
            continue
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = key
        for count in range(1, len(parts)):
            found.setdefault(".".join(parts[:count]), None)
    return found


def _absolute(name: str, globals: dict, level: int) -> str:
    """Return the whole name of what a module imports with *level* dots before *name*; "" when it
    is in no package.
    """
    parts = (globals.get("__package__") or "").split(".")
    if not parts[0] or level > len(parts):
        return ""
    return ".".join(part for part in (*parts[: len(parts) - level + 1], name) if part)


def print_event(text: str, tool: str = "") -> dict:
    """Return what the log says of a print; *tool*: the call's, "" where that is not known."""
    event = {"event": "tool.print", "text": text}
    return dict(event, tool=tool) if tool else event


def board_hint(e: BaseException) -> str:
    """Return what helps when *e* says that a module of boards is missing; "" for another error."""
    if not isinstance(e, ModuleNotFoundError) or e.name not in _BOARDS_ONLY:
        return ""
    return (
        "%s is a module of MicroPython boards: here use board, or a driver of the kernel (clawlite "
        "check --board rpi-4 names it, clawlite doctor lists those that are on)" % e.name
    )


def adapt(space: dict) -> dict:
    """Return *space* with functions that take and return JSON values, where annotations name Enums
    or dataclasses: for callers outside; those inside keep calling each other as they are written.
    """
    if not any(isinstance(one, type) for one in space.values()):
        return space
    from clawlite.linux.maker import typed_values

    return typed_values.adapt(space)


def place_of(e: BaseException, folder: str) -> str:
    """Return " (tools.py:12)", the last line of a file in *folder*, or of a driver there, that *e*
    came through; "" when there is none.
    """
    place, trace = "", e.__traceback__
    drivers = os.path.join(folder, _DRIVERS)

    def is_ours(file) -> bool:
        return os.path.dirname(file) == folder or file.startswith(drivers)

    if isinstance(e, SyntaxError) and e.filename and is_ours(e.filename):
        return " (%s:%d)" % (e.filename[len(folder) :].lstrip("/"), e.lineno or 0)
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.endswith(".py") and is_ours(path):
            place = " (%s:%d)" % (path[len(folder) :].lstrip("/"), trace.tb_lineno)
        trace = trace.tb_next
    return place
