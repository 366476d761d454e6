"""claw:// URIs: the grammar of CKP 0.2.0, 7, its cases, and its bounds."""

from clawlite.core.base.errors import InvalidParams
from clawlite.core.base.uri import KINDS, MAX_NAME, MAX_URI, URI, canonical, is_semver, parse


def refused(uri, alias=False):
    try:
        parse(uri, alias)
    except InvalidParams as e:
        return e.message
    raise AssertionError("accepted: %r" % (uri,))


def test_the_examples_of_section_7():
    assert parse("claw://local/identity/research-assistant") == URI(
        "local", "identity", None, "research-assistant", None
    )
    assert parse("claw://local/tool/web-fetch@1.2.0") == URI(
        "local", "tool", None, "web-fetch", "1.2.0"
    )
    assert parse("claw://registry/community-skills/deep-research@2.0.0") == URI(
        "registry", None, "community-skills", "deep-research", "2.0.0"
    )
    assert parse("claw://swarm/analysis-team", alias=True) == parse(
        "claw://local/swarm/analysis-team"
    )


def test_telemetry_and_world_model_are_kinds():  # URI-06
    for uri in ("claw://local/telemetry/obs", "claw://local/world-model/env"):
        assert canonical(parse(uri)) == uri


def test_an_alias_has_no_version():  # URI-05
    assert "short form" in refused("claw://tool/web-fetch@1.2.0", alias=True)
    refused("claw://tool/web-fetch@1.2.0")


def test_an_alias_is_refused_where_only_canonical_forms_are_spoken():
    assert "canonical" in refused("claw://tool/web-fetch")


def test_a_registry_uri_always_has_its_version():
    assert "VERSION" in refused("claw://registry/ns/name")


def test_what_is_not_of_the_grammar():
    for uri in (
        "",
        "claw:",
        "claw://",
        "claw:///",
        "claw://local",
        "claw://local/",
        "claw://local/tool",
        "claw://local/tool/",
        "claw://local/tool/a/b",
        "claw://local/claw/a",
        "claw://local/Tool/a",
        "CLAW://local/tool/a",
        "claw://LOCAL/tool/a",
        "claw://local/tool/a_b",
        "claw://local/tool/a b",
        "claw://local/tool/a.b",
        "claw://local/tool/\u00e4",
        "claw://local/tool/a@",
        "claw://local/tool/a@1",
        "claw://local/tool/a@1.0",
        "claw://local/tool/a@1.0.0.0",
        "claw://local/tool/a@v1.0.0",
        "claw://local/tool/a@1.0.0-",
        "claw://local/tool/a@1.0.0+b",
        "claw://local/tool/a@1.0.0@1.0.0",
        "claw://local/tool/@1.0.0",
        "claw://local/tool/a?x",
        "claw://local/tool/a#x",
        "claw://local/tool/a\n",
        " claw://local/tool/a",
        "claw://registry/ns/a@1",
        "claw://registry//a@1.0.0",
        "claw://registry/n_s/a@1.0.0",
        "claw://registry/a@1.0.0",
        "claw://remote/tool/a",
        "mcp://server",
        "claw:/local/tool/a",
        "claw://local/tool/\u0661",
        None,
        5,
        b"claw://local/tool/a",
        ["claw://local/tool/a"],
    ):
        refused(uri, alias=True)


def test_versions():
    for text in ("0.0.0", "1.2.3", "01.2.3", "10.20.30", "1.0.0-rc.1", "1.0.0--", "1.0.0-a.B-9"):
        assert is_semver(text), text
    for text in (
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "1..3",
        "1.2.",
        "a.b.c",
        "1.2.3-",
        "1.2.3-\u00e4",
        "1.2.3+1",
        " 1.2.3",
        "-1.2.3",
    ):
        assert not is_semver(text), text


def test_bounds():
    assert parse("claw://local/tool/" + "n" * MAX_NAME).name == "n" * MAX_NAME
    assert parse("claw://local/tool/n").name == "n"
    refused("claw://local/tool/" + "n" * (MAX_NAME + 1))
    assert parse("claw://registry/" + "s" * MAX_NAME + "/a@1.0.0").namespace == "s" * MAX_NAME
    refused("claw://registry/" + "s" * (MAX_NAME + 1) + "/a@1.0.0")
    head = "claw://local/tool/a@1.0.0-"
    assert len(parse(head + "9" * (MAX_URI - len(head) - 1)).version) > 200
    assert canonical(parse(head + "9" * (MAX_URI - len(head)))) == head + "9" * (
        MAX_URI - len(head)
    )
    refused(head + "9" * (MAX_URI - len(head) + 1))


class Numbers:
    """A small generator of its own, so that every runtime sees the same cases."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 75 + 74) % 65537
        return self.state % n


def test_canonical_and_parse_are_inverse():
    numbers = Numbers(1)
    letters = "abcXYZ019-"
    for _ in range(300):
        name = "".join(
            [letters[numbers.below(len(letters))] for _ in range(1 + numbers.below(MAX_NAME))]
        )
        version = (None, "0.0.1", "12.0.3-rc.1")[numbers.below(3)]
        local = URI("local", KINDS[numbers.below(len(KINDS))], None, name, version)
        assert parse(canonical(local)) == local
        far = URI("registry", None, name[:20] + ".", name, version or "1.0.0")
        assert parse(canonical(far)) == far


def test_damage_is_refused_or_canonical():
    """Whatever a changed character makes of a URI: it is refused, or it reads back as what it
    says.
    """
    numbers = Numbers(2)
    for start in ("claw://local/tool/web-fetch@1.2.0", "claw://registry/clawlite/adc-read@1.0.0"):
        for _ in range(500):
            spot = numbers.below(len(start))
            text = start[:spot] + chr(numbers.below(128)) + start[spot + numbers.below(2) :]
            try:
                found = parse(text)
            except InvalidParams:
                continue
            assert canonical(found) == text
