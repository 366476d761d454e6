"""Sentences leave the modules and are said from a file."""

import ast
import importlib.util
import pathlib

from clawlite.host.firmware.string_table import take_out

SOURCE = (
    pathlib.Path(__file__).resolve().parents[3]
    / "firmware-host"
    / "micropython"
    / "base"
    / "sentence.py"
)


def taken(text, kept=(), **more):
    trees = {
        "first": ast.parse(text),
        "errors": ast.parse(
            "class ClawError(Exception):\n    pass\n\nclass Mine(ClawError):\n    pass\n"
        ),
        **{name: ast.parse(other) for name, other in more.items()},
    }
    file = take_out(trees, kept)
    return ast.unparse(trees["first"]), file


def reader(tmp_path, file):
    (tmp_path / "sentences").write_bytes(file)
    spec = importlib.util.spec_from_file_location("sentence", tmp_path / "sentence.py")
    (tmp_path / "sentence.py").write_text(SOURCE.read_text())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sentence


def test_errors_and_what_the_console_says_are_taken(tmp_path):
    text, file = taken(
        "def f(self, x):\n    self._say('The pump is running.')\n    e = Mine('the "
        "tank has %d litres' % x, 'fill it to 20 \u00b0C')\n"
        "    raise ValueError('expected a number, found %r' % x)\n"
    )
    assert "'" not in text and text.startswith("from sentence import sentence\n")
    read = reader(tmp_path, file)
    said = [
        read(node.args[0].value)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "sentence"
    ]
    assert sorted(said) == [
        "The pump is running.",
        "expected a number, found %r",
        "fill it to 20 \u00b0C",
        "the tank has %d litres",
    ]


def test_what_a_protocol_writes_stays():
    text = (
        "def f(self, x):\n    self.write('content-length: %d' % x)\n    raise Mine('short', "
        "{'a long key of data': 'and its value'})"
    )
    assert taken(text) == (text, b"")


def test_bounds_of_a_sentence():
    for size, is_taken in ((12, False), (13, True), (255, True), (256, False)):
        text, file = taken("raise Mine('%s')" % ("x" * size))
        assert ("sentence(0)" in text) is is_taken and file == (
            bytes([size]) + b"x" * size if is_taken else b""
        )


def test_equal_sentences_are_kept_once_over_modules():
    text = "raise Mine('the same words')"
    assert taken(text, other=text)[1] == b"\x0ethe same words"


def test_modules_may_keep_theirs():
    assert taken("raise Mine('out of memory, sorry')", kept=("first",))[1] == b""
