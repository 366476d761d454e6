"""``clawlite secrets`` and the encrypted store (clawlite/linux/admin/secrets.py,
linux/secrets/encrypted_store.py).
"""

import builtins
import os

import pytest
from agents import Agent, clawlite, linux

from clawlite.linux.secrets import encrypted_store, secrets

VALUE = "the v4lue of " + "a secret"


def _key(folder, data: bytes = b"k" * 32, mode: int = 0o600):
    path = folder / "key"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def _secrets(tmp_path, *args, stdin: bytes = b"", **more):
    return clawlite(
        "secrets", *args, cwd=tmp_path, stdin=stdin, CLAWLITE_STATE=tmp_path / "state", **more
    )


def test_set_list_and_remove(tmp_path):
    done = _secrets(tmp_path, "set", "KEY", "--agent", "a", stdin=VALUE.encode() + b"\n")
    assert done.returncode == 0 and done.stdout == "a keeps KEY\n", done.stderr
    path = tmp_path / "state/a/secrets/KEY"
    assert (
        path.read_text() == VALUE
        and path.stat().st_mode & 0o777 == 0o600
        and path.parent.stat().st_mode & 0o777 == 0o700
    )
    assert (
        _secrets(tmp_path, "list", "--agent", "a", "--json").stdout
        == '[{"name":"KEY","encrypted":false}]\n'
    )
    assert _secrets(tmp_path, "list", "--agent", "b", "--json").stdout == "[]\n"
    done = _secrets(tmp_path, "list", "--agent", "b")
    said = "b has no secrets; set one with: clawlite secrets set NAME\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    assert _secrets(tmp_path, "remove", "KEY", "--agent", "a").returncode == 0 and not path.exists()
    done = _secrets(tmp_path, "remove", "KEY", "--agent", "a", "--json")
    assert done.returncode == 1 and "there is no" in done.stderr and '"error"' in done.stdout


def test_the_agent_is_that_of_the_manifest(tmp_path):
    (tmp_path / "claw.yaml").write_text(
        'claw: "0.3.0"\nkind: Claw\nmetadata: { name: named-here, '
        'version: "1.0.0" }\nspec:\n'
        "  identity: { inline: { personality: x } }\n"
        "  providers: [ { inline: { protocol: custom, endpoint: "
        '"builtin:reflex", model: x, auth: { type: none } } } ]\n'
    )
    done = _secrets(tmp_path, "set", "KEY", stdin=b"x1")
    assert done.stdout == "named-here keeps KEY\n", done.stderr


@pytest.mark.parametrize(
    "args, stdin",
    [
        (("set", "../x", "--agent", "a"), b"v"),
        (("set", "KEY", "--agent", "a"), b""),
        (("set", "KEY", "--agent", "a"), b"a\nb"),
        (("set", "KEY", "--agent", "a"), b"\xff" + VALUE.encode()),
        (("set", "KEY", "--agent", "a"), b"x" * (secrets.MAX_VALUE + 1)),
    ],
)
def test_what_is_no_secret_is_refused_and_not_shown(tmp_path, args, stdin):
    done = _secrets(tmp_path, *args, stdin=stdin)
    assert (
        done.returncode == 1
        and VALUE not in done.stderr + done.stdout
        and "Traceback" not in done.stderr
    )
    assert (
        _secrets(tmp_path, "set", "KEY", "--agent", "a", stdin=b"x" * secrets.MAX_VALUE).returncode
        == 0
    )


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("set",),
        ("show", "KEY"),
        ("list", "a", "b"),
        ("list", "--agent", "../x"),
        ("set", "KEY", "--agent"),
        ("list", "--all"),
    ],
)
def test_bad_usage(tmp_path, args):
    done = _secrets(tmp_path, *args)
    assert done.returncode == 2 and ("usage:" in done.stderr or " - " in done.stderr)


def test_a_person_types_it_unseen(tmp_path):
    with Agent(
        linux("secrets", "set", "KEY", "--agent", "a"), tmp_path / "home", terminal=True
    ) as agent:
        agent.expect("not shown")
        os.write(agent.input, VALUE.encode() + b"\n")
        agent.expect("a keeps KEY")
        assert VALUE.encode() not in agent.seen


def test_an_encrypted_store(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    key = _key(tmp_path)
    done = _secrets(
        tmp_path, "set", "KEY", "--agent", "a", stdin=VALUE.encode(), CLAWLITE_SECRETS_KEY_FILE=key
    )
    assert done.stdout == "a keeps KEY, encrypted\n", done.stderr
    path = tmp_path / "state/a/secrets/KEY"
    assert (
        path.read_bytes().startswith(encrypted_store.MAGIC)
        and VALUE.encode() not in path.read_bytes()
    )
    assert "encrypted" in _secrets(tmp_path, "list", "--agent", "a").stdout
    monkeypatch.setenv("CLAWLITE_SECRETS_KEY_FILE", str(key))
    assert secrets.resolve("KEY", secrets.stores("a")) == VALUE
    key.write_bytes(b"6b" * 32 + b"\n")  # the same in hexadecimal
    assert secrets.resolve("KEY", secrets.stores("a")) == VALUE
    for damage, words in (
        (lambda: os.rename(path, path.parent / "OTHER"), "the key or the name has changed"),
        (lambda: key.write_bytes(b"z" * 32), "the key or the name has changed"),
        (lambda: key.chmod(0o644), "others may read it"),
        (lambda: key.write_bytes(b"short"), "others may read it"),
        (lambda: (key.chmod(0o600), None), "expected 32 bytes"),
        (lambda: key.unlink(), "No such file"),
        (lambda: monkeypatch.delenv("CLAWLITE_SECRETS_KEY_FILE"), "names no key"),
    ):
        damage()
        with pytest.raises(secrets.SecretError) as e:
            secrets.resolve("OTHER", secrets.stores("a"))
        assert (
            words in e.value.message and VALUE not in repr(e.value) and e.value.__context__ is None
        )


def test_every_bit_of_an_encrypted_secret_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_SECRETS_KEY_FILE", str(_key(tmp_path)))
    import binascii

    data = encrypted_store.seal("a", "KEY", VALUE.encode())
    coded = binascii.a2b_base64(data[len(encrypted_store.MAGIC) :])
    assert (
        encrypted_store.open_sealed("a", "KEY", data) == VALUE.encode()
        and encrypted_store.seal("a", "KEY", VALUE.encode()) != data
    ), "a nonce of its own"
    for at in range(len(coded)):
        changed = coded[:at] + bytes([coded[at] ^ 1]) + coded[at + 1 :]
        with pytest.raises(encrypted_store.ClawError):
            encrypted_store.open_sealed(
                "a", "KEY", encrypted_store.MAGIC + binascii.b2a_base64(changed)
            )


def test_without_the_package_it_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_SECRETS_KEY_FILE", str(_key(tmp_path)))
    real = builtins.__import__

    def missing(name, *args, **more):
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(encrypted_store.ClawError) as e:
        encrypted_store.seal("a", "KEY", b"x")
    assert "cryptography" in e.value.message and "install 'cryptography" in e.value.hint


def test_a_sandbox_that_demands_it_has_no_use_for_a_plain_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CLAWLITE_SECRETS_KEY_FILE", raising=False)
    monkeypatch.setattr(secrets, "_DEMANDED", set())
    secrets.set_secret("a", "KEY", VALUE)
    secrets.demand_encryption("a")
    with pytest.raises(secrets.SecretError) as e:
        secrets.resolve("KEY", secrets.stores("a"))
    assert "demands aes-256-gcm" in e.value.message and "clawlite secrets set KEY" in e.value.hint
    with pytest.raises(encrypted_store.ClawError) as e:
        secrets.set_secret("a", "KEY", VALUE)
    assert "names no key" in e.value.message
    monkeypatch.setenv("OTHER", VALUE)
    assert secrets.resolve("OTHER", secrets.stores("a")) == VALUE, "the environment is no store"
