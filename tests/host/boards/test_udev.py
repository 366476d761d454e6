"""The udev rules that a maker copies are those of the board profiles."""

import re

from run_core_micropython import ROOT

from clawlite.host.boards import boards


def make_rules() -> str:
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


def test_the_rules_in_the_firmware_folder_are_what_the_profiles_make():
    assert (ROOT / "firmware-host/raspberrypi/70-clawlite.rules").read_text() == make_rules()


def test_every_board_with_usb_ids_has_a_rule_and_no_other():
    found = re.findall(r'idVendor\}=="(\w{4})", ATTRS\{idProduct\}=="(\w{4})"', make_rules())
    assert {f"{vendor}:{product}".upper() for vendor, product in found} == {
        usb for profile in boards.load_all() for usb in profile.usb or ()
    }
    assert len(found) == len(set(found)) > 3
