"""The workspace: the folder that /workspace and relative paths mean, and paths as policies see
them.
"""

import os
import stat

from clawlite.core.image.image import MEMORY
from clawlite.core.policy.policy import is_within, normalise, virtual
from clawlite.linux.files import real_path
from clawlite.linux.files.files import SWARMS, expand_home

# the user and group of files that tools may write, where the agent runs as root
NOBODY = 65534

VIRTUAL = "/workspace"
# tasks of which is known where their paths led, before those that have ended are forgotten
_KEPT = 64


def folder(profile, state: str, image=None) -> str:
    """Return the absolute path of the folder behind /workspace; it may not exist yet.

    profile  ``profile.Profile``, or None for an agent without tools;  state  the agent's folder
    image    ``image.Image``: a workspace of its Memory is the folder, where no other is mounted in
             its place
    """
    state = os.path.abspath(state)
    mount = None
    if profile is not None:
        from clawlite.protocols.sandbox.profile import workspace_mount

        mount = workspace_mount(profile.files, profile.mounts)
    if mount is None:
        return _store_folder(_find_shared(image), state)
    mount = normalise(mount, "/")
    # the state is nobody's workspace
    return _store_folder(None, state) if is_within(mount, state) else mount


def store_behind(image, state: str, workspace: str):
    """Return the ``memories.Store`` whose files are those in *workspace*, or None."""
    store = _find_shared(image)
    return (
        store
        if store is not None and workspace == _store_folder(store, os.path.abspath(state))
        else None
    )


def _find_shared(image):
    """Return the first workspace store that all identities and channels share, or None."""
    if image is None or not image.size_of(MEMORY):
        return None
    from clawlite.core.image.memories import DOES, FILES, GLOBAL, stores

    return next(
        (
            store
            for store in stores(image)
            if DOES >> 4 * store.type & FILES and store.scope == GLOBAL
        ),
        None,
    )


def _store_folder(store, state: str) -> str:
    path = normalise(expand_home(store.path), "/") if store is not None and store.path else None
    return os.path.join(state, "workspace") if path is None or is_within(path, state) else path


def paths_to_hide(profile, state: str, workspace: str) -> list:
    """Return the real paths that no tool sees, but for the workspace in one of them: the state of
    all agents, and mounted secrets.

    Where a folder in there is mounted by its name, it is the maker's wish: then only the agent's
    own state is, and the tasks of swarms.  Their other names: mounts.py."""
    own = os.path.realpath(state)
    declared = [
        os.path.realpath(path)
        for path, _ in profile.mounts + [(workspace, True)]
        if not is_within(path, VIRTUAL)
    ]

    def is_wanted(folder):
        return any(
            is_within(path, folder) and path != folder and not is_within(path, own)
            for path in declared
        )

    root, secrets = (
        os.path.dirname(own),
        os.path.realpath(os.environ.get("CLAW_SECRETS_DIR") or own),
    )
    paths = [root]
    if is_wanted(root) or root == "/":
        paths = [own, os.path.join(root, SWARMS)]
    return paths + [secrets] * (
        secrets != "/" and not is_within(secrets, paths[0]) and not is_wanted(secrets)
    )


def resolve(path: str, workspace: str) -> str:
    """Return where the virtual *path* really leads, as policies name it: what lies in the folder
    *workspace* is below /workspace.

    One with a NUL in it leads nowhere, and comes back as it is.
    """
    if "\0" in path:
        return path
    root = real_path.resolve(workspace)
    if path == VIRTUAL or path.startswith(VIRTUAL + "/"):
        path = root + path[len(VIRTUAL) :]
    return virtual(real_path.resolve(path), root)


class DecidedPaths:
    """Where the paths of calls led when policy decided on them: a link may lead elsewhere by the
    time that a handler opens it.

    running  the agent's tasks, by number
    """

    def __init__(self, running):
        self._running = running
        self._seen = {}  # task -> {path: where it led}

    def note_path(self, task: int, path: str, real: str) -> None:
        """Take note that *path* of a call of *task* led to *real*: what was decided last counts,
        also after a call that was denied.
        """
        if task not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen = {
                    number: seen for number, seen in self._seen.items() if number in self._running
                }
            self._seen[task] = {}
        self._seen[task][path] = real

    def paths_of(self, task: int) -> dict:
        """Return {path: where it led} for a call of *task* whose handler begins, also for one
        that is tried again; {} when no rule looked at links.
        """
        return self._seen.get(task, {})


def make_folder(folder: str, level: int) -> None:
    """Make *folder*, which a Memory names, where it is not there; for the user of the tools, where
    the agent is root and they are not.

    Where that fails, calls will say why.
    """
    try:
        os.makedirs(folder, 0o700)
        if os.geteuid() == 0 and level:
            os.chown(folder, NOBODY, NOBODY, follow_symlinks=False)
    except OSError:
        pass


def hand_over(folder: str, uid: int) -> None:
    """Give what root owns in the agent's own *folder* to *uid*, the user of the tools where the
    agent is root.

    A file with two names may be somebody else's, and stays whose it is; no link is followed, and a
    link in the place of *folder* neither.  What lies deeper than ``quota.MAX_DEPTH`` stays too."""
    from clawlite.linux.files.quota import walk

    state, name = os.path.split(folder)
    for fd, entries, _ in walk(os.path.join(os.path.realpath(state), name)):
        for name in [entry.name for entry in entries]:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if status.st_uid == 0 and (
                stat.S_ISDIR(status.st_mode)
                or stat.S_ISREG(status.st_mode)
                and status.st_nlink == 1
            ):
                os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)
