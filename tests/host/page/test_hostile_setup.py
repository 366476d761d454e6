"""Setup shows what strangers may name: what a USB device says of itself, folders, manifests and
board profiles.  Each is text, each mistake is one clear error, and the page goes on.  The process
that does the work is the real one; pyserial alone is told which devices there are.
"""

import contextlib
import json
import os
import signal
import subprocess

import browsers
import pytest
from agents import environment, eventually, linux
from browsers import PHONE, ROOT
from hostile_agent import BAD, MARK
from pages import WATCH, RunningPage, hold_to_text
from sims import needs_micropython, needs_mpy_cross

# in each Python process that is started: the devices, and a board that loses its power
SEAM = """
import json, os, signal
import serial
from serial.tools import list_ports, list_ports_common

CUT = os.environ["TEST_CUT"]
sent = 0


def comports(include_links=False):
    for row in json.loads(os.environ["TEST_PORTS"]):
        info = list_ports_common.ListPortInfo(row["device"], skip_link_detection=True)
        vars(info).update(row)
        yield info


def write(self, data, write=serial.Serial.write):
    global sent
    sent += len(data)
    if sent > 60000 and os.path.exists(CUT):
        with open(CUT) as file:
            os.killpg(int(file.read()), signal.SIGKILL)
        os.remove(CUT)
    return write(self, data)


list_ports.comports, serial.Serial.write = comports, write
"""
NASTY = BAD + "\x9b31m\x85\ud800" + "n" * 5000
TEXTS = dict.fromkeys(("serial_number", "manufacturer", "product", "description"), NASTY)
PORTS = [
    {"device": "/dev/null", "vid": 0x2E8A, "pid": 5, "location": "1-1", **TEXTS},
    {"device": "/dev/zero", "vid": 0x1234, "pid": 5, "location": NASTY, **TEXTS},
]
MANIFEST = (ROOT / "clawlite/host/projects/templates/blink/claw.yaml").read_text()
PICO = (ROOT / "boards/pico.toml").read_text()
VIRTUAL = "MicroPython's unix port"
FOLDERS = [
    os.fsencode("\u202egnp " + MARK + "<img src=x onerror=window.ran=1>\n\x9b31m\u200b"),
    b"\xff\xfe<img src=x onerror=window.ran=2>",
    b"x" * 255,
]
# name of a project -> (its claw.yaml, what is said of it)
FAULTY = {
    "markup": ("<img src=x onerror=window.ran=8>\u202e: [", "claw.yaml:1: "),
    "kind": ('claw: "0.3.0"\nkind: <script>window.ran=9</script>\u202e\n', "\\u202e"),
    "bytes": (b"\xff\xfe\x00", "claw.yaml:1: not UTF-8"),
    "control": ('claw: "\u009b31m"', "claw.yaml:1: a control character"),
    "half": ('claw: "\\ud800"', "claw.yaml:1: half of a surrogate pair"),
    "python": ("!!python/object/apply:os.system ['touch ran']", 'python/object/apply:os.system"'),
    "deep": ("[" * 20000, "claw.yaml:1: nested deeper than"),
    "empty": ("", "found an empty file"),
    "twice": ("claw: 1\nkind: 2\n", "claw.yaml:1: "),
}


@pytest.fixture
def world(state, tmp_path, monkeypatch, add_person):
    """Return the token of an admin, in a machine with hostile devices, folders and profiles."""
    seam, here = tmp_path / "seam", tmp_path / "here" / "boards"
    seam.mkdir()
    (seam / "sitecustomize.py").write_text(SEAM)
    here.mkdir(parents=True)
    title = json.dumps(BAD.replace("\x1b", ""))
    profile = PICO.replace('"pico"', '"a"', 1).replace('"Raspberry Pi Pico"', title, 1)
    (here / "a.toml").write_text(profile)
    (here / "b.toml").write_text('title = "<script>" [')
    (here / "c.toml").write_bytes(b"\xff\x00")
    monkeypatch.chdir(here.parent)
    for key, value in (
        ("PYTHONPATH", f"{seam}{os.pathsep}{ROOT}"),
        ("TEST_PORTS", json.dumps(PORTS)),
        ("TEST_CUT", str(tmp_path / "cut")),
        ("CLAWLITE_STATE", str(state)),
        ("XDG_DATA_HOME", str(tmp_path / "data")),
    ):
        monkeypatch.setenv(key, value)
    return add_person("ada", "admin")


@pytest.fixture
def projects(tmp_path):
    folder = tmp_path / "data/clawlite/projects"
    folder.mkdir(parents=True)
    return folder


def add_project(folder, name, manifest):
    """Make a project that is not whole."""
    path = os.path.join(os.fsencode(folder), os.fsencode(name))
    os.mkdir(path)
    data = manifest if isinstance(manifest, bytes) else manifest.encode()
    with open(os.path.join(path, b"claw.yaml"), "wb") as file:
        file.write(data)


@contextlib.contextmanager
def board(tmp_path, state):
    """A virtual board in a process of its own, as after each plug; give the process."""
    link = tmp_path / "port"
    words = linux("sim", "--fs", tmp_path / "flash", "--pty-link", link)
    env = environment(tmp_path / "home", CLAWLITE_STATE=state, TEST_CUT="", TEST_PORTS="[]")
    process = subprocess.Popen(words, env=env, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: link.exists() or process.poll() is not None)
        assert process.poll() is None
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def do(page, token: str, **job) -> list:
    """Return the lines that a job says."""
    headers = {
        "Content-Type": "application/json",
        "X-Claw": "1",
        "Authorization": "Bearer " + token,
    }
    status, _, body = page.ask("POST", "/setup", data=json.dumps(job), headers=headers)
    assert status == 200
    return [json.loads(line) for line in body.splitlines()]


def press(browser, card: str, name: str):
    """Press the button *name* of the card whose name has *card* in it."""
    find = (
        "return [...document.querySelectorAll('main section')]"
        ".filter((one) => one.ariaLabel?.includes(arguments[0]))"
        ".flatMap((one) => [...one.querySelectorAll('button:not([aria-disabled=true])')])"
        ".find((one) => one.innerText === arguments[1])"
    )
    browser.until(lambda: browser.driver.execute_script(find, card, name))
    browser.click(browser.driver.execute_script(find, card, name))


def test_what_is_attached_and_lies_there_is_text(world, state, projects, tmp_path):
    for name in FOLDERS:
        add_project(projects, name, MANIFEST)
    os.mkfifo(projects / "pipe")
    (projects / "folder/claw.yaml").mkdir(parents=True)
    with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as browser:
        browser.show(PHONE)
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        browser.log_in(world)
        browser.open("setup")
        browser.until(lambda: "Projects here" in browser.texts("h2"))
        shown = "".join(browser.texts("main"))
        assert shown.count("n" * 5000) == 2 and "/dev/null" in shown and "\\ud800" in shown
        assert "\\u202egnp " + MARK in shown and "\\udcff\\udcfe<img" in shown
        assert "x" * 255 in shown and browser.texts("h2").count("folder") == 0
        assert hold_to_text(browser, "setup") <= PHONE[0]
        assert browser.find_barriers() == []
        for number, name in enumerate(("egnp", "udcfe", "x" * 255)):
            press(browser, name, "What would be written?")
            browser.until(lambda number=number: len(browser.texts(".problem")) == number + 1)
        assert len(set(browser.texts(".problem"))) == 1
        press(browser, "/dev/null", "Choose")
        browser.until(lambda: browser.texts("h2")[0].startswith("What fits " + MARK))
        assert hold_to_text(browser, "setup") <= PHONE[0]
        assert [one for one in browser.complaints() if "/ckp/g" not in one] == []  # it is not up


def test_more_projects_than_are_listed_are_counted(world, state, projects):
    for number in range(102):
        add_project(projects, "p%03d" % number, MANIFEST)
    with RunningPage(state) as page:
        (line,) = do(page, world, do="look")
    assert len(line["result"]["projects"]) == 100 and line["result"]["more"] == 2
    assert [one["serial"] for one in line["result"]["ports"]] == [NASTY, NASTY]


@pytest.mark.parametrize(
    "job", [{"port": "\ud800"}, {"port": "x\0"}, {"do": "fit", "board": "\x9b<b>"}]
)
def test_a_job_with_a_text_that_nobody_sees_is_refused(world, state, job):
    with RunningPage(state) as page:
        (line,) = do(page, world, **{"do": "plan", "name": "x", "port": "/dev/null", **job})
    assert "expected a text of 1 to 200 printable characters" in line["error"] and line["hint"]


@needs_micropython
@needs_mpy_cross
def test_a_faulty_project_is_one_error_each(world, state, projects, tmp_path):
    with board(tmp_path, state), RunningPage(state) as page:
        for name, (manifest, _) in FAULTY.items():
            add_project(projects, name, manifest)
        for name in ("boards1", "boards2"):
            do(page, world, do="make", name=name, template="blink", board="sim")
            (projects / name / "boards").mkdir()
        (projects / "boards1/boards/sim.toml").write_text('title = "<script>\u202e"\nx = [')
        other = PICO.replace('"pico"', '"\\u202e<script>"', 1)
        (projects / "boards2/boards/sim.toml").write_text(other)
        said = {"boards1": "sim.toml:2: not TOML", "boards2": "sim.toml:2: name: "}
        said |= {name: words for name, (_, words) in FAULTY.items()}
        with browsers.open_browser(page.url, tmp_path) as browser:
            browser.show(PHONE)
            watch = {"source": WATCH}
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", watch)
            browser.log_in(world)
            browser.open("setup")
            press(browser, VIRTUAL, "Choose")
            for number, (name, words) in enumerate(said.items()):
                press(browser, name, "What would be written?")
                browser.until(lambda number=number: len(browser.texts(".problem")) == number + 1)
                (problem,) = browser.texts(f'[aria-label="project {name}"] .problem')
                assert words in problem and "Traceback" not in problem, (name, problem)
            browser.touch("Look again")  # what was said stays
            browser.until(lambda: len(browser.texts(".problem")) == len(said))
            assert hold_to_text(browser, "setup") <= PHONE[0]
            assert browser.find_barriers() == []
    assert not (tmp_path / "here/ran").exists()


@needs_micropython
@needs_mpy_cross
def test_a_board_that_goes_half_way_is_flashed_later(world, state, projects, tmp_path):
    with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as browser:
        with board(tmp_path, state) as process:
            do(page, world, do="make", name="lamp", template="blink", board="sim")
            (tmp_path / "cut").write_text(str(process.pid))
            browser.show(PHONE)
            browser.log_in(world)
            browser.open("setup")
            press(browser, VIRTUAL, "Choose")
            press(browser, "lamp", "What would be written?")
            press(browser, "lamp", "Flash it")
            browser.until(lambda: browser.texts(".problem"))
            (problem,) = browser.texts(".problem")
            assert not (tmp_path / "cut").exists() and process.wait() == -signal.SIGKILL
            assert "/dev/" in problem, problem
            assert browser.find_barriers() == []
        with board(tmp_path, state):
            browser.touch("Look again")
            press(browser, VIRTUAL, "Choose")
            press(browser, "lamp", "What would be written?")
            press(browser, "lamp", "Flash it")
            browser.until(lambda: "Flashed" in browser.texts("main .tag"))
            assert any("lamp 1.0.0 is ready" in one for one in browser.texts("main p"))
