"""The harness of ``make kernels``, without a machine: what it starts exists, and it does not
take a failure for a success.
"""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = [
    (
        "kernel",
        {"release": "6.12", "machine": "aarch64", "python": "3.13", "bits": 32, "page": 4096},
    ),
    ("doctor", {"user": "root", "found": {"profile": "N"}}),
    ("doctor", {"user": "maker", "found": {"profile": "N"}}),
    ("run", {"user": "root", "code": 0, "seconds": 3, "lines": ["passed 7"]}),
    ("end", {}),
]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests/kernels"))
    import run

    return run


def _said(monkeypatch, run, lines: list) -> tuple:
    shown = "".join("[ 1.0] noise\n@@%s %s\n" % (kind, json.dumps(what)) for kind, what in lines)
    monkeypatch.setattr(run.virtual, "run", lambda *arguments: shown)
    return run.play("armhf")


def test_what_is_run_exists(run):
    for variant in run.VARIANTS.values():
        assert variant.kernel in run.virtual.MACHINES and set(variant.profiles) == {"root", "maker"}
        assert all((ROOT / path).exists() for _, _, arguments in variant.runs for path in arguments)


def test_a_good_run(run, monkeypatch):
    wrong, lines = _said(monkeypatch, run, GOOD)
    assert (
        wrong == []
        and any("32 bits" in line for line in lines)
        and any("7 passed" in line for line in lines)
    )


@pytest.mark.parametrize(
    "index, what, said",
    [
        (1, {"user": "root", "found": {"profile": "L"}}, "profile L for root, not N"),
        (2, {"user": "maker", "found": {}}, "profile None for maker"),
        (
            3,
            {"user": "root", "code": 1, "seconds": 3, "lines": ["passed 6", "failed 1"]},
            "tests of root failed",
        ),
    ],
)
def test_what_is_wrong_is_said(run, monkeypatch, index, what, said):
    wrong, _ = _said(monkeypatch, run, GOOD[:index] + [(GOOD[index][0], what)] + GOOD[index + 1 :])
    assert len(wrong) == 1 and said in wrong[0]


@pytest.mark.parametrize("length", range(len(GOOD)))
def test_a_machine_that_stopped_is_no_success(run, monkeypatch, length):
    wrong, _ = _said(monkeypatch, run, GOOD[:length])
    assert (
        len(wrong) == 1
        and ("did not boot" if length == 0 else "did not come to its end") in wrong[0]
        and "armhf.log" in wrong[0]
    )
    assert (
        "the last that it said: %s" % ("nothing" if length == 0 else "@@" + GOOD[length - 1][0])
        in wrong[0]
    )


@pytest.mark.parametrize(
    "program, seconds, said",
    [
        ("exit 3", 60, "ended with 3"),
        ("echo no such device; exit 1", 60, "no such device"),
        ("exec sleep 60", 0, "not done in 0 s"),
        ("exec sleep 61", 60, "said nothing for 0 s"),
    ],
)
def test_a_machine_that_does_not_run_says_why(run, monkeypatch, tmp_path, program, seconds, said):
    monkeypatch.setattr(run.virtual, "SILENCE_S", 0 if "61" in program else 60)
    with pytest.raises(RuntimeError, match=said):
        run.virtual._watched(["sh", "-c", program], tmp_path / "x.log", seconds)


@pytest.mark.parametrize(
    "said",
    [
        "KVM internal error. Suberror: 1",
        "qemu-system-x86_64: error: failed to set MSR 0x10a to 0xc000069",
    ],
)
def test_a_kvm_that_does_not_work_is_no_machine_that_ended(run, tmp_path, said):
    assert run.virtual._is_broken(
        run.virtual._watched(["sh", "-c", "echo '%s'; exit 1" % said], tmp_path / "x.log", 60)
    )


def test_a_package_without_a_kernel(run, monkeypatch, tmp_path):
    monkeypatch.setattr(run.virtual.debs, "unpacked", lambda *arguments: tmp_path)
    with pytest.raises(RuntimeError, match="linux-image-armmp of trixie has no kernel"):
        run.virtual.run("trixie", "armhf", "armhf", "", "{}", tmp_path / "x.log", 1)


def test_arguments(run, monkeypatch, capsys, tmp_path):
    seen = []
    monkeypatch.setattr(run.virtual, "TOP", tmp_path)
    monkeypatch.setattr(run, "play", lambda name, tests: seen.append((name, tests)) or ([], [name]))
    assert (
        run.main(["--look", "v1"])
        == run.main(["--tests=limits,words", "v1", "pi5"])
        == run.main(["v1"])
        == 0
    )
    assert seen == [
        ("v1", []),
        *[
            (name, ["tests/linux/sandbox/test_limits.py", "tests/linux/sandbox/test_words.py"])
            for name in ("v1", "pi5")
        ],
        ("v1", None),
    ]
    assert (
        run.main(["--lok"]) == run.main(["v2"]) == 2 and "no variant v2" in capsys.readouterr().err
    )


def test_an_initramfs_is_what_the_kernel_reads(run, monkeypatch, tmp_path):
    (tmp_path / "u" / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "u" / "usr" / "bin" / "busybox").write_bytes(b"program")
    (tmp_path / "u.tar.gz").write_bytes(b"packed")
    monkeypatch.setattr(run.virtual, "CHECKOUT", ("pyproject.toml",))
    run.virtual._initrd(tmp_path / "initrd", tmp_path / "u.tar.gz", "{}")
    data, found, at = (tmp_path / "initrd").read_bytes(), {}, 0
    while "TRAILER!!!" not in found:
        words = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        assert data[at : at + 6] == b"070701"
        name, start = (
            data[at + 110 : at + 109 + words[11]].decode(),
            at + (110 + words[11] + 3) // 4 * 4,
        )
        found[name] = words[1], data[start : start + words[6]]
        at = start + (words[6] + 3) // 4 * 4
    assert (
        at == len(data)
        and found["busybox"] == (0o100755, b"program")
        and found["userland.tar.gz"] == (0o100644, b"packed")
    )
    assert (
        found["init"][1].startswith(b"#!/busybox")
        and b"checkout/pyproject.toml" in found["checkout.tar"][1]
    )
