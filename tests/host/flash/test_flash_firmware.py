"""``clawlite flash --firmware``: which file is for which board, and how it gets there: a drive,
or a program called esptool.
"""

import json
import os
import struct

import pytest
from agents import clawlite
from sims import needs_micropython
from ssh_server import command

from clawlite.core.base.errors import ClawError
from clawlite.host.boards import boards
from clawlite.host.flash import firmware as flash_firmware
from clawlite.host.flash import firmware_file
from clawlite.host.serial import ports
from clawlite.host.sim.sim import Sim

RP2040, RP2350_ARM, ANY = 0xE48BFF56, 0xE48BFF59, 0xE48BFF57


def block(number=0, count=1, family=RP2040, flags=0x2000, size=256, end=0x0AB16F30) -> bytes:
    return (
        struct.pack(
            "<8I",
            0x0A324655,
            0x9E5D5157,
            flags,
            0x10000000 + 256 * number,
            size,
            number,
            count,
            family,
        )
        + bytes(476)
        + struct.pack("<I", end)
    )


def uf2(count=3, family=RP2040) -> bytes:
    return b"".join(block(number, count, family) for number in range(count))


def esp(number=0, segments=4) -> bytes:
    return bytes([0xE9, segments, 2, 0x20]) + bytes(8) + struct.pack("<H", number) + bytes(100)


def drive(folder, board_id="RPI-RP2"):
    folder.mkdir()
    (folder / "INFO_UF2.TXT").write_text(
        f"UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: {board_id}\r\n"
    )
    return folder


def saved(tmp_path, data: bytes) -> str:
    (tmp_path / "firmware").write_bytes(data)
    return str(tmp_path / "firmware")


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))


# -- the file


@pytest.mark.parametrize(
    "data, chip",
    [
        (uf2(), "rp2040"),
        (uf2(family=RP2350_ARM), "rp2350"),
        (uf2(family=0xE48BFF5A), "rp2350"),
        (block(0, 2, ANY) + uf2(family=RP2350_ARM), "rp2350"),
        (block(9, 9, flags=0x2001, family=7) + uf2(), "rp2040"),
        (esp(0), "esp32"),
        (esp(9), "esp32s3"),
        (esp(5), "esp32c3"),
        (esp(13), "esp32c6"),
        (esp(0, 1), "esp32"),
        (esp(0, 16), "esp32"),
        (block(size=476), "rp2040"),
    ],
)
def test_the_chip_is_in_the_file(tmp_path, data, chip):
    assert firmware_file.read(saved(tmp_path, data)).chip == chip


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "neither UF2"),
        (b"\x7fELF" + bytes(600), "neither UF2"),
        (uf2()[:-1], "no whole number"),
        (uf2()[:512], "1 blocks, expected 3"),
        (block(0, 2) + block(0, 2), "1 blocks, expected 2"),
        (block(2, 2) + block(0, 2), "2 blocks, expected 2"),
        (block(0, 2) + b"\0" * 512, "block 1 is damaged"),
        (block(end=0), "block 0 is damaged"),
        (block(size=477), "block 0 is damaged"),
        (block(flags=0), "does not say which chip"),
        (block(family=0xC47E5767), "UF2 family C47E5767"),
        (block(0, 1, ANY), "for no chip"),
        (uf2() + uf2(family=RP2350_ARM), "chips rp2040 and rp2350"),
        (esp(0)[:23], "is none"),
        (esp(0, 0), "is none"),
        (esp(0, 17), "is none"),
        (esp(2), "ESP chip number 2"),
    ],
)
def test_a_file_that_is_not_firmware_is_refused(tmp_path, data, words):
    with pytest.raises(ClawError, match=words) as refused:
        firmware_file.read(saved(tmp_path, data))
    assert refused.value.hint


def test_a_file_has_a_length(tmp_path, monkeypatch):
    monkeypatch.setattr(firmware_file, "MAX_BYTES", 1536)
    assert firmware_file.read(saved(tmp_path, uf2(3))).chip == "rp2040"
    with pytest.raises(ClawError, match="at most 1536 bytes"):
        firmware_file.read(saved(tmp_path, uf2(4)))
    with pytest.raises(ClawError, match="No such file"):
        firmware_file.read(str(tmp_path / "nope"))


def test_every_board_with_micropython_has_a_chip_of_the_table():
    for profile in boards.load_all():
        assert (profile.chip in firmware_file.CHIPS) == (
            profile.runtime == "micropython" and profile.name != "sim"
        ), profile.name


# -- a drive


def test_a_uf2_file_goes_onto_the_drive(tmp_path):
    file, there = saved(tmp_path, uf2(300)), drive(tmp_path / "RPI-RP2")
    done = clawlite(
        "flash",
        "--firmware",
        file,
        "--dir",
        there,
        "--board",
        "pico-w",
        "--yes",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["chip"], found["where"], found["written"], found["bytes"]) == (
        "rp2040",
        "drive",
        True,
        300 * 512,
    )
    assert (there / "firmware.uf2").read_bytes() == uf2(300)


@pytest.mark.parametrize(
    "more, code, words",
    [
        (["--dry-run"], 0, "MicroPython for rp2040"),
        ([], 2, "confirm with --yes"),
        (["--yes", "--board", "pico2"], 2, "the board pico2 has rp2350"),
        (["--yes", "--board", "rpi-4"], 2, "no chip that takes"),
        (["--yes", "--port", "/dev/null"], 2, "hold BOOTSEL"),
        (["--ssh", "pi"], 2, "writes MicroPython alone"),
    ],
)
def test_nothing_is_written(tmp_path, more, code, words):
    file, there = saved(tmp_path, uf2()), drive(tmp_path / "RPI-RP2")
    done = clawlite("flash", "--firmware", file, "--dir", there, *more, cwd=tmp_path)
    assert (
        done.returncode == code and words in done.stderr and not (there / "firmware.uf2").exists()
    ), done.stderr


def test_a_drive_of_another_chip_or_none(tmp_path):
    file = saved(tmp_path, uf2())
    for folder, words in (
        (drive(tmp_path / "RP2350", "RP2350"), "says that it is RP2350"),
        (tmp_path, "no drive of a board"),
    ):
        done = clawlite("flash", "--firmware", file, "--dir", folder, "--yes", cwd=tmp_path)
        assert (
            done.returncode == 2 and words in done.stderr and not (folder / "firmware.uf2").exists()
        )


def test_the_only_drive_is_found_and_none_is_chosen_between_two(tmp_path):
    firmware = firmware_file.read(saved(tmp_path, uf2()))
    one, _ = drive(tmp_path / "one drive"), drive(tmp_path / "of another chip", "RP2350")
    lines = [
        f"/dev/sda1 {str(path).replace(' ', chr(92) + '040')} vfat rw 0 0\n"
        for path in (one, tmp_path / "of another chip", tmp_path)
    ]
    (tmp_path / "mounts").write_text("".join(lines))
    assert flash_firmware.only_drive(firmware, tmp_path / "mounts") == str(one)
    drive(tmp_path / "two")
    (tmp_path / "mounts").write_text("".join(lines) + f"/dev/sdb1 {tmp_path}/two vfat rw 0 0\n")
    with pytest.raises(ports.NoPort, match="more than one board waits"):
        flash_firmware.only_drive(firmware, tmp_path / "mounts")
    with pytest.raises(ports.NoPort, match="no drive of a board with rp2040") as refused:
        flash_firmware.only_drive(firmware, "/dev/null")
    assert refused.value.exit_code == 3 and "BOOTSEL" in refused.value.hint


def test_a_drive_that_goes_away_too_early_is_told(tmp_path):
    firmware = firmware_file.read(saved(tmp_path, uf2()))
    with pytest.raises(ClawError, match="No such file") as failed:
        flash_firmware.copy(firmware, str(tmp_path / "gone"), print)
    assert failed.value.exit_code == 1


# -- esptool


@pytest.fixture
def esptool(tmp_path, monkeypatch):
    """Return the folder of a program called esptool: it tells its words, and fails at the bauds
    in the file ``bad``.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    command(
        folder,
        "esptool",
        f'echo "$@" >>{folder}/calls; printf "Writing at 0x1000... (40 '
        f'%%)\\rWriting at 0x2000... (100 %%)\\n"\n'
        f'grep -qx "$6" {folder}/bad 2>/dev/null && {{ echo "Failed to '
        f'connect"; exit 2; }}; exit 0',
    )
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_esptool_is_run_and_tells_how_far_it_is(tmp_path, esptool):
    firmware, gone = firmware_file.read(saved(tmp_path, esp(0))), []
    flash_firmware.run_esptool(
        flash_firmware._esptool(), firmware, "/dev/ttyX", lambda total, more: gone.append(more)
    )
    assert (
        (esptool / "calls").read_text().split()
        == f"--chip esp32 --port /dev/ttyX --baud 460800 write_flash 0x1000 {tmp_path}/firmware".split()  # noqa: E501
    )
    assert sum(gone) == len(firmware.data)


def test_a_slower_baud_is_tried_once(tmp_path, esptool):
    firmware = firmware_file.read(saved(tmp_path, esp(9)))
    (esptool / "bad").write_text("460800\n")
    flash_firmware.run_esptool("esptool", firmware, "/dev/ttyX", lambda total, more: None)
    assert [line.split()[5] for line in (esptool / "calls").read_text().splitlines()] == [
        "460800",
        "115200",
    ]
    (esptool / "bad").write_text("460800\n115200\n")
    with pytest.raises(ClawError, match="esptool ended with 2: Failed to connect") as failed:
        flash_firmware.run_esptool("esptool", firmware, "/dev/ttyX", lambda total, more: None)
    assert failed.value.exit_code == 1


def test_no_esptool_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(
        flash_firmware.program.__globals__["sys"], "executable", str(tmp_path / "python")
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClawError, match="esptool") as refused:
        flash_firmware._esptool()
    assert refused.value.hint == "pip install esptool"


@needs_micropython
def test_a_port_of_another_chip_is_refused(tmp_path, esptool):
    file = saved(tmp_path, esp(0))
    with Sim() as board:
        done = clawlite(
            "flash",
            "--firmware",
            file,
            "--port",
            board.path,
            "--yes",
            cwd=tmp_path,
            CLAWLITE_STATE=tmp_path / "state",
        )
        assert done.returncode == 2 and "(sim) has no chip that takes such a file" in done.stderr
    with Sim("pico") as board, Sim("esp32") as right:
        done = clawlite(
            "flash",
            "--firmware",
            file,
            "--port",
            board.path,
            "--yes",
            cwd=tmp_path,
            CLAWLITE_STATE=tmp_path / "state",
        )
        assert done.returncode == 2 and "has rp2040" in done.stderr
        done = clawlite(
            "flash", "--firmware", file, "--yes", cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state"
        )
        assert (
            done.returncode == 3
            and "more than one board" in done.stderr
            and not (esptool / "calls").exists()
        )
        done = clawlite(
            "flash",
            "--firmware",
            file,
            "--port",
            right.path,
            "--yes",
            cwd=tmp_path,
            CLAWLITE_STATE=tmp_path / "state",
        )
        assert done.returncode == 0 and right.path in (esptool / "calls").read_text()
