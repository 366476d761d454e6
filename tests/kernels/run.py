"""The sandbox on kernels that this machine does not have: ``make kernels``, or ``python
tests/kernels/run.py [--list] [--look] [--core] [--tests=NAME,...] [VARIANT...]``.

Each variant is a virtual machine (virtual.py) with a kernel of Debian and a userland for it; with a
wrong profile or a failed test the exit code is 1.  What the consoles showed is in
build/kernels/VARIANT.log.  --core leaves out what does not depend on the kernel, --look all tests;
--tests=limits,cgroups runs tests/linux/sandbox/test_limits.py and test_cgroups.py alone."""

import json
import os
import sys
import time

import virtual

SANDBOX = "tests/linux/sandbox"
# What depends on the machine's kernel and its calling convention, for machines that are played
# slowly.
CORE = [
    SANDBOX + "/test_%s.py" % name
    for name in (
        "closed",
        "modes",
        "inside",
        "limits",
        "missing",
        "secretfiles",
        "cgroups",
        "words",
        "hidden",
    )
]
LIMITS = [SANDBOX + "/test_limits.py", SANDBOX + "/test_cgroups.py"]
NO_LANDLOCK = "lsm=lockdown,capability,yama"
RASPBERRY = NO_LANDLOCK + " cgroup_disable=memory"


class Variant:
    """A kernel as somebody has it.

    kernel, userland  keys of virtual.MACHINES, Debian's machine types;  options  of its command
                      line;  suite  of Debian
    profiles          {user: the profile that is to be found, or None}
    runs              [(user, profiles that can be built, pytest's arguments)]
    job               sysctl, proc, cgroups, apparmor: as guest.py says
    """

    def __init__(
        self,
        what: str,
        profiles: dict,
        runs: list,
        options: str = "",
        kernel: str = "amd64",
        userland: str = "",
        suite: str = "trixie",
        **job,
    ):
        self.what, self.profiles, self.runs, self.options = what, profiles, runs, options
        self.kernel, self.userland, self.suite = kernel, userland or kernel.partition("-")[0], suite
        self.job = dict({"sysctl": {}, "proc": "", "cgroups": "v2", "apparmor": ""}, **job)


BOTH = {"root": "N", "maker": "N"}
VARIANTS = {
    "all": Variant(
        "everything, cgroup v2 with all controllers",
        BOTH,
        [("root", "NL", [SANDBOX]), ("maker", "NL", [SANDBOX])],
    ),
    "raspberry": Variant(
        "no Landlock, no memory controller", BOTH, [("root", "N", [SANDBOX])], RASPBERRY
    ),
    "no-users": Variant(
        "no user namespaces for anybody",
        {"root": "L", "maker": "L"},
        [("root", "L", [SANDBOX])],
        sysctl={"user.max_user_namespaces": "0"},
    ),
    "root-users": Variant(
        "user namespaces for root alone",
        {"root": "N", "maker": "L"},
        [("maker", "L", [SANDBOX])],
        sysctl={"kernel.unprivileged_userns_clone": "0"},
    ),
    "apparmor": Variant(
        "user namespaces refused by AppArmor",
        {"root": "N", "maker": "L"},
        [("maker", "L", CORE)],
        apparmor="capability,",
    ),
    "ubuntu": Variant(
        "user namespaces without capabilities, by AppArmor (Ubuntu 24.04)",
        {"root": "N", "maker": "L"},
        [("maker", "L", CORE)],
        apparmor="userns,",
    ),
    "neither": Variant(
        "no Landlock, no user namespaces",
        {"root": None, "maker": None},
        [("root", "", [SANDBOX + "/test_missing.py"])],
        NO_LANDLOCK,
        sysctl={"user.max_user_namespaces": "0"},
    ),
    "bookworm": Variant(
        "Linux 6.1 with Landlock ABI 2, Python 3.11",
        BOTH,
        [("root", "N", [SANDBOX])],
        suite="bookworm",
    ),
    "bookworm-no-users": Variant(
        "Landlock ABI 2 and no user namespaces",
        {"root": None, "maker": None},
        [("root", "", [SANDBOX + "/test_missing.py"])],
        sysctl={"user.max_user_namespaces": "0"},
        suite="bookworm",
    ),
    "v1": Variant(
        "control groups of version 1 alone",
        BOTH,
        [("root", "N", LIMITS)],
        suite="bookworm",
        cgroups="v1",
    ),
    "hybrid": Variant(
        "controllers in cgroup v1, groups in v2",
        BOTH,
        [("root", "N", LIMITS)],
        suite="bookworm",
        cgroups="hybrid",
    ),
    "hidepid": Variant(
        "/proc shows nobody the processes of others",
        BOTH,
        [("root", "NL", CORE)],
        proc="hidepid=invisible",
    ),
    # In L no supervisor may look into a call, so none changes modes and times (docs/sandbox.md):
    # test_modes.py is not for it.
    "yama": Variant(
        "nobody may trace anybody",
        BOTH,
        [("root", "NL", [one for one in CORE if "modes" not in one])],
        sysctl={"kernel.yama.ptrace_scope": "3"},
    ),
    "i386": Variant(
        "32-bit programs on x86_64, for which there is no table of system calls",
        {"root": None, "maker": None},
        [],
        userland="i386",
    ),
    "pi5": Variant(
        "64-bit ARM with pages of 16 KB, no Landlock, no memory controller",
        BOTH,
        [("root", "N", CORE)],
        RASPBERRY,
        kernel="arm64-16k",
    ),
    "arm64": Variant("64-bit ARM", BOTH, [("root", "NL", CORE)], kernel="arm64"),
    "armhf": Variant(
        "32-bit programs on 64-bit ARM",
        BOTH,
        [("root", "NL", CORE)],
        kernel="arm64",
        userland="armhf",
    ),
    "armv7": Variant("32-bit ARM", BOTH, [("root", "NL", CORE)], kernel="armhf"),
    "raspberry64": Variant(
        "64-bit ARM, no Landlock, no memory controller",
        BOTH,
        [("root", "N", CORE)],
        RASPBERRY,
        kernel="arm64",
    ),
    "raspberry32": Variant(
        "32-bit programs on 64-bit ARM, no Landlock, no memory controller",
        BOTH,
        [("root", "N", CORE)],
        RASPBERRY,
        kernel="arm64",
        userland="armhf",
    ),
}
LIMIT_S = 7200


def play(name: str, tests=None) -> tuple:
    """Run one variant; return (what went wrong, [lines of its report]).

    tests  pytest's arguments, [] for none; None: the variant's own
    """
    variant = VARIANTS[name]
    job = dict(
        variant.job,
        runs=[
            {"user": user, "profiles": profiles, "arguments": arguments if tests is None else tests}
            for user, profiles, arguments in variant.runs
            if tests != []
        ],
    )
    shown = virtual.run(
        variant.suite,
        variant.kernel,
        variant.userland,
        variant.options,
        json.dumps(job),
        virtual.TOP / (name + ".log"),
        LIMIT_S,
        ("apparmor",) if variant.job["apparmor"] else (),
    )
    wrong, lines, is_whole = [], ["%s: %s" % (name, variant.what)], False
    for line in shown.splitlines():
        kind, _, rest = line.partition(" ")
        said = json.loads(rest) if kind.startswith("@@") else {}
        if kind == "@@kernel":
            lines.append(
                "  Linux %(release)s %(machine)s, pages of %(page)s bytes, Python "
                "%(python)s of %(bits)s bits" % said
            )
        elif kind == "@@doctor":
            found = said.get("found", {})
            kept = [
                text.partition(" ")[0].rstrip(",") for text in (found.get("limits") or {}).values()
            ][:3]
            lines.append(
                "  %s: profile %s, limits by %s"
                % (said["user"], found.get("profile"), ", ".join(kept) or "nothing")
            )
            lines += [
                "    no %s: %s" % (missing, found["tried"][missing])
                for missing in found.get("missing", ())
            ]
            if found.get("profile") != variant.profiles[said["user"]]:
                wrong.append(
                    "%s: profile %s for %s, not %s"
                    % (name, found.get("profile"), said["user"], variant.profiles[said["user"]])
                )
        elif kind == "@@run":
            lines.append(
                "  %s: %s (%d s)"
                % (
                    said["user"],
                    ", ".join(
                        " ".join(one.split()[1::-1])
                        for one in said["lines"]
                        if not one.startswith("skipped")
                    ),
                    said["seconds"],
                )
            )
            lines += ["    " + one for one in said["lines"] if one.startswith("skipped")]
            if said["code"]:
                wrong.append("%s: tests of %s failed" % (name, said["user"]))
        is_whole = is_whole or kind == "@@end"
    if not is_whole:
        wrong.append(
            "%s: it %s; the last that it said: %s; all of it: %s"
            % (
                name,
                "did not come to its end"
                if len(lines) > 1
                else "did not boot to the end of its preparation",
                _last(shown),
                virtual.TOP / (name + ".log"),
            )
        )
    return wrong, lines


def _last(shown: str) -> str:
    return next(
        (line.strip()[-200:] for line in reversed(shown.splitlines()) if line.strip()), "nothing"
    )


def main(arguments: list) -> int:
    if "--list" in arguments:
        print("\n".join("%-12s %s" % (name, variant.what) for name, variant in VARIANTS.items()))
        return 0
    tests = [] if "--look" in arguments else CORE if "--core" in arguments else None
    for one in arguments:
        if one.startswith("--tests="):
            tests = ["%s/test_%s.py" % (SANDBOX, name) for name in one[8:].split(",")]
    arguments = [
        one
        for one in arguments
        if one not in ("--look", "--core") and not one.startswith("--tests=")
    ]
    unknown = [name for name in arguments if name not in VARIANTS]
    if unknown:
        print("no variant %s; there are: %s" % (unknown[0], ", ".join(VARIANTS)), file=sys.stderr)
        return 2
    os.makedirs(virtual.TOP, exist_ok=True)
    wrong = []
    for name in arguments or VARIANTS:
        start = time.monotonic()
        try:
            found, lines = play(name, tests)
        except (RuntimeError, OSError) as e:
            found, lines = ["%s: %s" % (name, e)], []
        wrong += found
        print("\n".join(lines + ["  %d s in all" % (time.monotonic() - start)]), flush=True)
    for line in wrong:
        print("WRONG " + line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
