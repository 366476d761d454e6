"""Paths as policies see them: virtual, without a link in them."""
import os


def resolve(path: str, state: str) -> str:
    """Return where the virtual *path* really leads: /workspace is a folder of the agent's state, other paths are real.

    One with a NUL in it leads nowhere, and comes back as it is.
    """
    if "\0" in path:
        return path
    workspace = os.path.realpath(os.path.join(state, "workspace"))
    if path == "/workspace" or path.startswith("/workspace/"):
        path = workspace + path[10:]
    real = os.path.realpath(path)
    if real == workspace or real.startswith(workspace + "/"):
        return "/workspace" + real[len(workspace):]
    return real
