"""Compiles the manifest of a case as ``clawlite serve`` does at its first start, where the compiler
is loaded already: loading it takes ten times as long.

The agent then finds an image that is still current, as at its second start.  It compiles anew where
anything differs, and it compiles itself what is refused here.
"""

from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_facts
from clawlite.linux.admin import image_cache


def build(manifest: str) -> None:
    """Build *manifest* and note what the image depends on."""
    try:
        image, facts = build_facts(manifest, True)
    except ClawError:  # the agent says so
        return
    if facts is not None:
        image_cache.store(manifest, True, image, facts)
