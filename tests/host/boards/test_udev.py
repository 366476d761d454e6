"""The udev rules that a maker copies are those of the board profiles."""

import re

from run_core_micropython import ROOT

from clawlite.host.boards import boards
from clawlite.host.cli import udev


def test_the_rules_in_the_firmware_folder_are_what_the_profiles_make():
    assert (ROOT / "firmware-host/raspberrypi/70-clawlite.rules").read_text() == udev.rules()


def test_every_board_with_usb_ids_has_a_rule_and_no_other():
    found = re.findall(r'idVendor\}=="(\w{4})", ATTRS\{idProduct\}=="(\w{4})"', udev.rules())
    assert {f"{vendor}:{product}".upper() for vendor, product in found} == {
        usb for profile in boards.load_all() for usb in profile.usb or ()
    }
    assert len(found) == len(set(found)) > 3
