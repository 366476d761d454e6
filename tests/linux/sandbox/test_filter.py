"""The filters, for every machine: run by an interpreter of classic BPF, so that what no test
machine is can be asked too.
"""

import itertools
import struct

import pytest

from clawlite.linux.confinement import seccomp
from clawlite.linux.confinement.seccomp import ALLOW, ERRNO, KILL_PROCESS, Rules
from clawlite.linux.confinement.syscalls import AARCH64, ARM, AUDIT_ARCH, CEILING, TABLES, X86_64

RULES = [Rules(*flags) for flags in itertools.product((False, True), repeat=4)]
PLAIN = Rules(False, False, True, True)


def _run(code: bytes, arch: int, number: int, arguments: tuple) -> int:
    """Return what the filter *code* answers (Documentation/networking/filter.rst)."""
    data = struct.pack(
        "<IIQ6Q",
        number,
        arch,
        0,
        *[a & (1 << 64) - 1 for a in arguments + (0,) * (6 - len(arguments))],
    )
    a, at, steps = 0, 0, 0
    while True:
        steps += 1
        assert steps < 4096
        op, true, false, k = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if op == 0x20:
            a = struct.unpack_from("<I", data, k)[0]
        elif op == 0x54:
            a &= k
        elif op == 0x06:
            return k
        else:
            hit = {0x15: a == k, 0x35: a >= k, 0x45: bool(a & k)}[op]
            at += true if hit else false


def _says(machine: str, name_or_number, *arguments, rules=PLAIN, arch=None) -> int:
    """Return the answer of both filters together: the kernel takes the stricter one."""
    number = (
        TABLES[machine].get(name_or_number) if isinstance(name_or_number, str) else name_or_number
    )
    assert number is not None
    answers = [
        _run(code, AUDIT_ARCH[machine] if arch is None else arch, number, arguments)
        for code in (seccomp.common(machine), seccomp.own(rules, machine))
    ]
    return min(answers, key=lambda one: -1 if one == KILL_PROCESS else one)


def _has(machine: str, name: str) -> bool:
    return name in TABLES[machine]


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_every_name_that_is_refused_has_a_number(machine):
    known = set().union(*[set(table) for table in TABLES.values()])
    names = set(
        seccomp._NEVER
        + sum(seccomp._UNCOUNTED.values(), seccomp._SENT)
        + seccomp._BY_PATH
        + seccomp._ATTRIBUTES
        + seccomp._ASKED
        + seccomp._OF_SELF
        + seccomp._SIGNALS
    )
    assert names <= known
    for name in names & set(TABLES[machine]) & set(seccomp._NEVER):
        assert _says(machine, name) & 0xFFFF0000 == ERRNO


def test_the_clock_of_32_bits_is_not_set_by_its_second_number():
    """A 32-bit machine has two calls for what has a time in it, the old one and one with 64 bits
    (asm-generic/unistd.h, 403 to 423).
    """
    assert [_says(ARM, number) for number in (404, 405)] == [ERRNO | 1] * 2
    assert [_says(ARM, number) for number in (403, 406, 407, 412, 413, 414, 422)] == [ALLOW] * 7


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_another_calling_convention_ends_the_process(machine):
    for other in [a for m, a in AUDIT_ARCH.items() if m != machine] + [0x40000003, 0]:
        assert _says(machine, 1, arch=other) == KILL_PROCESS


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_numbers_from_the_ceiling_on_do_not_exist(machine):
    assert _says(machine, CEILING - 20) == ALLOW
    for number in (CEILING, CEILING + 1, 0x40000000, 0x40000029, 0xFFFFFFFF):
        assert _says(machine, number) == ERRNO | 38
    for number, said in (
        (0xF0000, ERRNO | 38),
        (0xF0001, ALLOW),
        (0xF0005, ALLOW),
        (0xF0006, ALLOW),
        (0xF0007, ERRNO | 38),
    ):
        assert _says(machine, number) == (said if machine == ARM else ERRNO | 38)


@pytest.mark.parametrize("machine", sorted(TABLES))
@pytest.mark.parametrize(
    "rules",
    RULES,
    ids=lambda r: "".join("01"[f] for f in (r.network, r.landlock, r.signals, r.counted)),
)
def test_what_programs_live_on_stays(machine, rules):
    numbers = {
        X86_64: (0, 1, 2, 3, 9, 12, 57, 58, 59, 60, 61, 202, 231, 257, 334),
        AARCH64: (56, 57, 63, 64, 93, 94, 98, 221, 222, 260, 291),
        ARM: (1, 2, 3, 4, 5, 6, 11, 45, 114, 190, 192, 248, 322),
    }[machine]
    assert [_says(machine, number, rules=rules) for number in numbers] == [ALLOW] * len(numbers)
    assert _says(machine, "clone", 0x01200011, rules=rules) == ALLOW  # fork
    assert _says(machine, "clone", 0x003D0F00, rules=rules) == ALLOW  # a thread
    assert _says(machine, "socketpair", 1, 1 | 0o2000000, 0, rules=rules) == ALLOW
    assert _says(machine, "prlimit64", 0, 7, 0, 0, rules=rules) == ALLOW
    assert _says(machine, "kill", 0, 15, rules=rules) == ALLOW


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_namespaces_by_flag(machine):
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert _says(machine, "clone", flag | 17) == _says(machine, "unshare", flag) == ERRNO | 1
        assert _says(machine, "clone", flag | 17 | 1 << 40) == ERRNO | 1
    assert (
        _says(machine, "unshare", 0x80) == ERRNO | 1 and _says(machine, "unshare", 0x200) == ALLOW
    )


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_half_a_register_is_compared(machine):
    assert (
        _says(machine, "ioctl", 0, 0x5412 | 7 << 32) == ERRNO | 1
        and _says(machine, "ioctl", 0, 0x5413) == ALLOW
    )
    assert _says(machine, "personality", 0xFFFFFFFF) == ALLOW == _says(machine, "personality", 0)
    assert _says(machine, "personality", 0x40000) == ERRNO | 1
    assert _says(machine, "socketpair", 1 | 1 << 32, 2, 0) == ERRNO | 13


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_modes_with_set_user_id_or_set_group_id(machine):
    for name, index in seccomp._MODES.items():
        for mode in (0o4755, 0o2755, 0o106000) if _has(machine, name) else ():
            assert _says(machine, name, *[0] * index, mode) == ERRNO | 1
            assert _says(machine, name, *[0] * index, mode & ~0o6000) == ALLOW
    for name, index in seccomp._OPENS.items():
        for flags in (seccomp.O_CREAT, seccomp.O_TMPFILE) if _has(machine, name) else ():
            assert (
                _says(machine, name, *[0] * index, flags, 0o4755)
                == _says(machine, name, *[0] * index, flags | 1, 0o2000)
                == ERRNO | 1
            )
            assert (
                _says(machine, name, *[0] * index, flags, 0o1777)
                == _says(machine, name, *[0] * index, 2, 0o4755)
                == ALLOW
            )
    assert _says(machine, "openat2") == ERRNO | 38


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_sockets(machine):
    net = Rules(True, False, True, True)
    for family, kind, proto in itertools.product(
        (1, 2, 10, 16, 17, 38, 40), (1, 2, 3, 5), (0, 6, 17, 262)
    ):
        assert _says(machine, "socket", family, kind, proto) == ERRNO | 13
        allowed = family in (2, 10) and kind == 1 and proto in (0, 6)
        assert (_says(machine, "socket", family, kind, proto, rules=net) == ALLOW) is allowed
    assert (
        _says(machine, "connect", 3) == ERRNO | 13
        and _says(machine, "connect", 3, rules=net) == ALLOW
    )


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_neighbours_in_profile_l(machine):
    one, two = Rules(False, True, True, True), Rules(False, True, False, True)
    for name in seccomp._BY_PATH:
        if _has(machine, name):
            assert _says(machine, name, rules=one) == ERRNO | 1
    for asks, answer in ((True, seccomp.NOTIFY), (False, ERRNO | 1)):
        code = seccomp.files(machine, asks)
        for name in seccomp._ASKED:
            if _has(machine, name):
                assert _run(code, AUDIT_ARCH[machine], TABLES[machine][name], (3, 0)) == answer
        for name in seccomp._ATTRIBUTES:
            assert _run(code, AUDIT_ARCH[machine], TABLES[machine][name], (3,)) == ERRNO | 95
        for flags in seccomp.FLAGS:
            assert (
                _run(code, AUDIT_ARCH[machine], TABLES[machine]["ioctl"], (3, flags)) == ERRNO | 1
            )
        assert _run(code, AUDIT_ARCH[machine], TABLES[machine]["ioctl"], (3, 0x5401)) == ALLOW
    for name in seccomp._OF_SELF:
        assert (
            _says(machine, name, 1234, rules=one) == ERRNO | 1
            and _says(machine, name, 0, rules=one) == ALLOW
        )
    assert _says(machine, "setpriority", 0, 0, rules=one) == ALLOW
    for which, who in ((0, 5), (1, 0), (2, 0)):
        assert _says(machine, "setpriority", which, who, rules=one) == ERRNO | 1
    assert [_says(machine, "ioprio_set", which, 0, rules=one) for which in (1, 2, 3)] == [
        ALLOW,
        ERRNO | 1,
        ERRNO | 1,
    ]
    assert [_says(machine, "fcntl", 0, cmd, rules=one) for cmd in (8, 10, 15, 2)] == [
        ERRNO | 1
    ] * 3 + [ALLOW]
    assert _says(machine, "kill", 1234, 9, rules=one) == ALLOW
    for name in seccomp._SIGNALS:
        assert _says(machine, name, 1234, 9, rules=two) == ERRNO | 1
    assert _says(machine, "kill", -1, 9, rules=two) == ERRNO | 1


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_the_supervisor_in_profile_n(machine):
    for name in seccomp._OF_SELF:
        assert [_says(machine, name, pid) for pid in (1, 1 | 1 << 32, 0, 7)] == [
            ERRNO | 1,
            ERRNO | 1,
            ALLOW,
            ALLOW,
        ]
    assert [
        _says(machine, "setpriority", *one)
        for one in ((0, 1), (2, 0), (2, 9), (0, 0), (0, 7), (1, 0))
    ] == [ERRNO | 1] * 3 + [ALLOW] * 3
    assert [_says(machine, "ioprio_set", *one) for one in ((1, 1), (3, 0), (1, 0), (1, 7))] == [
        ERRNO | 1
    ] * 2 + [ALLOW] * 2


UNCOUNTED = Rules(False, False, True, False)


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_memory_that_no_process_has_mapped(machine):
    for errno, names in seccomp._UNCOUNTED.items():
        for name in names:
            if _has(machine, name):
                assert (
                    _says(machine, name) == ALLOW
                    and _says(machine, name, rules=UNCOUNTED) == ERRNO | errno
                )
    net = Rules(True, False, True, False)
    for name in seccomp._SENT:
        assert (
            _says(machine, name),
            _says(machine, name, rules=UNCOUNTED),
            _says(machine, name, rules=net),
        ) == (ALLOW, ERRNO | 13, ALLOW)
    for name in seccomp._ATTRIBUTES:
        assert _says(machine, name) == ALLOW and _says(machine, name, rules=UNCOUNTED) == ERRNO | 95


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_what_a_look_would_not_find(machine):
    """Descriptors in tables of a thread's own, longer pipes, filters and tables of the kernel's,
    and hiding.
    """
    cases = [
        ("unshare", (0x400,), 1),
        ("unshare", (0x200,), None),
        ("close_range", (3, 9, 2), 22),
        ("close_range", (3, 9, 4), None),
        ("clone", (0x10900,), 1),
        ("clone", (0x3D0F00,), None),
        ("clone", (0x4111,), None),
        ("fcntl", (3, 1031), 1),
        ("fcntl", (3, 1032), None),
        ("prctl", (22, 2), 22),
        ("prctl", (77,), None),
        ("prctl", (78, 1), 22),
        ("prctl", (0x53564D41, 0), None),
        ("prctl", (0x59616D61, 1), None),
        ("prctl", (0x60000000,), 22),
        ("prctl", (4, 0), 0),
        ("prctl", (4, 1), None),
        ("prctl", (15,), None),
        ("setsockopt", (3, 1, 26), 95),
        ("setsockopt", (3, 1, 60), 95),
        ("setsockopt", (3, 6, 26), None),
    ]
    for name, arguments, errno in cases:
        said = _says(machine, name, *arguments, rules=UNCOUNTED)
        assert said == (ALLOW if errno is None else ERRNO | errno), (name, arguments)
        assert _says(machine, name, *arguments) == ALLOW


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_shared_memory_without_a_file(machine):
    uncounted, name = Rules(False, False, True, False), "mmap" if _has(machine, "mmap") else "mmap2"
    for flags in (0x21, 0x23, 0x4021, 0x21 | 1 << 32):
        assert (
            _says(machine, name, 0, 4096, 3, flags, rules=uncounted) == ERRNO | 1
            and _says(machine, name, 0, 4096, 3, flags) == ALLOW
        )
    for flags in (0x22, 1, 2, 3, 0x20 | 0x4000 | 2, 0x32):
        assert _says(machine, name, 0, 4096, 3, flags, rules=uncounted) == ALLOW


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_buffers_of_sockets_stay_as_long_as_they_are(machine):
    uncounted = Rules(False, False, True, False)
    for option in seccomp.BUFFERS:
        assert (
            _says(machine, "setsockopt", 3, 1, option, rules=uncounted) == ERRNO
            and _says(machine, "setsockopt", 3, 1, option) == ALLOW
        )
    for level, option in ((1, 2), (1, 6), (1, 9), (1, 31), (6, 7), (0, 8), (41, 33)):
        assert _says(machine, "setsockopt", 3, level, option, rules=uncounted) == ALLOW
