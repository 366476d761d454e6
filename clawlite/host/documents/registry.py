"""The registry inside the package: claw://registry/clawlite/NAME@VERSION, one Tool document a file
in ``registry/``.

Tools listed here have their handler in the runtime; other registries are in registries.py.
"""

import functools
import pathlib

from clawlite.host.base import yaml_text
from clawlite.host.base.document import Document
from clawlite.host.base.problems import did_you_mean, enquote, one_of
from clawlite.host.documents.sources import Refused
from clawlite.protocols.image.features import ABILITIES

NAMESPACE = "clawlite"
# what a device must have for them, by category (docs/tools.md); the others work on pins
_NEEDS = {category: ability.name for ability in ABILITIES for category in ability.tools}
_FOLDER = pathlib.Path(__file__).with_name("registry")


def names() -> list:
    """Return the names of the tools in the registry, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def version(name: str) -> str:
    """Return the version of a tool that is in the registry."""
    return _read(name).data["metadata"]["version"]


def _read(name: str) -> Document:
    return yaml_text.read(
        (_FOLDER / f"{name}.yaml").read_bytes(), f"claw://registry/{NAMESPACE}/{name}"
    )


def document(name: str, version: str) -> Document:
    """Return the document behind claw://registry/clawlite/NAME@VERSION; raises ``Refused``
    (message, hint).
    """
    known = names()
    if name not in known:
        raise Refused(
            f"the registry {NAMESPACE} has no {enquote(name)}",
            did_you_mean(name, known) or "it has " + one_of(known),
        )
    found = _read(name)
    has = found.data["metadata"]["version"]
    if version != has:
        raise Refused(
            f"the registry {NAMESPACE} has {name} in version {has}, not {version}",
            f"write {name}@{has}",
        )
    return found


def schemas(name: str) -> tuple:
    """Return (input schema, output schema or None) of the tool *name*, (None, None) for one that is
    not in the registry.

    The name may come from an image: it becomes part of a path only when it is known.
    """
    if name not in names():
        return None, None
    spec = yaml_text.read((_FOLDER / f"{name}.yaml").read_bytes(), name).data["spec"]
    return spec["input_schema"], spec.get("output_schema")


def ability(name: str) -> str:
    """Return the ability that a device must have for the tool *name*; "pins" for one that is not
    in the registry, which none has.
    """
    return _NEEDS.get(category(name), "pins")


@functools.cache
def category(name: str) -> str | None:
    """Return the category of the tool *name*, None for one that is not in the registry."""
    if name not in names():
        return None
    return yaml_text.read((_FOLDER / f"{name}.yaml").read_bytes(), name).data["metadata"]["labels"][
        "category"
    ]
