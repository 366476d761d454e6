"""The section of an image with readings and with rules that begin by themselves, by position
(host/image/image.cddl has it in full; host/rules/triggers.py writes it)."""

SECTION = 27
READINGS, RULES, CLOCK = range(3)
# of a reading
NAME, TOOL, PIN, FIELD, EVERY_MS, KEEP_S, HOURLY_S = range(7)
# of a rule; its name is NAME; CALL: None for a turn, which a Channel of type cron begins
TRIGGER, IF, CALL, ARGUMENTS, AT_MOST, LEAST_PAUSE_S, MISSED, THEN = range(1, 9)
# of a trigger: its kind, and what follows
AT, EVERY, ON_PIN, ON_READING, ON_SUN = range(5)
# WHAT: schedules, ms, the name of a pin or of a reading, [[is it sunset, s later], ...]
KIND, WHAT = range(2)
EDGES, DEBOUNCE_MS = 2, 3  # ON_PIN; EDGES: bit 0 to 0, bit 1 to 1
IS_BELOW, LIMIT, AGAIN, FOR_MS = range(2, 6)  # ON_READING
# the section of what must follow a call, and a row of it: TOOL is None for what sets a pin
CONFIRMS = 31
OF_TOOL, OF_PIN, READING, IS_UNDER, THRESHOLD, WITHIN_MS, MAKE_SAFE = range(7)
# conditions: [reading, operator, value], or one of these
AGE, BETWEEN = 1, 2  # [AGE, reading, operator, s], [BETWEEN, minute, minute]
SKIP, ONCE, ALL = range(3)  # MISSED
COUNT, PERIOD_S = range(2)  # of AT_MOST
# of CLOCK
ZONE_NAME, CHANGES, TZDATA, SUN = range(4)
# of a step of THEN
TEXT, TO, IS_QUESTION = range(3)
