"""A report as one HTML file: nothing is loaded, nothing runs, and what strangers wrote is text."""

import time

from clawlite.core.base.render import canonical
from clawlite.linux.monitor.chart import Axes, draw_bar, text
from clawlite.linux.monitor.report_facts import Facts, number
from clawlite.linux.monitor.usage_table import show_bytes, show_count, show_span

_MOST_CALLS = 200  # that are listed
_MOST_ARGUMENTS = 600  # characters
_KINDS = {"ok": "good", "approved": "good", "refused": "warn", "denied": "warn", "expired": "warn"}
_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>
:root { --back: #fff; --text: #1c2024; --soft: #5b6570; --edge: #d8dde2; --card: #f6f8f9;
  --line: #1b6ac9; --good: #1a7f37; --warn: #9a6700; --bad: #c0262d }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e6e9ec; --soft: #a3adb8;
  --edge: #333a41; --card: #1d2126; --line: #6cb0ff; --good: #56d06f; --warn: #e0b23e;
  --bad: #ff7b72 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: .5rem 0 0 } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; margin: 1rem 0 .2rem } p { margin: .3rem 0; color: var(--soft) }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .6rem;
  margin: 1rem 0; padding: 0; list-style: none }
.tiles li { background: var(--card); border: 1px solid var(--edge); border-radius: .5rem;
  padding: .6rem .8rem; color: var(--soft); font-size: .85rem }
.tiles b { display: block; font-size: 1.3rem; color: var(--text); overflow-wrap: anywhere }
svg { width: 100%%; height: auto; display: block } svg text { fill: var(--soft); font-size: 11px }
.grid { stroke: var(--edge) } .line { fill: none; stroke: var(--line); stroke-width: 1.5 }
.mark { stroke-width: 1.5; opacity: .7 } .dot { fill: var(--line) } .track { fill: var(--edge) }
.good { fill: var(--good); stroke: var(--good) } .warn { fill: var(--warn); stroke: var(--warn) }
.bad { fill: var(--bad); stroke: var(--bad) } td.good, b.good { color: var(--good) }
td.warn, b.warn { color: var(--warn) } td.bad, b.bad { color: var(--bad) }
.bar { width: 10rem; display: inline-block }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%%; font-size: .9rem }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--edge);
  vertical-align: top } th { color: var(--soft); font-weight: 600 }
td.n, th.n { text-align: right; white-space: nowrap }
td.long { overflow-wrap: anywhere; min-width: 12rem }
@media (max-width: 40rem) { svg text { font-size: 19px } .bar { width: 6rem } }
</style>
</head>
<body>
"""


def make_page(facts: Facts) -> str:
    """Return the HTML of a report."""
    name = text(facts.image.agent.name)
    parts = [_HEAD % (name + ", a report"), "<header><h1>%s</h1>" % name]
    parts.append(
        "<p>%s, image %s. %s to %s.</p></header>\n<main>"
        % (
            text(facts.image.agent.version),
            text(facts.image.id),
            text(_moment(facts.from_s)),
            text(_moment(facts.to_s)),
        )
    )
    parts += [_tiles(facts), _turns(facts), _memory(facts), _tools(facts), _budgets(facts)]
    parts += [_day(facts), _audit(facts), _calls(facts)]
    parts.append("</main>\n<footer><p>Made by clawlite from log and audit.</p></footer>")
    return "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))


def _clock(facts: Facts):
    """Return what shows a time at an axis: with its date where that is not the same everywhere."""
    is_day = facts.to_s - facts.from_s <= 2 * 86400
    return lambda at_s: time.strftime("%H:%M" if is_day else "%m-%d %H:%M", time.localtime(at_s))


def _section(title: str, *inside: str) -> str:
    return "<section><h2>%s</h2>\n%s\n</section>" % (text(title), "\n".join(inside))


def _tiles(facts: Facts) -> str:
    read, written, dollars = facts.tokens()
    wrong = [one for _, one in facts.calls if one.get("status") != "ok"]
    tiles = [
        ("turns", show_count(len(facts.turns))),
        ("calls of tools", show_count(len(facts.calls))),
        ("of them not ok", show_count(len(wrong))),
        ("approvals asked", show_count(len(facts.approvals))),
        ("runs of rules", show_count(len(facts.runs))),
        ("tokens, in and out", "%s + %s" % (show_count(read), show_count(written))),
        ("money", "$%.4f" % dollars),
    ]
    return '<ul class="tiles">%s</ul>' % "".join(
        "<li><b>%s</b>%s</li>" % (text(value), text(label)) for label, value in tiles
    )


def _kind(status) -> str:
    return _KINDS.get(status, "bad") if isinstance(status, str) else "bad"


def _turns(facts: Facts) -> str:
    """The timeline: each turn a bar from its begin to its end, as high as it took long."""
    if not facts.turns:
        return _section("Turns", "<p>No turn ended in this time.</p>")
    spans = []
    for at_s, one in facts.turns:
        ms = number(one.get("duration_ms"))
        said = "%s %s, %s" % (_moment(at_s), one.get("status"), show_span(ms / 1000))
        said += ", by %s" % one["by"] if one.get("by") else ""
        spans.append((at_s - ms / 1000, at_s, ms, _kind(one.get("status")), said))
    slowest = max(span[2] for span in spans)
    axes = Axes(
        "turns, and how long each took",
        (facts.from_s, facts.to_s),
        (1, slowest),
        _clock(facts),
        lambda ms: show_span(ms / 1000),
        True,
    )
    axes.add_spans(spans)
    times = sorted(span[2] for span in spans)
    said = (
        "%d turns; half of them took at most %s, the slowest %s. With the time of a person's yes."
    )
    said %= (len(times), show_span(_share(times, 0.5) / 1000), show_span(slowest / 1000))
    return _section("Turns", axes.draw(), "<p>%s</p>" % text(said))


def _share(values: list, share: float) -> float:
    """Return the value below which *share* of the sorted *values* lie."""
    return values[min(len(values) - 1, int(share * len(values)))]


def _memory(facts: Facts) -> str:
    points = [
        (place, number(one.get("memory_kib")) / 1024)
        for place, (_, one) in enumerate(facts.turns, 1)
        if number(one.get("memory_kib"))
    ]
    if not points:
        return ""
    values = [value for _, value in points]
    axes = Axes(
        "memory of the process after each turn",
        (points[0][0], points[-1][0]),
        (min(values) * 0.95, max(values) * 1.05),
        lambda place: "turn %d" % place,
        lambda mib: "%.1f MiB" % mib,
    )
    axes.add_line(points)
    said = "From %s to %s." % tuple(
        show_bytes(int(one * 1048576)) for one in (values[0], values[-1])
    )
    return _section("Memory over turns", axes.draw(), "<p>%s</p>" % text(said))


def _table(name: str, heads: tuple, rows: list) -> str:
    """Return a table; a head that begins with # is of numbers, and each cell HTML.  A narrow window
    scrolls it, by keyboard too.
    """
    head = "".join(
        "<th%s>%s</th>" % (' class="n"' if one[0] == "#" else "", text(one.lstrip("#")))
        for one in heads
    )
    body = "".join("<tr>%s</tr>" % "".join(row) for row in rows)
    begin = '<div class="wide" role="region" aria-label="%s" tabindex="0"><table><thead><tr>'
    begin += "%s</tr></thead><tbody>%s</tbody></table></div>"
    return begin % (text(name), head, body)


def _cell(value, kind: str = "", most: int = 200) -> str:
    return "<td%s>%s</td>" % (' class="%s"' % kind if kind else "", text(value, most))


def _tools(facts: Facts) -> str:
    rows = [
        [
            _cell(tool),
            _cell(show_count(count), "n"),
            _cell(show_count(wrong), "n"),
            *[
                _cell(show_span(_share(times, share) / 1000) if times else "-", "n")
                for share in (0.5, 0.95, 1.0)
            ],
        ]
        for tool, count, wrong, times in facts.times()[:_MOST_CALLS]
    ]
    if not rows:
        return ""
    heads = ("tool", "#calls", "#not ok", "#median", "#95 %", "#slowest")
    return _section("Tools, and how long they take", _table("tools", heads, rows))


def _budgets(facts: Facts) -> str:
    if not facts.limits:
        return ""
    rows = [
        [
            _cell(one["limit"] + (" of " + one["provider"] if one.get("provider") else "")),
            "<td>%s</td>" % draw_bar(one["used"], one["max"]),
            _cell("%g of %g" % (one["used"], one["max"]), "n"),
        ]
        for one in facts.limits
    ]
    return _section("Budgets", _table("budgets", ("limit", "used now", "#"), rows))


def _day(facts: Facts) -> str:
    """Readings, and what rules did meanwhile."""
    marks = []
    for at_s, one in facts.runs:
        status = one.get("status")
        said = "%s rule %s: %s" % (_moment(at_s), one.get("rule"), status)
        marks.append((at_s, _kind(status), said))
    parts = []
    for name, points in sorted(facts.samples.items()):
        values = [value for _, value in points]
        axes = Axes(
            name,
            (facts.from_s, facts.to_s),
            (min(values), max(values)),
            _clock(facts),
            lambda value: "%.4g" % value,
        )
        axes.add_line(points)
        axes.add_marks(marks)
        parts += ["<h3>%s</h3>" % text(name), axes.draw()]
    rows = [
        [
            _cell(_moment(at_s)),
            _cell(one.get("rule")),
            _cell(one.get("status"), _kind(one.get("status"))),
            _cell(one.get("reason") or "", "long"),
        ]
        for at_s, one in facts.runs[-_MOST_CALLS:]
    ]
    if parts and marks:
        parts.append("<p>The lines from top to bottom are runs of rules.</p>")
    if rows:
        parts.append(_table("runs of rules", ("when", "rule", "what became of it", "why"), rows))
    return _section("Readings and rules", *parts) if parts else ""


def _audit(facts: Facts) -> str:
    found = facts.audit
    if isinstance(found, str):
        return _section("Audit", "<p>%s</p>" % text(found))
    if found["ok"]:
        said = "%s records, %s to %s, all as they were written. The last one has the hash %s."
        said %= (show_count(found["records"]), found["first"], found["last"], found["hash"])
        return _section(
            "Audit", "<p>%s</p>" % text(said if found["records"] else "No records yet.")
        )
    problems = "".join("<li>%s</li>" % text(one) for one in found["problems"][:_MOST_CALLS])
    return _section("Audit", '<p><b class="bad">Something is wrong:</b></p><ul>%s</ul>' % problems)


def _calls(facts: Facts) -> str:
    rows = [
        [
            _cell(_moment(at_s)),
            _cell(one.get("tool")),
            _cell(canonical(one.get("arguments")), "long", _MOST_ARGUMENTS),
            _cell(one.get("caller") or ""),
            _cell(" ".join(str(one[key]) for key in ("action", "rule_id") if one.get(key))),
            _cell(one.get("status"), _kind(one.get("status"))),
        ]
        for at_s, one in reversed(facts.calls[-_MOST_CALLS:])
    ]
    if not rows:
        return ""
    title = "The last %d calls" % len(rows) if len(rows) < len(facts.calls) else "Calls"
    heads = ("when", "tool", "arguments", "by", "decided by", "what became of it")
    return _section(title, _table(title, heads, rows))
