"""The home folder of the user who runs a command, and the folders in it that others may have moved.

linux/files/files.py has the same for agents, whose process never loads the host part."""

import os

from clawlite.core.base.errors import ClawError


def home_folder() -> str:
    """Return the home folder of this user.

    Raises ``ClawError`` when there is none: files would land in a folder named ``~``, another one
    in each folder that a command is started in.
    """
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        try:
            from pwd import getpwuid

            home = getpwuid(os.getuid()).pw_dir
        except ImportError:  # Windows
            home = os.path.expanduser("~")
        except KeyError:
            home = ""
    if os.path.isabs(home):
        return home
    raise ClawError(
        "this user has no home folder: HOME is not set, and the list of users names none",
        "set HOME, or name a folder for the state: export CLAWLITE_STATE=/var/lib/claw",
    )


def base_folder(variable: str, *default: str) -> str:
    """Return the folder that *variable* names (XDG Base Directory: a relative path counts as none),
    else *default* below the home folder.  Raises ``ClawError`` as ``home_folder`` does.
    """
    named = os.environ.get(variable, "")
    return named if os.path.isabs(named) else os.path.join(home_folder(), *default)
