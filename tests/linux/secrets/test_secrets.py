"""Secrets: where they are looked for, which are refused, and that no value ever shows."""

import logging
import os
import traceback

import pytest

from clawlite.linux.files.files import state_folder
from clawlite.linux.secrets import secrets
from clawlite.linux.secrets.secrets import (
    MAX_VALUE,
    SecretError,
    SecretMissing,
    names,
    remove,
    resolve,
    set_secret,
    stores,
)

AGENT = "greenhouse"
CANARY = "sk-canary-5f0e"


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    """A state folder and a mounted folder of this test's own; returns the latter."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("CLAW_SECRETS_DIR", str(mounted))
    monkeypatch.delenv("LLM_API_KEY", raising=False)
    return mounted


def look(name="LLM_API_KEY") -> str:
    return resolve(name, stores(AGENT))


def in_store(value: bytes, name="LLM_API_KEY", mode=0o600):
    path = os.path.join(state_folder(AGENT), "secrets", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(value)
    os.chmod(path, mode)
    return path


def refusal(function, *args) -> SecretError:
    with pytest.raises(SecretError) as caught:
        function(*args)
    assert_no_canary(caught.value)
    return caught.value


def assert_no_canary(error: BaseException):
    """The value is in no part of the error, nor in any error that it came from."""
    assert CANARY not in "".join(traceback.format_exception(error))
    while error is not None:
        assert (
            CANARY not in repr(error)
            and CANARY not in str(vars(error))
            and CANARY not in repr(error.args)
        )
        assert CANARY.encode() not in getattr(error, "object", b"")
        error = error.__cause__ or error.__context__


# -- where


def test_store_before_environment_before_mounted_folder(world, monkeypatch):
    (world / "LLM_API_KEY").write_text("mounted\n")
    assert look() == "mounted"
    monkeypatch.setenv("LLM_API_KEY", "environment")
    assert look() == "environment"
    set_secret(AGENT, "LLM_API_KEY", "store")
    assert look() == "store"


def test_missing_names_the_reference_the_places_and_what_to_do(world, tmp_path):
    error = refusal(look)
    assert isinstance(error, SecretMissing)
    for word in (
        "LLM_API_KEY",
        str(tmp_path / "state" / AGENT / "secrets"),
        "the environment",
        "$CLAW_SECRETS_DIR",
        str(world),
    ):
        assert word in error.message
    assert "export LLM_API_KEY=" in error.hint
    assert error.code == -32020


def test_missing_without_a_mounted_folder_says_so(monkeypatch):
    monkeypatch.delenv("CLAW_SECRETS_DIR")
    assert "$CLAW_SECRETS_DIR (not set)" in refusal(look).message


def test_an_empty_variable_is_refused_and_nobody_looks_further(monkeypatch, world):
    (world / "LLM_API_KEY").write_text("mounted\n")
    monkeypatch.setenv("LLM_API_KEY", "")
    error = refusal(look)
    assert (
        error.message == "the environment variable LLM_API_KEY: the secret is empty"
        and not isinstance(error, SecretMissing)
    )


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o464])
def test_a_mounted_file_that_others_can_write_is_refused(world, mode):
    path = world / "LLM_API_KEY"
    path.write_text(CANARY)
    os.chmod(path, mode)
    error = refusal(look)
    assert (
        str(path) in error.message
        and "others may change it" in error.message
        and error.hint.startswith("chmod 600 '%s'" % path)
    )
    os.chmod(path, 0o444)  # as container runtimes mount it
    assert look() == CANARY


def test_one_agent_does_not_see_the_secrets_of_another():
    set_secret("other", "LLM_API_KEY", CANARY)
    assert isinstance(refusal(look), SecretMissing)


# -- what is refused, and never replaced by what another place has


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o777])
def test_store_file_of_which_others_have_a_part_is_refused(mode, monkeypatch):
    monkeypatch.setenv("LLM_API_KEY", "environment")
    path = in_store(CANARY.encode(), mode=mode)
    error = refusal(look)
    assert path in error.message and error.hint.startswith("chmod 600 '%s'" % path)
    os.chmod(path, 0o600)
    assert look() == CANARY


@pytest.mark.parametrize(
    "value",
    [
        CANARY.encode() + b"\n\n",
        b"\n" + CANARY.encode(),
        CANARY.encode() + b"\r",
        b"a\rb",
        b"a\0b",
        b"\x7f" + CANARY.encode(),
        b"a\tb",
        CANARY.encode() + b"\xff",
        CANARY.encode() + b"\xed\xa0\x80",
        b"",
        b"\n",
        b"\r\n",
    ],
)
def test_value_that_could_break_a_header_is_refused(value, world, monkeypatch):
    (world / "LLM_API_KEY").write_text("mounted")
    path = in_store(value)
    assert refusal(look).message.startswith(path + ": ")
    if value and b"\0" not in value:
        os.unlink(path)
        monkeypatch.setitem(os.environb, b"LLM_API_KEY", value)
        assert refusal(look).message.startswith("the environment variable LLM_API_KEY: ")


@pytest.mark.parametrize(
    "value, text",
    [
        (b"sk-1", "sk-1"),
        (b"sk-1\n", "sk-1"),
        (b"sk-1\r\n", "sk-1"),
        (b" two words ", " two words "),
        ("schlüssel".encode(), "schlüssel"),
    ],
)
def test_one_newline_at_the_end_is_dropped(value, text):
    in_store(value)
    assert look() == text


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_length_of_a_value(end):
    for length in (1, MAX_VALUE - 1, MAX_VALUE):
        in_store(b"x" * length + end.encode())
        assert look() == "x" * length
    in_store(b"x" * (MAX_VALUE + 1) + end.encode())
    assert "at most %d bytes" % MAX_VALUE in refusal(look).message
    in_store(b"x" * (MAX_VALUE * 3))
    assert "at most %d bytes" % MAX_VALUE in refusal(look).message


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "...",
        ".hidden",
        ".FOO",
        "a/b",
        "../x",
        "a b",
        "a\n",
        "a\0b",
        "ä",
        "KEY~",
        "x" * 129,
    ],
)
def test_name_that_could_lead_elsewhere_is_refused(name):
    for function, args in (
        (look, (name,)),
        (set_secret, (AGENT, name, CANARY)),
        (remove, (AGENT, name)),
    ):
        assert "1 to 128 of A-Z a-z 0-9 _ . -" in refusal(function, *args).message


@pytest.mark.parametrize("name", ["a", "LLM_API_KEY", "x" * 128, "a.b-c_9", "a.", "_"])
def test_name_that_is_one(name):
    set_secret(AGENT, name, "v")
    assert look(name) == "v" and names(AGENT) == [name]


def test_folder_and_pipe_are_no_secrets(world):
    (world / "A").mkdir()
    os.mkfifo(world / "B")  # opening it as a file would wait for a writer
    assert refusal(look, "A").message == "%s: expected a file" % (world / "A")
    assert refusal(look, "B").message == "%s: expected a file" % (world / "B")


def test_file_that_may_not_be_read_is_told(world, monkeypatch):
    monkeypatch.setattr(
        secrets.os,
        "open",
        lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")),
    )
    assert refusal(look).message.endswith("LLM_API_KEY: Permission denied")


def test_mounted_file_may_be_a_link_with_any_mode(world, tmp_path):
    (tmp_path / "data").write_text("value")
    (tmp_path / "data").chmod(0o644)
    (world / "LLM_API_KEY").symlink_to(tmp_path / "data")
    assert look() == "value"


# -- the store


def test_store_is_for_its_owner_alone(tmp_path):
    old = os.umask(0)
    try:
        set_secret(AGENT, "A", CANARY)
        set_secret(AGENT, "A", CANARY + "2")
    finally:
        os.umask(old)
    folder = tmp_path / "state" / AGENT / "secrets"
    assert [p.name for p in folder.iterdir()] == ["A"]
    modes = [(p.stat().st_mode & 0o777) for p in (folder.parent, folder, folder / "A")]
    assert modes == [0o700, 0o700, 0o600]
    assert look("A") == CANARY + "2"


def test_wide_folder_is_narrowed_and_a_draft_of_a_power_cut_is_no_hindrance(tmp_path):
    folder = tmp_path / "state" / AGENT / "secrets"
    folder.mkdir(parents=True, mode=0o755)
    (folder / "A~").write_text("half")
    assert names(AGENT) == []
    set_secret(AGENT, "A", "whole")
    assert (folder.stat().st_mode & 0o777, names(AGENT), look("A")) == (0o700, ["A"], "whole")


def test_names_are_sorted_and_remove_forgets():
    assert names(AGENT) == []
    for name in ("b", "a", "c"):
        set_secret(AGENT, name, "v")
    assert names(AGENT) == ["a", "b", "c"]
    remove(AGENT, "b")
    assert names(AGENT) == ["a", "c"]
    assert isinstance(refusal(remove, AGENT, "b"), SecretMissing)


@pytest.mark.parametrize(
    "value", ["", "a\nb", CANARY + "\r", CANARY + "\0", CANARY + "\ud800", "x" * (MAX_VALUE + 1)]
)
def test_set_refuses_what_could_not_be_used(value):
    set_secret(AGENT, "A", "old")
    refusal(set_secret, AGENT, "A", value)
    assert look("A") == "old"


def test_nothing_is_logged_or_printed(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    set_secret(AGENT, "A", CANARY)
    assert look("A") == CANARY
    assert caplog.text == "" and capfd.readouterr() == ("", "")
    assert CANARY not in repr(stores(AGENT))


@pytest.mark.parametrize("value", ["", " ", "  \n", "\u00a0"])
def test_a_value_of_nothing_but_blanks_is_no_secret(tmp_path, monkeypatch, value):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    with pytest.raises(SecretError, match="the secret is (empty|blank)"):
        set_secret("agent", "KEY", value)
    assert names("agent") == []
