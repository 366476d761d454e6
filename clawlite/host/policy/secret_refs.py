"""Names of secrets in a manifest: a ``secret_ref`` that is a secret itself or more than a name."""

import re

from clawlite.host.base.problems import enquote
from clawlite.scan.leaks import find as secrets_in

_SECRET_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def check_secret_ref(manifest, primitive) -> None:
    """Add a problem where auth.secret_ref of *primitive* is a secret, or names none."""
    text = primitive.spec.auth.secret_ref if primitive.spec.auth else None
    if not text:
        return
    bare = text.strip("${} ")
    if secrets_in(text.encode()):
        manifest.problem(
            primitive,
            ("auth", "secret_ref"),
            "this is a secret itself; whoever sees the manifest or its image has it",
            "the name of a secret",
            hint="take it out, make it invalid where it came from, and store a new "
            "one: clawlite secrets set NAME",
        )
    elif not _SECRET_NAME.fullmatch(text):
        manifest.problem(
            primitive,
            ("auth", "secret_ref"),
            "",
            "the name of a secret, 1 to 128 of A-Z a-z 0-9 _ . -",
            enquote(text),
            f"write {enquote(bare)}: the store and the environment are looked through by that name"
            if _SECRET_NAME.fullmatch(bare)
            else "",
        )
