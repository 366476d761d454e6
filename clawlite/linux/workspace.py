"""The workspace: the folder that /workspace and relative paths mean, and paths as policies see them."""
import os

from clawlite.core.policy import normalise, virtual

VIRTUAL = "/workspace"


def folder(profile, state: str) -> str:
    """Return the absolute path of the folder behind /workspace; it may not exist yet.

    profile  ``profile.Profile``, or None for an agent without tools;  state  the agent's folder
    """
    mount = None
    if profile is not None:
        from clawlite.core.profile import workspace_mount
        mount = workspace_mount(profile.files, profile.mounts)
    return os.path.join(os.path.abspath(state), "workspace") if mount is None else normalise(mount, "/")


def resolve(path: str, workspace: str) -> str:
    """Return where the virtual *path* really leads, as policies name it: what lies in the folder *workspace* is below /workspace.

    One with a NUL in it leads nowhere, and comes back as it is.
    """
    if "\0" in path:
        return path
    root = os.path.realpath(workspace)
    if path == VIRTUAL or path.startswith(VIRTUAL + "/"):
        path = root + path[len(VIRTUAL):]
    return virtual(os.path.realpath(path), root)
