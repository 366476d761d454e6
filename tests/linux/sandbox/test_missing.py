"""With each mechanism missing: contained by the other profile, or refused with -32010.  Never a
quiet pass.
"""

import os

import pytest
from sandbox_places import host
from sandboxes import Player, profile

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.sandbox.engine import Engine
from clawlite.linux.sandbox.jobs import Command

# faults -> the profiles that go without what they take away; of those the first that this kernel
# lets be built (tests/kernels)
PROFILES = {
    (): "NL",
    ("userns",): "L",
    ("mount",): "L",
    ("mount_setattr",): "L",
    ("landlock",): "N",
    ("openat2",): "NL",
    ("seccomp",): "",
    ("userns", "landlock"): "",
    ("mount", "landlock"): "",
    ("userns", "landlock", "seccomp"): "",
    ("userns", "openat2"): "L",
}
HERE = os.environ.get("CLAWLITE_PROFILES", "NL")


@pytest.mark.parametrize("user", ["user", "root"])
@pytest.mark.parametrize(
    "faults", sorted(PROFILES), ids=lambda faults: "-".join(faults) or "nothing"
)
def test_contained_or_refused(faults, user):
    expected = next((one for one in PROFILES[faults] if one in HERE), None)
    with host("N", user == "root", list(faults)) as place:
        job = [
            "command",
            [
                "sh",
                "-c",
                "cat %s/out/secret; echo x > made; echo end" % place.folder,
            ],
        ]
        good, value = place.run(job, denied=[str(place.folder / "out")])
        report = place.ask(report=True)
        assert report["profile"] == expected
        if expected:
            assert good and "canary" not in value["output"] and value["output"].endswith("end\n")
            assert report["call_ms"] > 0 and set(report["limits"]) == {
                "memory_mb",
                "cpu_shares",
                "max_processes",
                "max_open_files",
                "timeout_ms",
                "max_output_bytes",
            }
            good, error = place.run(job, network=2)
            assert good is (expected == "N")
            if expected == "L":
                assert (
                    error[1] == -32010 and "network-namespace" in error[4]["missing"] and error[3]
                )
        else:
            assert not good
            name, code, message, hint, data = value
            assert (
                (name, code, data["sandbox"], data["required"])
                == ("SandboxDenied", -32010, "t", "process")
                and hint
                and data["reason"]
            )
            assert set(data["missing"]) >= set(faults) & {
                "userns",
                "landlock",
                "seccomp",
            } and not set(data["missing"]) & set(data["available"])
            assert not (place.folder / "ws" / "made").exists()
            assert report["call_ms"] is None


def test_tools_are_never_root():
    if os.geteuid():
        pytest.skip("not root here")
    engine = Engine("/nonexistent", [], uid=0)
    good, error = Player(engine).run(profile(), Command(["true"]))
    engine.close()
    assert not good and isinstance(error, SandboxDenied)


def test_children_with_network_need_a_proxy(tmp_path):
    engine = Engine(str(tmp_path))
    good, error = Player(engine).run(profile(network=1), Command(["true"]))
    engine.close()
    assert not good and error.code == -32010 and error.data["missing"] == ["proxy"]
