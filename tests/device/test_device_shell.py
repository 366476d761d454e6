"""What a board boots, as a process of the unix port: the same image, the same typed lines, the
same text as on Linux.
"""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from agents import (
    INITIALIZE,
    ODD,
    Agent,
    board,
    eventually,
    linux,
    make_bench,
    make_greenhouse,
    tool_call,
)

ROOT = Path(__file__).resolve().parents[2]
READY = "bench 1.0.0 is ready. /help lists the commands.\n"
STATUS = b'{"jsonrpc":"2.0","id":7,"method":"claw.status"}'


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    (folder / "bench").mkdir()
    return {"bench": make_bench(folder / "bench"), "greenhouse": make_greenhouse(folder / "g")}


@pytest.fixture
def marks(tmp_path):
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def flash(images, tmp_path):
    """Return a function that lays one of ``images`` out in a folder of its own and returns that."""

    def lay_out(name: str):
        folder = tmp_path / "flash"
        return folder if folder.exists() else shutil.copytree(images[name].parent, folder)

    return lay_out


@pytest.fixture
def device(micropython, flash, tmp_path, marks):
    """Return a function that starts an image on MicroPython, as it lies on its flash."""

    def start(name: str, *flags, terminal: bool = False, **options):
        words, path = board(flash(name) / "claw.cbor", *flags, **options)
        return Agent(words, tmp_path / "home", terminal, env=dict(path, MARKS=marks))

    return start


@pytest.fixture
def both(device, images, tmp_path, marks):
    """Return a function that types *lines* to both shells and returns (text on Linux, text on
    MicroPython).
    """

    def play(name: str, lines: bytes) -> tuple:
        texts = []
        for agent in (
            Agent(linux("run", images[name]), tmp_path / "linux", env={"MARKS": marks}),
            device(name),
        ):
            with agent:
                agent.send(lines)
                agent.end()
                assert agent.wait() == 0, agent.errors()
                assert agent.errors() == ""
                texts.append(agent.text())
        return texts[0], re.sub(r"(?m)^(?:> |\[y/N\] )+", "", texts[1])

    return play


def test_a_whole_turn_with_reflex(device):
    with device("greenhouse", terminal=True) as agent:
        assert agent.expect("> ") == "g 1.0.0 is ready. /help lists the commands.\n"
        agent.line("is the soil dry?")
        assert agent.expect("[y/N] ").endswith(
            "The soil is dry: 21 %. I would water it for 3 seconds.\nApprove water(seconds=3)?\n"
            "  rule ask-before-watering asks first: water does not flow back\n  (60 s, then "
            "denied)\n"
        )
        agent.line("n")
        assert agent.expect("\n> ").endswith("Not watered. water: not approved: the person said no")
        agent.line("water the plants for 1 seconds")
        agent.expect("[y/N] ")
        agent.line("y")
        assert agent.expect("\n> ").endswith("Watered for 1 s.")
        agent.end()
        assert agent.wait() == 0


SCRIPTS = {
    "every word": (
        "greenhouse",
        b"hello\nis the soil dry?\nn\nwater the plants for 1 seconds\ny\n"
        b"nope\n/tools\n"
        b"/status\n/help\n/nope\n\n  \n",
    ),
    "answers that wait": ("bench", b"pump 200\ncareful\ny\npump 200\ncareful\nno\necho on\n"),
    "no answer": ("greenhouse", b"water the plants for 1 seconds\n"),
    "not an answer": ("greenhouse", b"water the plants for 1 seconds\nmaybe\nn\n"),
    "too much": (
        "greenhouse",
        b"water the plants for 99 seconds\ny\nwater the plants for 0 seconds\ny\n",
    ),
    "no last end": ("greenhouse", b"hello\r\nhello"),
    "quit": ("greenhouse", b"hello\n/quit\nhello\n"),
    "hostile": (
        "bench",
        b"\xff\xfe\necho \xed\xa0\x80\necho \xc0\xaf\n\x00\necho a\x00b\n"
        b'{"jsonrpc":"2.0"}\n[1,2\n'
        + b"x" * 5000
        + b"\n\x1b[2J\x07\n/\n// \xe2\x82\xac\n"
        + b"a " * 2000
        + b"\necho "
        b"\xf0\x9f\x8c\xb1 "
        b"\xc3\xbc\n",
    ),
    "lines that wait": ("bench", b"pump 300\n" + b"".join(b"echo %d\n" % n for n in range(40))),
    "odd results": (
        "bench",
        b"".join(
            b"odd %s\necho after %s\n" % (kind.encode(), kind.encode())
            for kind in ("bytes", "infinite", "tuple", "key")
        ),
    ),
    "a record": ("bench", b"\x1e{broken\n\x1e[]\n\x1e" + STATUS + b"\necho on\n"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_lines_give_the_same_text_as_on_linux(both, script):
    on_linux, on_board = both(*SCRIPTS[script])
    # records: as JSON, a board's dicts have no order; a decoder's words are its own
    if "\x1e" in on_linux:
        on_linux, on_board = (_records(text) for text in (on_linux, on_board))
    assert on_board == on_linux


def _records(text: str) -> list:
    lines = []
    for line in text.split("\n"):  # not splitlines, for which 0x1E ends a line too
        if line.startswith("\x1e"):
            line = json.loads(line[1:])
            if line["error"]["code"] == -32700:
                line["error"]["message"] = ""
        lines.append(line)
    # a prompt that gives way leaves an empty one
    return [line for line in lines if line != ""]


def test_no_tool_result_stops_a_board(device):
    for kind in ODD:
        with device("bench", "--stdio") as agent:
            agent.initialize()
            agent.line(json.dumps(tool_call("odd", {"kind": kind}, 2)))
            answer = agent.message()
            assert answer["id"] == 2 and ("result" in answer or "error" in answer)
            assert agent.is_serving(), kind


HOSTILE = [
    (b"garbage", -32700),
    (b"[" * 4000, -32700),
    (b'{"a":' * 1600, -32700),
    (b"\xff\xfe", -32700),
    (b'{"id":1,"id":2}', -32700),
    (b"NaN", -32700),
    (b'{"id":' + b"9" * 5000 + b"}", -32700),
    (b"null", -32600),
    (b"[]", -32600),
    (b"{}", -32600),
    (b"[" + b",".join([b"1"] * 65) + b"]", -32600),
    (b"x" * 8193, -32600),
    (b"[" * 50000 + b"]" * 50000, -32600),
    (b'"' + b"x" * 200000 + b'"', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601),
]


def test_every_hostile_line_gets_one_error_and_the_board_serves_on(device):
    with device("bench", "--stdio") as agent:
        agent.initialize()
        for line, code in HOSTILE:
            agent.send(line + b"\n")
            answer = agent.message()
            assert answer["error"]["code"] == code, (line[:60], answer)
            assert agent.is_serving(), line[:60]
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
        assert all(json.loads(line) for line in agent.text().splitlines())


def test_json_rpc_on_stdin_and_stdout(device, marks):
    with device("bench", "--stdio") as agent:
        for number in (5, 15):
            agent.initialize()
            agent.send(b"[" + STATUS + b',{"jsonrpc":"2.0","method":"claw.status"},5]\n')
            assert len(agent.message()) == 2
            agent.line(json.dumps(tool_call("pump", {"ms": 200}, number)))
            agent.line('{"jsonrpc":"2.0","id":6,"method":"claw.shutdown","params":{}}')
            assert agent.message()["result"]["content"][0]["text"] == "Pumped."
            assert agent.message()["result"] == {"drained": True}
            assert agent.call("claw.status")["result"]["state"] == "STOPPED"
        agent.send(STATUS)  # the last one without its end
        agent.end()
        assert agent.wait() == 0
        assert agent.message()["id"] == 7
    assert (marks / "pump-off").read_text() == "xx"


def test_the_end_of_input_ends_a_call_in_3_s(device, marks):
    with device("bench", "--stdio") as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000}, 5)))
        eventually((marks / "pump-on").exists)
        agent.end()
        assert agent.wait() == 0
        assert "error" in agent.message() and (marks / "pump-off").exists()


def test_records_and_lines_share_the_console(device):
    with device("bench") as agent:
        agent.expect(READY + "> ")
        agent.record({"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE})
        assert agent.expect("\x1e") in ("", "\n")  # a prompt may give way first
        assert agent.message()["result"]["agentInfo"]["name"] == "bench"
        agent.line("echo between")
        agent.expect("You said: between\n")
        # a record or a person's line: nobody knows, and both are told
        agent.send(b"\x1e{" + b"x" * 8192 + b"\n")
        agent.expect("\x1e")
        assert agent.message()["error"] == {
            "code": -32600,
            "message": "record: expected at most 8192 bytes, got 8194",
        }
        agent.expect("That line has 8194 bytes; at most 8192 fit. Nothing was done.\n")
        agent.end()
        assert agent.wait() == 0


@pytest.mark.parametrize(
    "size, said",
    [
        (8192, "That is 8192 characters"),
        (8193, "That line has 8193 bytes; at most 8192 fit. Nothing was done."),
    ],
)
def test_a_line_of_8192_bytes_fits_and_one_more_does_not(device, size, said):
    with device("bench") as agent:
        agent.expect(READY)
        agent.send(b"x" * size + b"\necho on\n")
        assert agent.expect("You said: on\n").startswith("> " + said)
        agent.end()
        assert agent.wait() == 0


@pytest.mark.parametrize("heap", ["88k", "96k"])
def test_long_lines_on_a_small_heap_are_refused_and_it_serves_on(device, heap):
    """On a machine of 64 bits, where objects take twice the room that they take on a board."""
    with device("greenhouse", "--stdio", options=("-X", "heapsize=" + heap)) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("read-soil", number=2)))
        assert agent.message()["result"]["isError"] is False  # what it is for fits
        for size in (200000, 8193):
            agent.send(b"x" * size + b"\n")
            answer = agent.message()
            assert answer["error"]["code"] == -32600 and answer["id"] is None
            assert agent.is_serving()
        agent.send(b'"' + b"x" * 8000 + b'"\n')  # within the limit, and no request
        assert agent.message()["error"]["code"] in (-32600, -32603)
        assert agent.is_serving()
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_a_whole_turn_on_a_small_heap(device):
    with device("greenhouse", options=("-X", "heapsize=128k")) as agent:
        agent.send("water the plants for 1 seconds\ny\n" + "hello\n" * 20)
        agent.end()
        assert agent.wait() == 0, agent.text()
        assert "Watered for 1 s.\n" in agent.text() and agent.text().count("Hello! Ask me") == 20


@pytest.mark.parametrize("heap", ["24k", "48k"])
def test_a_heap_that_is_too_small_is_one_line(device, heap):
    with device("greenhouse", "--stdio", options=("-X", "heapsize=" + heap)) as agent:
        agent.end()
        assert agent.wait() == 2 and agent.text() == ""
        assert (
            len(agent.errors().splitlines()) == 1
            and "does not fit into this board's memory" in agent.errors()
        )


def test_ctrl_c_ends_a_turn_and_the_pump_is_off_at_once(device, marks):
    with device("bench") as agent:
        agent.expect("> ")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.signal_at_rest(signal.SIGINT)
        agent.expect("Interrupted")
        assert (marks / "pump-off").exists()
        agent.line("pins")
        agent.expect("pump=0\n")
        agent.signal_at_rest(signal.SIGINT)
        assert agent.wait() == 130 and "Traceback" not in agent.errors()


def test_ctrl_c_ends_a_handler_that_hangs(device, marks):
    with device("bench") as agent:
        agent.expect("> ")
        agent.line("hang")
        eventually((marks / "hang-on").exists)
        agent.signal(signal.SIGINT)
        agent.expect("Interrupted")
        agent.line("echo on")
        agent.expect("You said: on\n")
        agent.end()
        assert agent.wait() == 0


def test_a_yes_typed_before_the_question_does_not_approve(device, marks):
    with device("bench", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"careful\ny\n")  # both lines are there before the board has read the first
        agent.expect("[y/N] ")
        agent.line("no")
        agent.expect("not approved: the person said no")
        # the early yes is a message, in its turn
        agent.expect("I have no rule for that")
        assert not (marks / "careful").exists()
        agent.line("careful")
        agent.expect("[y/N] ")
        agent.line("perhaps")
        agent.expect("[y/N] ")
        agent.line("y")
        agent.expect("careful ran")
        agent.end()
        assert agent.wait() == 0


def test_ctrl_d_typed_before_the_question_denies_it(device, marks):
    with device("bench", terminal=True) as agent:
        agent.expect("> ")
        agent.send(b"careful\n\x04")
        agent.expect("careful: not approved: nobody is at the console")
        assert agent.wait() == 0 and not (marks / "careful").exists()


def test_a_reader_that_goes_away_ends_it_with_the_pump_off(device, marks):
    with device("bench") as agent:
        agent.expect("> ")
        agent.line("pump 60000")
        eventually((marks / "pump-on").exists)
        agent.stop_reading()
        agent.send("echo anybody?\n" * 40, drain=False)
        assert agent.wait() == 1 and (marks / "pump-off").exists()  # no port of a board does so


def test_a_handler_that_leaves_the_interpreter_fails_alone(device):
    with device("bench") as agent:
        agent.expect("> ")
        agent.line("leave")
        agent.expect("leave failed: ")
        agent.line("echo on")
        agent.expect("You said: on\n")


def _damaged(data: bytes) -> list:
    return [
        (b"", "expected the bytes d9 d9 f7"),
        (data[:4], "wants format 1"),
        (data[:100], "truncated"),
        (data[:-1], "seal"),
        (data[:4] + b"\x02" + data[5:], "wants format 1, got 86 02"),
        (data[:300] + b"\x00\x01\x02" + data[303:], "image: "),
        (data[:5] + b"\x5b\x80" + bytes(7) + data[14:], "image: "),
        (data[:5] + b"\x5b" + b"\xff" * 8 + data[14:], "image: "),
        (b"claw: 0.3.0\n", "this is not an image; make one with: clawlite build"),
    ]


def test_a_bad_image_is_one_line_and_exit_2(device, images, flash):
    for number, (data, said) in enumerate(_damaged(images["greenhouse"].read_bytes())):
        (flash("greenhouse") / "claw.cbor").write_bytes(data)
        with device("greenhouse") as agent:
            agent.end()
            assert agent.wait() == 2, (number, agent.text(), agent.errors())
            assert (
                agent.text() == "" and said in agent.errors() and "Traceback" not in agent.errors()
            ), (number, agent.errors())
            assert len(agent.errors().splitlines()) == 1


def test_a_missing_image_is_one_line_and_exit_2(micropython, tmp_path):
    words, path = board(tmp_path / "nowhere.cbor")
    with Agent(words, tmp_path / "home", env=path) as agent:
        agent.end()
        assert agent.wait() == 2
        assert "nowhere.cbor" in agent.errors() and len(agent.errors().splitlines()) == 1


def unreadable(path):
    """Make the file at *path* one that the disk cannot read."""
    path.unlink(missing_ok=True)
    path.symlink_to("/proc/self/mem")


def test_an_image_that_the_flash_cannot_read(device, flash):
    unreadable(flash("greenhouse") / "claw.cbor")
    with device("greenhouse") as agent:
        agent.end()
        assert agent.wait() == 2
        assert agent.errors().endswith(
            "claw.cbor cannot be read: [Errno 22] EINVAL - look at the flash\n"
        )


def test_a_secret_that_the_flash_cannot_read(micropython, tmp_path):
    (tmp_path / "secrets").mkdir()
    unreadable(tmp_path / "secrets/key")
    start = "import inside_board; inside_board.say_why_a_secret_is_none()"
    words, env = board(tmp_path, start=start, inside=True)
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == (
        "secret key: its file on this board cannot be read: [Errno 5] EIO\n",
        "",
    )


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda tools: tools.unlink(), "is missing"),
        (unreadable, "cannot be read: [Errno 5] EIO - look at the flash: it fails"),
        (
            lambda tools: tools.write_text(tools.read_text() + "#\n"),
            "is not the file that the image was built with",
        ),
    ],
)
def test_tools_py_must_be_the_one_that_was_built(device, flash, change, said):
    change(flash("bench") / "tools.py")
    with device("bench") as agent:
        agent.end()
        assert (
            agent.wait() == 2 and said in agent.errors() and len(agent.errors().splitlines()) == 1
        )


def test_an_image_that_needs_more_is_refused_by_name(device, images, flash):
    from clawlite.core.image.image import Image
    from clawlite.host.image import image_file

    data = images["bench"].read_bytes()
    image = Image(lambda offset, length: data[offset : offset + length], len(data))
    sections = {
        number: image.part(number, 0, image.size_of(number))
        if number in image_file.RAW
        else image.section(number)
        for number in image.sections()
    }
    (flash("bench") / "claw.cbor").write_bytes(
        image_file.write(
            sections, image.compiler, image.requires + ["wings"], image.sources, image.companions
        )
    )
    with device("bench") as agent:
        agent.end()
        assert agent.wait() == 2 and "needs wings, which this board does not have" in agent.errors()
