"""Kernels, small userlands and QEMU out of Debian's packages, unpacked below build/: nothing is
installed, any user may.

apt does it with lists and a status of its own, so the machine's other packages do not matter, and a
package of another machine type is as good as one of this.  MIRROR names a mirror where the machine
has none of its own (on Ubuntu, say)."""

import fcntl
import os
import shutil
import subprocess
import zlib
from pathlib import Path

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpacked(top: Path, suite: str, machine: str, names: tuple, closure: bool = True) -> Path:
    """Return the folder with the packages *names* in it, fetched when it is not there yet.

    machine  Debian's name: "amd64", "arm64", "armhf"
    closure  bool, with all that they depend on; else each one alone (a kernel, which wants tools
             that make an initramfs)
    Raises ``RuntimeError`` with what apt says.
    """
    folder = top / (
        "%s-%s-%s-%08x" % (names[0], suite, machine, zlib.crc32(" ".join(names).encode()))
    )
    with open(top / "lock", "w") as lock:  # several machines may be wanted at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _unpack(top, suite, machine, names, closure, folder)
    return folder


def _unpack(top: Path, suite: str, machine: str, names: tuple, closure: bool, folder: Path):
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    fetched = part / "debs"
    (fetched / "partial").mkdir(parents=True)
    options = _options(top, suite, machine) + ["-o", "Dir::Cache::archives=%s" % fetched]
    if closure:
        _apt(["apt-get", *options, "-y", "--download-only", "install", *names])
    else:
        _apt(["apt-get", *options, "download", *[_real(options, name) for name in names]], fetched)
    # what the package base-files would have made
    for folder_name in ("bin", "sbin", "lib", "lib64"):
        (part / "usr" / folder_name).mkdir(parents=True, exist_ok=True)
        (part / folder_name).symlink_to("usr/" + folder_name)
    for deb in sorted(fetched.glob("*.deb")):
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
        ) as source:
            subprocess.run(
                [
                    "tar",
                    "-C",
                    part,
                    "-x",
                    "--keep-directory-symlink",
                    "--no-same-owner",
                    "--exclude=./usr/share/doc",
                    "--exclude=./usr/share/man",
                    "--exclude=./usr/share/locale",
                ],
                stdin=source.stdout,
                check=True,
            )
    shutil.rmtree(fetched)
    part.rename(folder)


def _options(top: Path, suite: str, machine: str) -> list:
    """Return the options of an apt that knows this suite and nothing of the machine that it runs
    on; its lists are fetched once.
    """
    state = top / ("apt-%s-%s" % (suite, machine))
    options = ["-qq"]
    for name, value in (
        ("Dir::Etc", state / "etc"),
        ("Dir::State", state),
        ("Dir::State::status", state / "status"),
        ("Dir::Cache", state),
        ("Dir::Log", state / "log"),
        ("APT::Architecture", machine),
        ("APT::Architectures", machine),
        ("APT::Sandbox::User", ""),
        ("Debug::NoLocking", "1"),
        ("Acquire::Languages", "none"),
        ("APT::Install-Recommends", "0"),
    ):
        options += ["-o", "%s=%s" % (name, value)]
    if not (state / "ready").exists():
        for name in ("lists/partial", "etc/apt.conf.d", "etc/preferences.d", "log"):
            (state / name).mkdir(parents=True, exist_ok=True)
        (state / "status").write_text("")
        (state / "etc" / "sources.list").write_text(
            "deb [arch=%s signed-by=%s] %s %s main\n" % (machine, KEYS, mirror(), suite)
        )
        _apt(["apt-get", *options, "update"])
        (state / "ready").write_text("")
    return options


def mirror() -> str:
    """Return the mirror that this machine uses itself."""
    if os.environ.get("MIRROR"):
        return os.environ["MIRROR"]
    said = _apt(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"]).split()
    if not said:
        raise RuntimeError("apt knows no mirror of Debian here: set MIRROR=http://MIRROR/debian")
    return said[0]


def _real(options: list, name: str) -> str:
    """Return what the kernel package *name* stands for: it depends on the one of the version of
    now.
    """
    found = [
        line.split()[1]
        for line in _apt(["apt-cache", *options, "depends", name]).splitlines()
        if "Depends: linux-image" in line
    ]
    return found[0] if found else name


def _apt(command: list, folder=None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError("%s: %s" % (command[0], done.stderr.strip()[-400:]))
    return done.stdout
