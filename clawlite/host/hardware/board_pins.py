"""Compare the pins of clawlite.toml with a board: each pin that the board cannot provide becomes a
problem with line, field and a way out.

1. The profile decides what a pin can do.
2. No two names drive one pin.
3. There are fewer PWM channels than pins that can use one.  Of the pins on one channel
   (``pins.pwm_shared``) only one may be driven, and no more pins than there are channels
   (``pins.pwm_most``).
"""

from clawlite.host.base.problems import Problems, enquote, one_of
from clawlite.host.boards.profile import Profile, find_lowest, is_in_spans, span
from clawlite.host.hardware.buses import PINS

_DRIVEN = ("output", "pwm")
_AS = {"adc": "read as ADC", "pwm": "driven as PWM", "input": "an input", "output": "an output"}


def add_problems(manifest, board: Profile, other, problems: Problems) -> None:
    """Add the problems of *manifest* on *board*; other: function(can, otherwise) -> a hint."""
    good = []
    for index, pin in enumerate(manifest.settings.pins):
        before = len(problems.found)
        _pin(manifest, board, index, pin, other, problems)
        if len(problems.found) == before:
            _check_against_others(manifest, board, index, pin, good, problems)
            good.append(pin)
    if board.runtime == "micropython":
        for index, bus in enumerate(manifest.settings.buses):
            _bus(manifest, board, index, bus, problems)
    _safe_pin(manifest, board, problems)


def _bus(manifest, board: Profile, index: int, bus, problems: Problems) -> None:
    """A bus of a board has pins: digital ones that can be driven, and of its own."""
    place, settings = manifest.settings.place, manifest.settings
    if not bus.pins and not board.pins.simulated:
        problems.add(
            place,
            ("buses", index),
            f"on {board.name} a bus of kind {enquote(bus.kind)} needs its pins",
            hint=f"add {one_of(PINS[bus.kind])} to it",
        )
    named = {pin.pin: pin.name for pin in settings.pins}
    for other in settings.buses[:index]:
        if other.kind != bus.kind or other.pins != bus.pins:
            named.update(dict.fromkeys(other.pins, other.name))
    for role, pin in zip(PINS[bus.kind], bus.pins):
        if pin in named:
            wrong = f"pin {pin} is {named[pin]} already"
        elif not is_in_spans(board.pins.digital, pin):
            wrong = f"{board.name} has no digital pin {pin}"
        elif is_in_spans(board.pins.input_only, pin):
            wrong = f"pin {pin} of {board.name} is an input only"
        else:
            continue
        hint = f"digital pins on {board.name}: {', '.join(board.pins.digital)}"
        problems.add(place, ("buses", index, role), wrong, hint=hint)


def able_to(board: Profile, kind: str) -> list[str]:
    """Return the pins of *board* that can be of *kind* "adc", "pwm", "input" or "output", as its
    profile lists them.
    """
    pins = board.pins
    return {"adc": pins.adc, "pwm": pins.pwm, "input": pins.digital, "output": pins.digital}[kind]


def _pin(manifest, board: Profile, index: int, pin, other, problems: Problems) -> None:
    place, pins = manifest.settings.place, board.pins
    able = able_to(board, pin.kind)
    reserved = next(
        (why for where, why in (pins.reserved or {}).items() if is_in_spans([where], pin.pin)), None
    )
    hint = (
        f"pins for {pin.kind} on {board.name}: {', '.join(able)}"
        if able
        else other(
            lambda b: bool(b.pins.adc if pin.kind == "adc" else b.pins.pwm),
            f"no pin of kind {pin.kind}",
        )
    )
    if reserved and not is_in_spans(able, pin.pin):
        problems.add(
            place,
            ("pins", index, "pin"),
            f"pin {pin.pin} of {board.name} is reserved: {reserved}",
            hint=hint,
        )
    elif not any(is_in_spans(spans, pin.pin) for spans in (pins.digital, pins.adc, pins.pwm)):
        problems.add(place, ("pins", index, "pin"), f"{board.name} has no pin {pin.pin}", hint=hint)
    elif not is_in_spans(able, pin.pin):
        problems.add(
            place,
            ("pins", index, "kind"),
            f"pin {pin.pin} of {board.name} cannot be {_AS[pin.kind]}",
            hint=hint,
        )
    elif pin.kind == "output" and is_in_spans(pins.input_only, pin.pin):
        problems.add(
            place,
            ("pins", index, "kind"),
            f"pin {pin.pin} of {board.name} is an input only",
            hint=hint,
        )
    elif pin.pull and is_in_spans(pins.input_only, pin.pin):
        problems.add(
            place,
            ("pins", index, "pull"),
            f"pin {pin.pin} of {board.name} has no pull resistor",
            hint="put one on the board, or choose another pin",
        )


def _check_against_others(
    manifest, board: Profile, index: int, pin, others: list, problems: Problems
) -> None:
    """*others*: the pins before it, which are as they should be."""
    place, where = manifest.settings.place, ("pins", index, "pin")
    # of a Pi's converter, the number is a channel
    is_one = board.runtime == "micropython" or pin.kind != "adc"
    same = [
        one
        for one in others
        if one.pin == pin.pin
        and (one.kind in _DRIVEN or pin.kind in _DRIVEN)
        and is_one
        and (board.runtime == "micropython" or one.kind != "adc")
    ]
    if same:
        problems.add(
            place,
            where,
            f"pin {pin.pin} is {same[0].name} already",
            hint="what is driven has one name; choose another pin",
        )
    elif pin.kind == "pwm":
        driven = [one for one in others if one.kind == "pwm"]
        twin = next(
            (
                one
                for one in driven
                if find_lowest(board.pins.pwm_shared, one.pin)
                == find_lowest(board.pins.pwm_shared, pin.pin)
            ),
            None,
        )
        most = board.pins.pwm_most
        if twin:
            used = {
                find_lowest(board.pins.pwm_shared, one.pin)
                for one in manifest.settings.pins
                if one.kind == "pwm"
            }
            taken = {one.pin for one in manifest.settings.pins}
            free = [
                str(number)
                for first, last in map(span, board.pins.pwm)
                for number in range(first, last + 1)
                if number not in taken and find_lowest(board.pins.pwm_shared, number) not in used
            ]
            problems.add(
                place,
                where,
                f"pins {twin.pin} ({twin.name}) and {pin.pin} of {board.name} are one PWM channel: "
                "both would get the same signal",
                hint=f"free for PWM: {', '.join(free)}"
                if free
                else "no channel is left: drive one of them as an output",
            )
        elif most is not None and len(driven) >= most:
            problems.add(
                place,
                where,
                f"{board.name} drives {most} pins as PWM, and this is one more",
                hint="drive it as an output, or choose another board",
            )


def _safe_pin(manifest, board: Profile, problems: Problems) -> None:
    """The safe-mode pin is read at each start, with its pull-up."""
    pin = manifest.settings.boot.safe_pin if manifest.settings.boot else None
    if pin is None or board.runtime != "micropython":
        return
    path, others = (
        ("boot", "safe_pin"),
        [other.name for other in manifest.settings.pins if other.pin == pin],
    )
    if others:
        problems.add(
            manifest.settings.place,
            path,
            f"pin {pin} is {others[0]} already",
            hint="a button that keeps the agent from starting needs a pin of its own",
        )
    elif not is_in_spans(board.pins.digital, pin):
        problems.add(
            manifest.settings.place,
            path,
            f"{board.name} has no digital pin {pin}",
            hint=f"digital pins on {board.name}: {', '.join(board.pins.digital)}",
        )
    elif is_in_spans(board.pins.input_only, pin):
        problems.add(
            manifest.settings.place,
            path,
            f"pin {pin} of {board.name} has no pull-up",
            hint="choose a pin that can be an output too",
        )


_OVERLAYS = {
    "i2c": "dtparam=i2c_arm=on",
    "spi": "dtparam=spi=on",
    "one-wire": "dtoverlay=w1-gpio,gpiopin=%d",
    "uart": "enable_uart=1",
    "neopixel": "dtparam=spi=on",
    "dht": "dtoverlay=dht11,gpiopin=%d",
}


def overlays(manifest) -> list:
    """Return [((file, line), message)] of what a Raspberry Pi's config.txt must say for the buses
    and the PWM pins of *manifest*."""
    settings, found = manifest.settings, []
    for index, bus in enumerate(settings.buses):
        wanted = _OVERLAYS[bus.kind]
        wanted = wanted % (bus.pin or 4) if "%" in wanted else wanted
        text = f"bus {bus.name} needs {wanted} in /boot/firmware/config.txt"
        found.append((settings.where("buses", index), text))
    for index, pin in enumerate(settings.pins):
        if pin.kind == "pwm":
            text = f"pin {pin.name} needs dtoverlay=pwm-2chan in /boot/firmware/config.txt"
            found.append((settings.where("pins", index), text))
    return found
