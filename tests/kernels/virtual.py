"""A virtual machine that lives in memory: a kernel, a userland, the checkout, one thing to do,
and the power goes off.
"""

import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
import debs

ROOT = Path(__file__).resolve().parents[2]
TOP = ROOT / "build" / "kernels"
USERLAND = (
    "busybox-static",
    "python3",
    "python3-pytest",
    "dash",
    "coreutils",
    "grep",
    "sed",
    "findutils",
    "util-linux",
    "mount",
    "procps",
    "iproute2",
    "libc-bin",
    "hostname",
    "strace",
)
# what a KVM says that is there and does not work
BROKEN = ("KVM internal error", "failed to set MSR", "target/i386/kvm/", "failed to initialize kvm")
SILENCE_S = 600  # one that hangs; a test takes less, also on a busy machine
CHECKOUT = ("clawlite", "tests", "pyproject.toml")
# Debian's name of a machine type, and what more there is of it -> (its own name, QEMU's arguments,
# console and more of the command line, kernel package) no_timer_check: a kernel that waits for its
# timer while its machine waits for a processor takes it for broken, and stops.
MACHINES = {
    "amd64": ("x86_64", ("-M", "q35"), "ttyS0 no_timer_check", "linux-image-cloud-amd64"),
    "arm64": (
        "aarch64",
        ("-M", "virt", "-cpu", "cortex-a72"),
        "ttyAMA0",
        "linux-image-cloud-arm64",
    ),
    "arm64-16k": (
        "aarch64",
        ("-M", "virt", "-cpu", "cortex-a76"),
        "ttyAMA0",
        "linux-image-arm64-16k",
    ),
    "armhf": (
        "arm",
        ("-M", "virt,highmem=off", "-cpu", "cortex-a15"),
        "ttyAMA0",
        "linux-image-armmp",
    ),
}
# busybox alone runs it; what clawlite is to see is a file system of its own, for the kernel lets
# nobody change the root of an initramfs.
INIT = """#!/busybox sh
/busybox mkdir -p /proc /new
/busybox mount -t tmpfs -o size=90%,mode=0755 tmpfs /new
/busybox tar -xzf /userland.tar.gz -C /new && /busybox tar -xf /checkout.tar -C /new && /busybox rm /userland.tar.gz /checkout.tar
cd /new
/busybox mkdir -p proc sys dev tmp run etc home/maker var/tmp
/busybox chmod 1777 tmp var/tmp
/busybox mount -t proc proc proc
/busybox mount -t sysfs sysfs sys
/busybox mount -t devtmpfs dev dev
/busybox mkdir -p dev/shm dev/pts
/busybox mount -t tmpfs -o mode=1777 shm dev/shm
/busybox mount -t devpts devpts dev/pts
/busybox mount -t cgroup2 cgroup2 sys/fs/cgroup
exec /busybox switch_root /new /usr/bin/busybox sh /guest
"""  # noqa: E501
GUEST = """export PATH=/usr/sbin:/usr/bin PYTHONDONTWRITEBYTECODE=1 HOME=/ LANG=C.UTF-8
busybox ifconfig lo up
cd /checkout && python3 tests/kernels/guest.py
busybox poweroff -f
"""
FILES = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nmaker:x:1000:1000::/home/maker:/bin/sh\n"
    "nobody:x:65534:65534::/:/bin/sh\n",
    "etc/group": "root:x:0:\nmaker:x:1000:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "guest": GUEST,
}


def run(
    suite: str,
    kernel: str,
    userland: str,
    options: str,
    job: str,
    log: Path,
    limit_s: int,
    more: tuple = (),
) -> str:
    """Boot it, let ``guest.py`` do *job* (JSON), and return what the console showed; it is in
    *log*, too.  Raises ``RuntimeError``.

    kernel    a key of MACHINES
    userland  Debian's name of a machine type
    options   for the kernel's command line
    more      packages of the userland
    """
    name, arguments, console, package = MACHINES[kernel]
    boot = debs.unpacked(TOP, suite, kernel.partition("-")[0], (package,), False) / "boot"
    kernel_file = next(boot.glob("vmlinuz-*"), None)
    if kernel_file is None:
        raise RuntimeError(
            "%s of %s has no kernel: %s; remove that folder and start again"
            % (package, suite, boot)
        )
    initrd = log.with_suffix(".initrd")
    try:
        _initrd(initrd, _userland(suite, userland, more), job)
        command = [
            *_qemu(name),
            *arguments,
            "-smp",
            "2",
            "-m",
            "2G",
            "-display",
            "none",
            "-nodefaults",
            "-no-reboot",
            "-serial",
            "stdio",
            "-kernel",
            str(kernel_file),
            "-initrd",
            str(initrd),
            "-append",
            "console=%s panic=-1 quiet rdinit=/init %s" % (console, options),
        ]
        if name == platform.machine() and os.access("/dev/kvm", os.W_OK):
            shown = _watched(command + ["-accel", "kvm", "-cpu", "host"], log, limit_s)
            if not _is_broken(shown[:4096]):
                return shown
        return _watched(command + ["-accel", "tcg"], log, limit_s)
    finally:
        initrd.unlink(missing_ok=True)


def _watched(command: list, log: Path, limit_s: int) -> str:
    """Run QEMU to its end; where its KVM does not work (a virtual machine that lends it, but not
    all of it) that is now.
    """
    start = heard = time.monotonic()
    size, why = 0, ""
    with (
        open(log, "wb") as file,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            while process.poll() is None and not why and not _is_broken(_start(log)):
                now, length = time.monotonic(), log.stat().st_size
                heard, size = (now, length) if length != size else (heard, size)
                why = (
                    "was not done in %d s" % limit_s
                    if now - start >= limit_s
                    else "said nothing for %d s" % SILENCE_S
                    if now - heard >= SILENCE_S
                    else ""
                )
                time.sleep(0.5)
        finally:
            process.kill()
    shown = log.read_text("utf-8", "replace")
    if why:
        raise RuntimeError("the machine %s: %s: %s" % (why, log, shown.strip()[-300:]))
    if process.returncode and not _is_broken(shown[:4096]):
        raise RuntimeError(
            "the machine ended with %d: %s: %s" % (process.returncode, log, shown.strip()[-300:])
        )
    return shown


def _is_broken(shown: str) -> bool:
    return any(said in shown for said in BROKEN)


def _start(log: Path) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def _qemu(name: str) -> list:
    """Return how QEMU is started: the one that is installed, or one that is unpacked with all
    its libraries.
    """
    program = "qemu-system-" + name
    if shutil.which(program):
        return [program]
    here = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    folder = debs.unpacked(TOP, "trixie", here, ("qemu-system-arm", "qemu-system-x86", "seabios"))
    loader = next(
        path
        for pattern in ("lib64/ld-linux-*.so.2", "lib/ld-linux-*.so.1")
        for path in folder.glob("usr/" + pattern)
    )
    libraries = [str(path) for path in (folder / "usr/lib").glob("*-linux-gnu")]
    libraries += [str(path.parent) for path in (folder / "usr/lib").glob("*-linux-gnu/*/*.so*")]
    return [
        str(loader),
        "--library-path",
        ":".join(sorted(set(libraries))),
        str(folder / "usr/bin" / program),
        "-L",
        str(folder / "usr/share/qemu"),
        "-L",
        str(folder / "usr/share/seabios"),
    ]


def _userland(suite: str, machine: str, more: tuple) -> Path:
    folder = debs.unpacked(TOP, suite, machine, USERLAND + more)
    packed = folder.with_suffix(".tar.gz")
    if not packed.exists():
        part = packed.with_suffix(".part")
        with tarfile.open(part, "w:gz", compresslevel=3) as tar:
            for name in sorted(os.listdir(folder)):
                tar.add(folder / name, name, filter=_as_root)
        part.rename(packed)
    return packed


def _as_root(member):
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _initrd(path: Path, userland: Path, job: str):
    """Write an initramfs (cpio "newc",
    Documentation/driver-api/early-userspace/buffer-format.rst in Linux).
    """
    checkout = io.BytesIO()
    with tarfile.open(fileobj=checkout, mode="w") as tar:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *CHECKOUT],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in listed.stdout.decode().rstrip("\0").split("\0"):
            if (ROOT / name).exists():
                tar.add(ROOT / name, "checkout/" + name, filter=_as_root)
        for name, text in dict(FILES, **{"job.json": job}).items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    busybox = (
        userland.with_name(userland.name.removesuffix(".tar.gz")) / "usr/bin/busybox"
    ).read_bytes()
    with open(path, "wb") as file:
        for number, (name, mode, data) in enumerate(
            (
                ("init", 0o755, INIT.encode()),
                ("busybox", 0o755, busybox),
                ("checkout.tar", 0o644, checkout.getvalue()),
                ("userland.tar.gz", 0o644, userland.read_bytes()),
                ("TRAILER!!!", 0, b""),
            )
        ):
            words = [
                number + 1,
                stat.S_IFREG | mode if mode else 0,
                0,
                0,
                1,
                0,
                len(data),
                0,
                0,
                0,
                0,
                len(name) + 1,
                0,
            ]
            head = b"070701" + b"".join(b"%08X" % word for word in words) + name.encode() + b"\0"
            file.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))
