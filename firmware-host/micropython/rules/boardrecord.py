"""What operators see of a board beside its rules: the samples of a reading that are on record, and
its pins (docs/methods.md).  Loaded for an answer, and dropped.

1. Samples are read some lines at a time, so that the loop goes on, and thinned meanwhile: of each
   part of the time the least and the most are held, of days that are old those of the means.
2. What must be no name for ever (base/unload.py) is split from a text.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.dialect import const
from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.image.image import PINS
from clawlite.core.image.pins import ADC, FULL, PWM
from clawlite.core.protocol.rpc import error, field, result
from clawlite.core.rules import table
from jsontext import dumps, loads
from samplefiles import list_days
from samplehours import samples_of

_DAY, _HOUR = const(86400), const(3600)
_LONGEST = const(31622400)  # 366 days
_MOST_POINTS = const(1000)  # that may be asked for, as on Linux
_POINTS = const(60)  # that there is room for
_STEP_MS, _LINES, _MOST = const(5), const(16), const(2048)  # between steps; of one; of a line
# core/image/pins.py has it too; importing it would load the simulated bank
_KINDS = "adc input output pwm input input output"


def begin(rules, id, method: str, params: dict, reply, now_ms: int):
    """Return the result of a request, or None: *reply* gets its answer later.  Raises
    ``InvalidParams``.

    rules  ``boardrules.BoardRules``
    """
    if method == "claw.pin.list":
        return {"pins": _list_pins(rules)}
    name_key, seconds_key, points_key, *keys = "name seconds points from to samples".split()
    names = [record[table.NAME] for record in rules.section[table.READINGS]]
    name = field(params, name_key, str, "")
    if name not in names:
        raise InvalidParams(
            "name: there is no reading %s" % name[:40],
            "readings here: %s" % (", ".join(names) or "none"),
        )
    seconds = _number(params, seconds_key, _DAY, _LONGEST)
    points = min(_number(params, points_key, _POINTS, _MOST_POINTS), _POINTS)
    path = rules.path.rpartition("/")[0] + "/readings"
    days = list_days(path)
    to_s = rules.times().wall_s
    if not rules.engine.is_set and days:
        to_s = days[-1][0] * _DAY + _DAY
    from_s = max(0, to_s - seconds)

    def end(found, fault, _):
        if not fault:
            found = result(id, dict(zip([name_key] + keys, found)))
        reply(error(id, fault) if fault else found)

    rules.agent.begin(_collect(rules, path, days, name, from_s, to_s, points), end, now_ms)


def _number(params: dict, key: str, default: int, most: int) -> int:
    number = field(params, key, int, "", False)
    if number is None:
        return default
    if not 2 <= number <= most:
        raise InvalidParams("%s: expected 2 to %d, got %d" % (key, most, number))
    return number


def _collect(rules, path: str, days: list, name: str, from_s: int, to_s: int, points: int):
    """A generator of effects that returns (name, from, to, samples)."""
    begins, width_s, parts = "[%s," % dumps(name), 2 * (to_s - from_s) // points + 1, {}

    def put(samples: list):
        for at_s, value in samples:
            if from_s <= at_s <= to_s:
                part = (at_s - from_s) // width_s
                low_s, low, high_s, high = parts.get(part, (at_s, value, at_s, value))
                if value < low:
                    low_s, low = at_s, value
                elif value > high:
                    high_s, high = at_s, value
                parts[part] = low_s, low, high_s, high

    for (one, _), (at_s, text) in rules.samples.texts.items() if rules.samples else ():
        if one == name:
            put(samples_of("%s%d,[%s]]" % (begins, at_s, text[:-1])))
    for day, file in days:
        offset = 0
        if not from_s // _DAY <= day <= to_s // _DAY or (day, file[:-2]) in days:
            offset = None  # or its samples are still there, beside its hours
        while offset is not None:
            yield (SLEEP, _STEP_MS)
            try:
                offset = _read(path + "/" + file, offset, begins, put)
            except (OSError, ValueError):  # it has been removed meanwhile, or is damaged
                break
    found = []
    for part in sorted(parts):
        low_s, low, high_s, high = parts[part]
        found += sorted({(low_s, low), (high_s, high)})
    return name, iso8601(from_s), iso8601(to_s), found


def _read(path: str, offset: int, begins: str, put):
    """Hand the samples of the next lines that begin with *begins* to *put*; return where those
    behind them begin, at the end None.
    """
    read = _means_of if path.endswith(".h") else samples_of
    with open(path) as file:
        file.seek(offset)
        for _ in range(_LINES):
            line = file.readline(_MOST)
            if not line:
                return None
            if line.startswith(begins):
                put(read(line))
        return file.tell()


def _means_of(line: str) -> list:
    """Return [(at_s, mean), ...] of a line of hours; of one that is damaged none."""
    try:
        _, day, hours = loads(line.encode())
        return [(day * _DAY + hour * _HOUR, mean + 0) for hour, _, mean, _, _ in hours]
    except (ClawError, IndexError, TypeError, ValueError):
        return []


def _list_pins(rules) -> list:
    found, keys, kinds = [], "name kind value of".split(), _KINDS.split()
    for name, _, kind, *_ in rules.agent.image.section(PINS) or ():
        try:
            value = rules.read_pin(name)
        except (ClawError, OSError):  # it is shown without a value
            value = None
        of = FULL if kind in (ADC, PWM) else 1
        found.append(dict(zip(keys, (name, kinds[kind], value, of))))
    return found
