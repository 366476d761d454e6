"""A real sshd on loopback, and an ``ssh`` command that finds it under the name ``pi``."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from free_ports import free_port

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
needs_sshd = pytest.mark.skipif(
    not (SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")),
    reason="no sshd (apt-get install openssh-server)",
)


class Server:
    """One sshd; its logins have *home* for home, and commands of *bin* before all others.

    path  what PATH must be for ``ssh pi`` to come here; ``ssh stranger`` is let in nowhere, nobody
          listens at ``ssh nobody``
    """

    def __init__(self, folder):
        self.home, self.bin, self._folder = folder / "home", folder / "there", folder
        for path in (self.home, self.bin, folder / "here"):
            path.mkdir()
        for name in ("host", "ours", "other"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
            )
        self._port, nobody = free_port(), free_port()
        (folder / "sshd_config").write_text(
            f"Port {self._port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/ours.pub\nStrictModes no\n"
            f"PidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"SetEnv HOME={self.home} "
            f"PATH={self.bin}:{os.path.dirname(sys.executable)}:/usr/bin:/bin\n"
        )
        key = (folder / "host.pub").read_text().split()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self._port} {key[0]} {key[1]}\n")
        (folder / "ssh_config").write_text(
            "".join(
                f"Host {name}\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/{key}\n "
                f"IdentitiesOnly yes\n IdentityAgent none\n"
                f" UserKnownHostsFile {folder}/known_hosts\n"
                for name, port, key in (
                    ("pi", self._port, "ours"),
                    ("stranger", self._port, "other"),
                    ("nobody", nobody, "ours"),
                )
            )
        )
        command(folder / "here", "ssh", f'exec {shutil.which("ssh")} -F {folder}/ssh_config "$@"')
        self.path = f"{folder}/here:{os.environ['PATH']}"

    def __enter__(self):
        if os.getuid() == 0:
            # where sshd locks itself in before a login
            os.makedirs("/run/sshd", exist_ok=True)
        with open(self._folder / "log", "wb") as log:
            self._sshd = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", self._folder / "sshd_config"],
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        until = time.monotonic() + 60
        while b"Server listening" not in (self._folder / "log").read_bytes():
            assert self._sshd.poll() is None and time.monotonic() < until, (
                self._folder / "log"
            ).read_text()
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._sshd.terminate()
        self._sshd.wait(60)


def command(folder, name: str, script: str):
    """Write the command *name*, a shell script, into *folder*."""
    (folder / name).write_text("#!/bin/sh\n" + script + "\n")
    (folder / name).chmod(0o755)
