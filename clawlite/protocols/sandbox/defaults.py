"""Limits of a sandbox of level ``process`` that its manifest does not declare.

CKP lets a Sandbox leave out ``resource_limits``, and a tool without limits can use up a small
machine's memory and processes.  A default is enforced as well as the kernel can; only a declared
limit is refused when it cannot be enforced.  Boards have no such level and do not load this module.
"""

from clawlite.protocols.sandbox.profile import Profile

DEFAULTS = {
    "memory_mb": 1024,
    "max_processes": 256,
    "max_open_files": 1024,
    "timeout_ms": 600000,
    "max_output_bytes": 10485760,
}
_UNITS = {
    "memory_mb": "%d MB of memory (half of a machine that has less than twice that)",
    "max_processes": "%d processes",
    "max_open_files": "%d open files",
    "timeout_ms": "%d ms",
    "max_output_bytes": "%d bytes of output",
}


def find_defaults(profile: Profile, relaxed: tuple | list = ()) -> dict:
    """Return {limit: its default} for the limits that *profile* (``profile.Profile``, level
    process) leaves out.

    relaxed  names of limits that the settings relax: such a limit has no default
    """
    return {
        name: value
        for name, value in DEFAULTS.items()
        if getattr(profile, name) is None and name not in relaxed
    }


def sentence(limits: dict) -> str:
    """Return *limits*, of ``find_defaults``, for a person."""
    return ", ".join([_UNITS[name] % limits[name] for name in DEFAULTS if name in limits])
