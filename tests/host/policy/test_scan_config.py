"""What policies and the sandbox want looked at, compiled (clawlite/host/policy/scan_config.py):
the strictest of several, and what is left out.
"""

import types

import pytest

from clawlite.core.image.scan_config import (
    BLOCK,
    INPUT,
    MARK,
    NOTE,
    OUTPUT,
    REDACT,
    STOP,
    WARN,
    ScanConfig,
)
from clawlite.host.policy import scan_config
from clawlite.host.policy.scan_config import KINDS

BOTH = INPUT | OUTPUT


class Block:
    """A block of a policy: fields that were not given are None."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        return None


class Manifest:
    def __init__(self, *policies, secrets=None):
        self.policies = [
            types.SimpleNamespace(name="p%d" % number, spec=Block(**policy))
            for number, policy in enumerate(policies)
        ]
        self.sandbox = (
            types.SimpleNamespace(spec=Block(capabilities=Block(secrets=secrets)))
            if secrets
            else None
        )
        self.providers = [types.SimpleNamespace(spec=Block(auth=Block(secret_ref="MODEL")))]
        self.channels = [
            types.SimpleNamespace(spec=Block(auth=None)),
            types.SimpleNamespace(spec=Block(auth=Block(secret_ref="CONSOLE"))),
        ]
        self.problems = []
        self.settings = Block(audit=Block(), memory=Block())

    def problem(self, *said, **more):
        self.problems.append(said)


class Pool:
    def add(self, pattern):
        return 7


def compiled(*policies, secrets=None):
    manifest = Manifest(*policies, secrets=secrets)
    record = scan_config.section(manifest, Pool())
    assert not manifest.problems
    return record and ScanConfig(record)


def abilities(manifest) -> set:
    return {ability for ability, _, _ in scan_config.list_wanted_abilities(manifest)}


@pytest.mark.parametrize(
    "policies",
    [
        (),
        ({},),
        ({"secret_scanning": Block(enabled=False)},),
        ({"prompt_injection": Block(detection="none")},),
        ({"prompt_injection": Block(action="ignore")},),
    ],
)
def test_nothing_is_wanted(policies):
    assert compiled(*policies) is None and abilities(Manifest(*policies)) == set()


def test_what_is_left_out_is_strict():
    found = compiled(
        {
            "prompt_injection": Block(),
            "secret_scanning": Block(),
            "input_validation": Block(),
            "audit": Block(),
        }
    )
    assert (
        found.injection[:2] == [STOP, 7]
        and found.leaks == [BOTH, REDACT]
        and found.checks == [None, False, False, "utf-8"]
    )
    assert (
        found.audit == [True, False, True, None, "file", None]
        and found.references == ["CONSOLE", "MODEL"]
        and not found.encrypted
    )


def test_of_several_policies_the_strictest_of_each():
    def block(name, *fields):
        return compiled(*[{name: Block(**one)} for one in fields])

    assert (
        block(
            "prompt_injection", {"action": "log-only"}, {"action": "warn"}, {"detection": "none"}
        ).injection[0]
        == MARK
    )
    assert block("prompt_injection", {"action": "log-only"}).injection[0] == NOTE
    assert block(
        "secret_scanning",
        {"scope": "input", "action": "warn"},
        {"scope": "output", "action": "redact"},
    ).leaks == [BOTH, REDACT]
    assert block(
        "secret_scanning", {"scope": "input", "action": "warn"}, {"enabled": False}
    ).leaks == [INPUT, WARN]
    assert block(
        "secret_scanning",
        {"scope": "output", "action": "redact"},
        {"action": "block", "scope": "output"},
    ).leaks == [OUTPUT, BLOCK]
    assert block(
        "input_validation",
        {"max_size_bytes": 9, "encoding": "UTF-8"},
        {"max_size_bytes": 5, "null_byte_detection": True},
        {"encoding": "ascii", "whitespace_analysis": True},
    ).checks == [5, True, True, "ascii"]
    assert block(
        "audit",
        {"log_inputs": False, "retention": "2h"},
        {"log_inputs": False, "log_outputs": True, "log_approvals": False, "retention": "1d"},
    ).audit == [False, True, True, 86400, "file", None]
    assert block("audit", {"retention": "30s"}, {"destination": "file"}).audit[3] is None, (
        "one of them keeps them for ever"
    )


def test_a_sandbox_asks_too():
    found = compiled(
        {"secret_scanning": Block(scope="input", action="warn")},
        secrets=Block(leak_detection=Block(enabled=True, patterns=len(KINDS))),
    )
    assert found.leaks == [BOTH, REDACT]
    assert (
        compiled(secrets=Block(leak_detection=Block())).leaks == [OUTPUT, REDACT]
        and compiled(secrets=Block(leak_detection=Block(enabled=False))) is None
    )
    assert compiled(secrets=Block(encryption="aes-256-gcm")).encrypted


def test_abilities():
    assert abilities(Manifest({"audit": Block()})) == {"audit"}
    assert abilities(Manifest({"input_validation": Block(), "audit": Block()})) == {
        "audit",
        "guard",
    }
    assert abilities(Manifest(secrets=Block(leak_detection=Block()))) == {"guard"}
    assert abilities(Manifest(secrets=Block(encryption="aes-256-gcm"))) == {"encryption"}
    assert abilities(Manifest({"prompt_injection": Block(detection="hybrid")})) == {
        "guard",
        "guard-model",
    }


@pytest.mark.parametrize(
    "policies, secrets, path",
    [
        (
            ({"secret_scanning": Block(patterns=len(KINDS) + 1)},),
            None,
            ("secret_scanning", "patterns"),
        ),
        (
            ({"audit": Block(destination="file")}, {"audit": Block(destination="sqlite")}),
            None,
            ("audit", "destination"),
        ),
        (
            ({"prompt_injection": Block(pattern_count=scan_config.PHRASES + 1)},),
            None,
            ("prompt_injection", "pattern_count"),
        ),
        (({},), Block(encryption="rot13"), ("capabilities", "secrets", "encryption")),
        (
            ({},),
            Block(leak_detection=Block(patterns=len(KINDS) + 1)),
            ("capabilities", "secrets", "leak_detection", "patterns"),
        ),
    ],
)
def test_what_cannot_be_is_a_problem(policies, secrets, path):
    manifest = Manifest(*policies, secrets=secrets)
    scan_config.section(manifest, Pool())
    assert [said[1] for said in manifest.problems] == [path]
