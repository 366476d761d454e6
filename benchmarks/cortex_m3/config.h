// What firmware of boards has, and MicroPython's port to QEMU has not.
#undef MICROPY_PY_SYS_STDIO_BUFFER
#undef MICROPY_PY_SELECT
#undef MICROPY_PY_TIME
#define MICROPY_PY_SYS_STDIO_BUFFER (1)
#define MICROPY_PY_SELECT (1)
#define MICROPY_PY_TIME (1)
#define MICROPY_PY_TIME_GMTIME_LOCALTIME_MKTIME (1)
#define MICROPY_PY_TIME_TIME_TIME_NS (1)
#define MICROPY_PY_TIME_INCLUDEFILE "ports/qemu/clawlite/time.c"
#define MICROPY_PY_OS_URANDOM (1)
#define MICROPY_PY_OS_INCLUDEFILE "ports/qemu/clawlite/os.c"
#define MICROPY_PY_OS_SYNC (1)
#define MICROPY_KBD_EXCEPTION (1)
#define MICROPY_PY_HASHLIB_SHA256 (1)
#define MICROPY_SCHEDULER_DEPTH (8)
#define MICROPY_TRACKED_ALLOC (0)
