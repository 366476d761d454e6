"""The udev rules of boards: firmware-host/raspberrypi/70-clawlite.rules, made from the profiles."""

from clawlite.host.boards import boards


def rules() -> str:
    """Return rules that give the serial ports of all boards to the person at the seat and to the
    group dialout.
    """
    lines = [
        "# The serial ports of boards, made from boards/*.toml.  Copy it to "
        "/etc/udev/rules.d, then: sudo udevadm control --reload && sudo udevadm trigger",
        "# ModemManager keeps its hands off them: it would talk to a board that has just "
        "been plugged in.",
    ]
    for usb in sorted({usb.lower() for profile in boards.load_all() for usb in profile.usb or ()}):
        vendor, product = usb.split(":")
        lines.append(
            'SUBSYSTEM=="tty", ATTRS{idVendor}=="%s", ATTRS{idProduct}=="%s", '
            'GROUP="dialout", MODE="0660", TAG+="uaccess", '
            'ENV{ID_MM_DEVICE_IGNORE}="1"' % (vendor, product)
        )
    return "\n".join(lines) + "\n"
