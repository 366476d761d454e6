"""Select the files of the firmware for a slot: only those that its image can make its board load.

1. ``parts.py`` of the firmware says which parts an image has.  The board loads its parts by that,
   and this module selects by it, too.
2. A file is included when ``main`` reaches it over imports, wherever those stand, without passing
   through a module whose part is missing.
3. ``PARTS`` names the modules that only a part brings.  A module that is not in it is included when
   it is reached.  So a slot may get too many files, but never too few.
"""

import ast
import functools
import importlib.util
from typing import NamedTuple

from clawlite.host.base.data import firmware_dir
from clawlite.host.firmware import firmware, foreign_names
from clawlite.host.firmware.trees import walk
from clawlite.protocols.image.features import APIS


class Part(NamedTuple):
    """One part of a board's code.

    modules   names of linked modules that come only with it, between blanks; one that several
              parts name comes when all of them are there
    ability   what a board must have for it: without, it refuses the image before it loads
              anything of the part; "tools", which every board has, where it needs nothing
    of_board  bool, the board has it or not, whatever the image
    """

    modules: str
    ability: str = "tools"
    of_board: bool = False


PARTS = {
    "bank": Part("pins simulator", of_board=True),
    "machine": Part("machinepins machinebuses", of_board=True),
    "wifi": Part("wifi", of_board=True),
    "pins": Part("pins machinepins builtin"),
    "buses": Part("busing busboard busfaults bustools machinebuses simulator wirebus"),
    "guard": Part("guard"),
    "secrets": Part("leaks"),
    "injection": Part("injection"),
    "log": Part("logfile"),
    "limits": Part("limits"),
    "audit": Part("auditing"),
    "lan": Part("lan", "lan"),
    "gateway": Part("distant"),
    "communication": Part("communication"),
    "mediated": Part("mediated"),
    "swarmstop": Part("swarmstop stopfile"),
    "swarmmember": Part("swarmmember swarmsession"),
    "relayed": Part("relayed pairing"),
    "remote": Part("remote composing request incoming spending broken noting", "http"),
    **{api.codec: Part(api.codec, "http") for api in APIS},
    "oauth2": Part("oauth2", "https"),
    "tls": Part("secure", "https"),
    "reflex": Part("reflex"),
    "replay": Part("replay"),
    "rules": Part("acting rules boardrecord", "rules"),
    "cron": Part("boardcron", "cron"),
    "confirm": Part("confirm", "rules"),
    "teach": Part("boardteach teachrows", "rules"),
    "skills": Part("skill skillturn"),
    "memory": Part("stores conversation memories"),
}


def gates() -> dict[str, tuple]:
    """Return {linked module: the parts that must all be there}."""
    found = {}
    for name, part in PARTS.items():
        for module in part.modules.split():
            found[module] = found.get(module, ()) + (name,)
    return found


GATES = gates()
OF_BOARDS = [name for name, part in PARTS.items() if part.of_board]
# bytes of a file system that has room for two slots of single files, which take less heap than one
FILES_FLASH = 1500000
START, SENTENCES, PARTS_FILE = "main", "sentences", "parts"


@functools.cache
def _firmware():
    """Return the module ``parts`` of the firmware."""
    spec = importlib.util.spec_from_file_location(
        "clawlite_parts", firmware_dir() / "micropython" / "runtime" / "parts.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ability(part: str) -> str:
    """Return what a board must have for *part*."""
    return PARTS[part].ability if part in PARTS else "tools"


def parts(image) -> list[str]:
    """Return the parts of a board's code that an image (``core.image.Image``) has."""
    found = _firmware().parts(image)
    known = _firmware().NAMES.split() + [api.codec for api in APIS]
    names = [name for number, name in enumerate(known) if number in found]
    # parts.py has no numbers for these: assemble.py loads the first, uplink.py the others
    names += ["communication"] * ("gateway" in names)
    wanted = image.requires
    is_mediated = "mediated" in wanted or "mediated-line" in wanted
    is_member = "swarm" in wanted
    names += ["mediated"] * is_mediated + ["swarmmember"] * is_member
    names += ["relayed"] * ("relayed" in wanted) + ["cron"] * ("cron" in wanted)
    return names + ["swarmstop"] * (is_member or "stop-of-swarm" in wanted)


def of_board(profile=None) -> list[str]:
    """Return the parts that a board has, whatever its image; None: all that any has.  Where
    MicroPython has pins, they are real.
    """
    if profile is None:
        return list(OF_BOARDS)
    has_wifi = "wifi" in profile.network.links and "network" in foreign_names.names_of(profile.api)
    return ["bank" if profile.pins.simulated else "machine"] + ["wifi"] * has_wifi


def is_packed(profile=None) -> bool:
    """Return whether the modules of a slot are one file there; *profile* as in ``of_board``."""
    flash_bytes = profile and profile.flash_bytes
    return flash_bytes is not None and flash_bytes < FILES_FLASH


@functools.cache
def ways() -> dict[str, list[list[str]]]:
    """Return {linked module: [[part, ...], ...]}: it can be loaded when all parts of one of these
    lists are there.

    Cost  that of ``firmware.link``, and 0.2 s.
    """
    return find_ways(
        {name: find_imports(ast.parse(text)) for name, text in firmware.link()[0].items()}, GATES
    )


def find_imports(tree) -> set:
    """Return the names of what a module imports, anywhere in it."""
    found = set()
    # a call that is a statement is there for the import behind it, which tells whether it comes
    # along (firmware.py)
    statements = [node.value for node in walk(tree) if isinstance(node, ast.Expr)]
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            # outline.py and overlays.py write these
            if (
                node.args[0].value in firmware.STAGES
                or node.func.id == "__import__"
                and node not in statements
            ):
                found.add(node.args[0].value)
    return found


def find_ways(imports: dict, gates: dict) -> dict[str, list[list[str]]]:
    """Return what ``ways`` does for {module: what it imports}; modules that nothing reaches are
    not in it.
    """
    found, todo = {}, [(START, frozenset())]
    while todo:
        name, wanted = todo.pop()
        wanted |= frozenset(gates.get(name, ()))
        known = found.setdefault(name, set())
        if any(other <= wanted for other in known):
            continue
        known.difference_update([other for other in known if wanted < other])
        known.add(wanted)
        todo += [(other, wanted) for other in imports[name] if other in imports]
    return {name: sorted(map(sorted, known)) for name, known in sorted(found.items())}


def choose(files, having: list, ways_there: dict = None) -> list[str]:
    """Return those of *files*, names in the firmware's folder, that a slot with these parts
    carries.

    ways_there  what ``ways`` returns, or None: of this version
    """
    there = ways() if ways_there is None else ways_there
    return [
        name
        for name in files
        if name == SENTENCES
        or any(set(way) <= set(having) for way in there.get(name.removesuffix(".mpy"), ()))
    ]
