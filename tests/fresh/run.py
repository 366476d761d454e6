"""The whole suite on a fresh machine: ``make test-fresh``, or ``python tests/fresh/run.py [--keep]
[VARIANT...]`` as root.  A variant is SUITE:USER:MODE, a release of Debian, who runs the tests, and
the mode of that user's home folder, in which the clone lies; VARIANTS are played without one.

1. The root is made by debootstrap below FRESH (/var/tmp/clawlite-fresh) and kept as it came; each
   variant gets a copy of it, which goes afterwards (--keep keeps it).
2. It has what CONTRIBUTING.md asks for: Python with venv, make, git. All else is the Makefile's.
3. Of this machine it has the kernel, and the way to the registries: names and hosts, proxies, the
   authorities that are trusted, and the settings of apt, pip and npm with the folders they name.
4. What is played is the commit that is checked out, not what was changed since.
5. Root runs with CLAWLITE_REQUIRE_ALL=1, as CI does: there a skip is a failure.
6. TARGET, when it is set, is what make is asked for in place of ``test``; JOBS is passed on.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
import debs

TOP = Path(os.environ.get("FRESH", "/var/tmp/clawlite-fresh"))
VARIANTS = ("bookworm:root:0700", "trixie:root:0700", "bookworm:maker:0750", "trixie:maker:0700")
PACKAGES = "ca-certificates,git,make,python3,python3-venv"
CA_FILE = "/etc/ssl/certs/ca-certificates.crt"
_OF_REGISTRIES = re.compile(r"(?i).*(_proxy|cert|ca_bundle|ca_certs)|(pip|npm_config|uv)_.*")
# pivot_root and not chroot: in a changed root nobody may make user namespaces.  The shell stays, as
# process 1: it takes the ends of what the tests leave to it, which make would not.
_ENTER = """
cd "$1"; shift
mount --rbind . "$PWD"; cd "$PWD"
mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp; mount -t tmpfs -o mode=755 tmpfs run
for place in $PLACES; do mkdir -p ".$place"; mount --bind -o ro "$place" ".$place"; done
mkdir -p .before; pivot_root . .before; cd /; umount -l /.before; rmdir /.before
unset PLACES; "$@" || exit $?
"""


def _output(*words) -> str:
    """Return what a program says, or "" where it is missing or fails."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def base(suite: str) -> Path:
    """Return the root of *suite* as debootstrap made it, this time or earlier."""
    folder = TOP / (suite + ".base")
    if not folder.is_dir():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        words = ["debootstrap", "--variant=minbase", "--include=" + PACKAGES, suite, str(part)]
        with open(part.with_suffix(".log"), "w") as log:
            done = subprocess.run([*words, debs.mirror()], stdout=log, stderr=log)
        if done.returncode:
            sys.exit("debootstrap cannot make %s: see %s" % (part, log.name))
        part.rename(folder)
    return folder


def carry(root: Path, home: Path) -> str:
    """Give *root* this machine's way to the registries, and the user of *home* its settings of npm.
    Return the local folders that pip's settings name.
    """
    for name in ("/etc/resolv.conf", "/etc/hosts", CA_FILE):
        if os.path.exists(name):
            shutil.copyfile(name, root / name[1:])
    apt = [line for line in _output("apt-config", "dump").splitlines() if _is_of_the_way(line)]
    (root / "etc/apt/apt.conf.d/90carried").write_text("".join(line + "\n" for line in apt))
    settings, places = {}, []
    for line in _output("python3", "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        value = ast.literal_eval(value)
        places += re.findall(r"(?:file://)?(/[^\s:]+)", value) if "://" not in value else []
        # an index names files beside its folder
        places += [os.path.dirname(one.rstrip("/")) for one in re.findall(r"file://(/\S+)", value)]
        if not section.startswith(":"):  # those of the environment come with it
            settings.setdefault(section, []).append("%s = %s" % (key, "\n  ".join(value.split())))
    (root / "etc/pip.conf").write_text(
        "".join("[%s]\n%s\n" % (one, "\n".join(lines)) for one, lines in settings.items())
    )
    files = [_output("npm", "config", "get", one).strip() for one in ("globalconfig", "userconfig")]
    (home / ".npmrc").write_text("".join(Path(f).read_text() for f in files if os.path.exists(f)))
    return " ".join(_mounted(root, sorted(set(places))))


def _is_of_the_way(line: str) -> bool:
    return line.startswith(("Acquire::http", "Acquire::Check"))


def _mounted(root: Path, places: list) -> list:
    """Copy the files among *places* into *root*, and return the folders that it lacks."""
    for place in places:
        if os.path.isfile(place):
            (root / place[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place, root / place[1:])
    return [place for place in places if os.path.isdir(place) and not (root / place[1:]).exists()]


def play(variant: str, keep: bool) -> bool:
    """Return whether the suite is green there.  What it said is in FRESH/VARIANT.log."""
    suite, user, mode = variant.split(":")
    root, began = TOP / variant.replace(":", "-"), time.monotonic()
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", base(suite), root], check=True)
    if user != "root":
        subprocess.run(["chroot", root, "useradd", "-m", "-s", "/bin/sh", user], check=True)
    home = home_of(user, root)
    inside = root / str(home)[1:]
    places = carry(root, inside)
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, inside / "clawlite"], check=True)
    subprocess.run(["chroot", root, "chown", "-R", user + ":", home], check=True)
    inside.chmod(int(mode, 8))
    log = TOP / (root.name + ".log")
    with open(log, "w") as out:
        done = subprocess.run(
            command(root, user, home), env=environment(user, home, places), stdout=out, stderr=out
        )
    last = log.read_text(errors="replace").rstrip().splitlines()[-1:]
    print(
        "%s: exit code %d, %s (%d s, %s)"
        % (variant, done.returncode, *last, time.monotonic() - began, log),
        flush=True,
    )
    if not keep:
        shutil.rmtree(root)
    return done.returncode == 0


def home_of(user: str, root: Path) -> Path:
    """Return the home folder of *user* as *root* has it."""
    rows = [line.split(":") for line in (root / "etc/passwd").read_text().splitlines()]
    return next(Path(row[5]) for row in rows if row[0] == user)


def command(root: Path, user: str, home: Path) -> list:
    """Return the words that run the suite in *root*, where all that they start ends with them."""
    words = "unshare --mount --pid --fork --kill-child --propagation private sh -ec".split()
    words += [_ENTER, "enter", str(root)]
    if user != "root":
        words += ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
    jobs = ["JOBS=" + os.environ["JOBS"]] if os.environ.get("JOBS") else []
    target = os.environ.get("TARGET", "test").split()
    return [*words, "make", "--no-print-directory", "-C", str(home / "clawlite"), *target, *jobs]


def environment(user: str, home: Path, places: str) -> dict:
    """Return the environment of a login, with what leads to the registries."""
    kept = {name: value for name, value in os.environ.items() if _OF_REGISTRIES.fullmatch(name)}
    kept.update(HOME=str(home), USER=user, LANG="C.UTF-8", PLACES=places)
    kept["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    if user == "root":
        kept["CLAWLITE_REQUIRE_ALL"] = "1"
    return kept


def main(words: list) -> int:
    if os.geteuid():
        sys.exit("a root of its own: expected root, who may make one - run: sudo make test-fresh")
    if not shutil.which("debootstrap"):
        sys.exit("no debootstrap: apt-get install debootstrap")
    wanted = [word for word in words if not word.startswith("-")] or VARIANTS
    return 0 if all([play(variant, "--keep" in words) for variant in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
