"""``clawlite report``: one file that loads nothing, in which strangers' words are text."""

import html.parser
import json
import time

import browsers
import pytest
from agents import Agent, clawlite, linux
from browsers import DESK, PHONE
from providers.project import build, provider

from clawlite.core.base.clock import iso8601
from clawlite.linux.monitor.chart import Axes, draw_bar
from clawlite.linux.rules.samples import Samples

ODD = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e'\"&{{%s%%"
REMOTE = provider(("openai", "http://127.0.0.1:9/v1"))  # nobody asks it here
LIMITS = {"tokens_per_hour": 1000, "cost_per_day_usd": 2, "tool_calls_per_minute": 30}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    settings = '[prices."test-model"]\ninput = 1\noutput = 2\n'
    return build(tmp_path_factory.mktemp("p") / "p", REMOTE, rate_limits=LIMITS, settings=settings)


def record_day(folder, word: str = "read-soil"):
    """Write what a day leaves: turns, calls, runs of rules and readings."""
    folder.mkdir(parents=True)
    now = int(time.time())
    events: list = [{"event": "lifecycle.transition", "from": "INIT", "to": "READY"}]
    for number in range(200):
        status = ("ok", "ok", "ok", "refused", "error")[number % 5]
        turn = {
            "event": "turn.ended",
            "status": status,
            "duration_ms": 20 * 1.04**number,
            "by": word,
        }
        turn |= {"memory_kib": 14000 + 9 * number, "tokens": [100, 20], "cost_nano_usd": 140000}
        call = {"event": "tool.call", "tool": word, "arguments": {word: word}, "caller": word}
        call |= {"status": status, "action": "allow", "rule_id": word, "duration_ms": 7 * number}
        rule = {"event": "rule.run", "rule": word, "status": status, "reason": word, "values": {}}
        events += [call, turn] + [rule] * (number % 20 == 0)
    step_s = 86000 / len(events)
    with open(folder / "log.jsonl", "w", encoding="utf-8") as file:
        for number, event in enumerate(events):
            at_s = int(now - 86000 + number * step_s)
            file.write(json.dumps({**event, "timestamp": iso8601(at_s)}) + "\n")
    samples = Samples(str(folder), {})
    for number in range(300):
        samples.add(word, now - 86000 + number * 280, 20 + number % 37)
        samples.add("lux", now - 86000 + number * 280, number)
    samples.add("mode", now, word)
    samples.write(now, True)
    samples.close()


@pytest.fixture
def written(image, state, command, tmp_path):
    """Return a function that writes a report, and returns its path."""

    def write(word: str = "read-soil", *more):
        record_day(state / "remote", word)
        path = tmp_path / "report.html"
        report = command("report", path, image, *more)
        assert report.wait() == 0, report.errors()
        return path

    return write


class Page(html.parser.HTMLParser):
    """What a document has: its elements, and all that is text."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.attributes, self.said = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.said.append(data)


def test_what_a_day_was(written):
    path = written()
    page = Page(path.read_text())
    text = " ".join(page.said)
    for one in ("Turns", "Memory over turns", "Tools", "Budgets", "Readings and rules", "Audit"):
        assert one in text, one
    assert "20 000 + 4 000" in text and "$0.0280" in text and "The last 200 calls" not in text
    assert "tokens_per_hour" in text and "cost_per_day_usd" in text and "keeps no audit" in text
    assert page.tags.count("svg") == 2 + 3 + 2  # turns, memory; three limits; two readings
    assert path.stat().st_mode & 0o777 == 0o600


def test_strangers_words_are_text_and_nothing_is_loaded(written):
    page, plain = Page(written(ODD).read_text()), {"html", "head", "meta", "title", "style", "body"}
    plain |= {"header", "main", "footer", "section", "h1", "h2", "h3", "p", "ul", "li", "b", "div"}
    plain |= {"table", "thead", "tbody", "tr", "th", "td", "svg", "text", "line", "rect", "circle"}
    assert set(page.tags) <= plain | {"polyline"}
    allowed = {"lang", "charset", "http-equiv", "content", "name", "class", "role", "viewbox"}
    allowed |= {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "width", "height"}
    assert {name for name, _ in page.attributes} <= allowed | {
        "points",
        "text-anchor",
        "aria-label",
        "tabindex",
    }
    said = "".join(page.said)
    assert "<script>alert(1)</script>" in said and "\x1b" not in said and "\u202e" not in said
    assert "url(" not in said and "@import" not in said
    (policy,) = [value for _, value in page.attributes if value and "default-src" in value]
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("size, is_dark", [(DESK, False), (PHONE, True), (DESK, True)])
def test_a_browser_shows_it_without_complaint_and_barrier(written, tmp_path, size, is_dark):
    path = written(ODD)
    with browsers.open_browser(path.as_uri(), tmp_path) as browser:
        browser.show(size, is_dark)
        browser.driver.get(path.as_uri())
        assert "<script>alert(1)</script>" in browser.texts("body")[0]
        assert browser.complaints() == [] and browser.find_barriers() == []
        seen = "return [document.scripts.length, performance.getEntriesByType('resource').length,"
        seen += " document.documentElement.scrollWidth, getComputedStyle(document.body).color]"
        scripts, loads, width, colour = browser.driver.execute_script(seen)
        assert scripts == loads == 0 and width <= size[0]
        assert (colour == "rgb(230, 233, 236)") == is_dark


def test_of_an_agent_that_ran_with_an_audit(tmp_path):
    assert clawlite("new", "g", "--offline", cwd=tmp_path).returncode == 0
    policy = tmp_path / "g/policy.yaml"
    policy.write_text(policy.read_text() + "  audit: { destination: file }\n")
    assert clawlite("build", "g", cwd=tmp_path).returncode == 0
    with Agent(linux("run", "g"), tmp_path / ".home", cwd=tmp_path) as agent:
        agent.line("is the soil dry")
        agent.expect("Approve")
        agent.line("n")
        agent.expect("said no")
        agent.line("/quit")
        agent.wait()
    done = clawlite("report", "r.html", "g", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["turns"], told["calls"], told["file"]) == (1, 2, "r.html")
    text = " ".join(Page((tmp_path / "r.html").read_text()).said)
    assert "all as they were written" in text and "ask-before-watering" in text
    before = (tmp_path / "r.html").read_bytes()
    done = clawlite("report", "r.html", "g", cwd=tmp_path)
    assert done.returncode == 1 and "--replace" in done.stderr
    assert (tmp_path / "r.html").read_bytes() == before
    done = clawlite("report", "r.html", "g", "--replace", "--since", "1m", cwd=tmp_path)
    assert done.returncode == 0
    done = clawlite("report", "no/r.html", "g", cwd=tmp_path)
    assert done.returncode == 1 and "no/r.html" in done.stderr
    done = clawlite("report", "s.html", "g", "--since", "soon", cwd=tmp_path)
    assert done.returncode == 2 and "12h" in done.stderr


def test_nothing_was_recorded(image, command, tmp_path):
    report = command("report", tmp_path / "r.html", image)
    assert report.wait() == 0 and "0 turns" in report.text()
    assert "No turn ended" in (tmp_path / "r.html").read_text()


def test_a_log_of_odd_values_is_a_report(image, state, command, tmp_path):
    (state / "remote").mkdir(parents=True)
    odd: list = [None, True, -1, 1e400, 10**400, "9", [1], {"a": 1}]
    with open(state / "remote/log.jsonl", "w") as file:
        for value in odd:
            event = {"timestamp": iso8601(int(time.time()) - 5), "status": value, "by": value}
            event |= {"duration_ms": value, "tokens": value, "cost_nano_usd": value, "tool": value}
            event |= {"memory_kib": value, "arguments": value, "rule": value, "reason": value}
            for name in ("turn.ended", "tool.call", "rule.run", "tool.approval"):
                file.write(json.dumps({**event, "event": name}) + "\n")
    report = command("report", tmp_path / "r.html", image)
    assert report.wait() == 0, report.errors()
    assert "nan" not in (tmp_path / "r.html").read_text().lower()


def test_a_scale_has_room_for_one_value_and_few_points_of_many():
    axes = Axes("one", (5, 5), (0, 0), str, str)
    axes.add_line([(5, 0)])
    assert "nan" not in axes.draw() and "circle" in axes.draw()
    axes = Axes("many", (0, 100000), (0, 1), str, str)
    axes.add_line([(number, number % 2) for number in range(100001)])
    points = axes.draw().split('points="')[1].split('"')[0].split()
    assert len(points) <= 1501 and points[-1].startswith("708.0,")
    assert 'class="bad"' in draw_bar(5, 0) and 'width="100.0"' in draw_bar(1, 2)
