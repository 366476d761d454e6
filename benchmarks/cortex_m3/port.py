"""Make the firmware of the board that works.py measures on: ``python port.py SOURCE`` (README.md).

MicroPython's own port to QEMU gets a flash, a clock and a console that can be polled, which are the
files beside this one, a heap of any size, and the stack of a Pico.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OWN = ("board.c", "board.h", "config.h", "os.c", "time.c", "boot.py")
PORT, FIRMWARE = "ports/qemu", "build-MPS2_AN385/firmware.elf"
MOST_HEAP = 524288  # bytes
# file of the port -> what is put in place of what
EDITS = {
    "Makefile": [("\tmain.c \\\n", "\tmain.c clawlite/board.c shared/timeutils/timeutils.c \\\n")],
    "main.c": [
        ('#include "py/gc.h"\n', '#include "py/gc.h"\n#include "clawlite/board.h"\n'),
        ("mp_stack_set_limit(10240)", "mp_stack_set_limit(STACK_BYTES)"),
        ("(char *)gc_heap + MICROPY_HEAP_SIZE", "(char *)gc_heap + HEAP_BYTES"),
        (
            "mp_init();\n",
            'mp_init();\n        pyexec_frozen_module("boot.py", false);\n'
            '        pyexec_file_if_exists("main.py");\n',
        ),
    ],
    "mcu/arm/mps2.ld": [
        ("*(.rodata*)\n", "*(.rodata*)\n        *(.ARM.exidx*)\n        *(.ARM.extab*)\n")
    ],
    # another one is in board.c
    "mphalport.c": [("uintptr_t mp_hal_stdio_poll", "uintptr_t poll_nothing")],
}


def main(source: Path) -> int:
    port = source / PORT
    if not (port / "mcu/arm/mps2.ld").exists():
        sys.exit(f"{source}: expected MicroPython's source, with {PORT}: see {HERE}/README.md")
    (port / "clawlite").mkdir(exist_ok=True)
    for name in OWN:
        shutil.copy(HERE / name, port / "clawlite" / name)
    for name, changes in EDITS.items():
        _edit(port / name, changes)
    config = port / "mpconfigport.h"
    if "clawlite/config.h" not in config.read_text():
        with open(config, "a") as file:
            file.write('\n#include "clawlite/config.h"\n')
    subprocess.run(["make", "-C", source / "mpy-cross"], check=True)
    frozen = "FROZEN_MANIFEST=\"freeze('clawlite', 'boot.py')\""  # for a shell
    # none of that library's modules is frozen, and Debian's source has not all of it
    library = f"MPY_LIB_DIR={source}"
    words = [
        "BOARD=MPS2_AN385",
        f"MICROPY_HEAP_SIZE={MOST_HEAP}",
        frozen,
        library,
        "MICROPY_VFS_LFS2=1",
    ]
    subprocess.run(["make", "-C", port, *words], check=True)
    print(port / FIRMWARE)
    return 0


def _edit(path: Path, changes: list):
    text = path.read_text()
    for old, new in changes:
        if new in text:
            continue
        if text.count(old) != 1:
            sys.exit(f"{path}: expected {old!r} once: this is for MicroPython 1.26")
        text = text.replace(old, new)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
