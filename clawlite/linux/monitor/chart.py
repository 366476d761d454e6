"""Charts of a report, as inline SVG: text alone, in the colours of the page's style.

Numbers come in; every text that is drawn goes through ``text``.
"""

import html
import math

from clawlite.core.base.printable import escape_line

WIDTH, HEIGHT = 720, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 12, 10, 28  # margins
_MOST_POINTS = 1500  # of one line or cloud: a browser draws them at once, and the file stays small
_MOST_TEXT = 200  # characters of a stranger's word


def text(value, most: int = _MOST_TEXT) -> str:
    """Return *value*, which a stranger may have chosen, as HTML: text on one line."""
    return html.escape(escape_line(value, most), quote=True)


class Axes:
    """A frame with two axes.

    x, y         (least, most) of the values
    show_x, show_y  functions(value) -> what stands at a mark
    is_log       y is logarithmic
    """

    def __init__(self, title: str, x: tuple, y: tuple, show_x, show_y, is_log: bool = False):
        self._title, self._show_x, self._show_y = title, show_x, show_y
        self._x, self._is_log = _spread(x), is_log
        self._y = _spread((math.log10(max(y[0], 1)), math.log10(max(y[1], 10))) if is_log else y)
        self._parts: list = []

    def place(self, x: float, y: float) -> tuple:
        """Return where a value lies."""
        y = math.log10(max(y, 1)) if self._is_log else y
        (first, last), (least, most) = self._x, self._y
        return (
            _LEFT + (x - first) / (last - first) * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BOTTOM - (y - least) / (most - least) * _inner(),
        )

    def add_line(self, points: list):
        """Draw a line through *points*, the earliest first."""
        places = " ".join("%.1f,%.1f" % self.place(x, y) for x, y in _thin(points))
        self._parts.append('<polyline class="line" points="%s"/>' % places)
        if len(points) == 1:
            self.add_dots([(*points[0], "", "")])

    def add_dots(self, dots: list):
        """Draw (x, y, class, what it says) each."""
        for x, y, kind, said in _thin(dots):
            across, down = self.place(x, y)
            self._parts.append(
                '<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>'
                % (kind or "dot", across, down, text(said))
            )

    def add_spans(self, spans: list):
        """Draw (from, to, y, class, what it says) each: a bar as long as it took."""
        for begin, end, y, kind, said in _thin(spans):
            left, down = self.place(begin, y)
            right = self.place(end, y)[0]
            self._parts.append(
                '<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="5">'
                "<title>%s</title></rect>"
                % (kind or "dot", left, down - 2.5, max(3, right - left), text(said))
            )

    def add_marks(self, marks: list):
        """Draw (x, class, what it says) each: a thin line from top to bottom."""
        for x, kind, said in _thin(marks):
            across = self.place(x, self._y[0])[0]
            self._parts.append(
                '<line class="mark %s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"><title>%s</title></line>'
                % (kind, across, across, _TOP, HEIGHT - _BOTTOM, text(said))
            )

    def draw(self) -> str:
        """Return the SVG."""
        frame = ['<svg viewBox="0 0 %d %d" role="img">' % (WIDTH, HEIGHT)]
        frame.append("<title>%s</title>" % text(self._title))
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            least, most = self._y
            value = least + share * (most - least)
            down = HEIGHT - _BOTTOM - share * _inner()
            shown = self._show_y(10**value if self._is_log else value)
            frame.append(
                '<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>'
                '<text x="%d" y="%.1f" text-anchor="end">%s</text>'
                % (_LEFT, WIDTH - _RIGHT, down, down, _LEFT - 6, down + 4, text(shown))
            )
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
            first, last = self._x
            value = first + share * (last - first)
            across = _LEFT + share * (WIDTH - _LEFT - _RIGHT)
            frame.append(
                '<text x="%.1f" y="%d" text-anchor="%s">%s</text>'
                % (across, HEIGHT - 6, anchor, text(self._show_x(value)))
            )
        return "".join([*frame, *self._parts, "</svg>"])


def draw_bar(used: float, most: float) -> str:
    """Return a bar that shows how much of *most* is used."""
    share = min(1.0, used / most if most else 1.0)
    kind = "bad" if share >= 1 else "warn" if share >= 0.8 else "good"
    return (
        '<svg class="bar" viewBox="0 0 200 12" role="img"><title>%d %%</title>'
        '<rect class="track" width="200" height="12" rx="3"/>'
        '<rect class="%s" width="%.1f" height="12" rx="3"/></svg>'
        % (share * 100, kind, share * 200)
    )


def _inner() -> int:
    return HEIGHT - _TOP - _BOTTOM


def _spread(ends: tuple) -> tuple:
    """Return *ends* as far apart as a scale needs."""
    least, most = ends
    return (least, most) if most > least else (least - 0.5, least + 0.5)


def _thin(rows: list) -> list:
    """Return at most ``_MOST_POINTS`` of *rows*, the last of them always."""
    step = -(-len(rows) // _MOST_POINTS)
    return rows if step < 2 else [*rows[:-1:step], rows[-1]]
