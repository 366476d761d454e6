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
_BOARDS_ONLY = ("machine", "onewire", "_onewire", "neopixel", "network", "rp2", "esp", "esp32")
_MOST_AT_ONCE = 2000  # characters of one print


def run(code, path: str, modules: dict, show) -> dict:
    """Run *code*; return the names that it defines.

    path     of the file that the code is of
    modules  {name: code} of the modules that it may import; "drivers/NAME" is a driver
    show     function(text) that takes what is printed
    """
    own = dict(vars(builtins))
    loaded: dict = {}
    places = {name.rpartition("/")[2]: name for name in modules if not _is_of_python(name)}

    def load(name: str):
        if name not in loaded:
            module = loaded[name] = type(sys)(name)
            module.__dict__["__builtins__"] = own
            place = places[name]
            module.__dict__["__file__"] = os.path.join(os.path.dirname(path), place + ".py")
            try:
                exec(modules[place], module.__dict__)
            except BaseException:
                del loaded[name]
                raise
        return loaded[name]

    def import_name(name, globals=None, locals=None, fromlist=(), level=0):
        if not level and name in places:
            return load(name)
        if not level and name in _OF_BOARDS:
            from clawlite.linux.maker import board_modules

            found = board_modules.find(name, _is_driver((globals or {}).get("__file__", "")))
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


def _is_of_python(name: str) -> bool:
    return name.startswith("drivers/") and name[len("drivers/") :] in sys.stdlib_module_names


def _is_driver(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == "drivers"


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
    folders = (folder, os.path.join(folder, "drivers"))
    if isinstance(e, SyntaxError) and e.filename and os.path.dirname(e.filename) in folders:
        return " (%s:%d)" % (e.filename[len(folder) :].lstrip("/"), e.lineno or 0)
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.endswith(".py") and os.path.dirname(path) in folders:
            place = " (%s:%d)" % (path[len(folder) :].lstrip("/"), trace.tb_lineno)
        trace = trace.tb_next
    return place
