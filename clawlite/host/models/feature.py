"""What a feature of a manifest declares to the compiler: a primitive of CKP, or something of
clawlite's own.  The room of each has a module ``feature.py``, which ends with a ``Feature``.
host/manifest/features.py lists them all, and what walks that list names none of them.  What
``clawlite inspect`` shows stands beside it, in ``show.py``: a device without packages shows an
image, too (host/builder/inspection.py).
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct


class Requirement(NamedTuple):
    """An ability that the device must have, and the part of the manifest that needs it.

    place, path  of that part, for a problem
    instead      what to do about a device that lacks it
    message      why, with %s for the device's name, where "this needs ABILITY" would not do
    """

    ability: str
    place: object
    path: tuple = ()
    instead: str = "leave it out"
    message: str = ""


def _nothing(*_) -> tuple:
    """A feature that has none of these."""
    return ()


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature, by what the compiler asks of each.

    name      for a primitive of CKP its kind, else the field's word
    model     the Struct of the primitive's spec, None for what CKP has not
    check     function(manifest, at_use): adds a problem for every part that no device can honour,
              or that cannot be meant; *at_use*: but for those of which an answer at use says it
    compile   function(manifest, work) -> {number of a section: what an image has there}, made also
              for a manifest with problems; *work*: ``Work`` of host/compiler/work.py
    needs     function(manifest) -> [Requirement]; the first with an ability is the one to blame
    warn      function(manifest, work) -> [((file, line), message)]: what is valid, and most likely
              not meant
    fit       function(manifest, board, other, problems): adds what the profile *board* cannot give;
              *other*: function(can, otherwise) -> a hint that names the boards that can
    note      function(manifest, board, free_bytes) -> [((file, line), message)]: what is different
              on *board*, and no problem; *free_bytes*: of its flash, None when that is not known
    """

    name: str
    model: type[Struct] | None = None
    check: Callable = _nothing
    compile: Callable = _nothing
    needs: Callable = _nothing
    warn: Callable = _nothing
    fit: Callable = _nothing
    note: Callable = _nothing
