"""System calls for which Python has no function, by number, for each machine that clawlite knows.

1. The machine is that of this process, not of the kernel: a 32-bit Python on a 64-bit kernel makes
   32-bit calls.
2. Numbers from 424 on are the same everywhere; the older ones are in a table for each machine
   (Linux: arch/x86/entry/syscalls/syscall_64.tbl, arch/arm/tools/syscall.tbl, scripts/syscall.tbl).
3. Only the sandbox's server loads this module: ``ctypes`` takes 2 ms, too long for the agent before
   READY.
"""

import ctypes
import os
import struct

X86_64, AARCH64, ARM = "x86_64", "aarch64", "arm"
AUDIT_ARCH = {X86_64: 0xC000003E, AARCH64: 0xC00000B7, ARM: 0x40000028}  # linux/audit.h
# the first number that is not assigned yet; later system calls are refused until they are known
CEILING = 470
ARM_PRIVATE = (0xF0001, 0xF0006)  # breakpoint .. get_tls (arch/arm/include/uapi/asm/unistd.h)

_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "close_range": 436,
    "openat2": 437,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
_ROWS = """
name                x86_64 aarch64 arm
acct                163 89 51
add_key             248 217 309
adjtimex            159 171 124
bind                49 200 282
bpf                 321 280 386
chmod               90 - 15
chown               92 - 182
chown32             - - 212
chroot              161 51 61
clock_adjtime       305 266 372
clock_adjtime64     - - 405
clock_settime       227 112 262
clock_settime64     - - 404
clone               56 220 120
connect             42 203 283
creat               85 - 8
delete_module       176 106 129
fanotify_init       300 262 367
fchmod              91 52 94
fchmodat            268 53 333
fchown              93 55 95
fchown32            - - 207
fchownat            260 54 325
fcntl               72 25 55
fcntl64             - - 221
finit_module        313 273 379
fremovexattr        199 16 237
fsetxattr           190 7 228
futimesat           261 - 326
get_mempolicy       239 236 320
init_module         175 105 128
inotify_add_watch   254 27 317
inotify_init        253 - 316
inotify_init1       294 26 360
io_setup            206 0 243
ioctl               16 29 54
ioperm              173 - -
iopl                172 - -
ioprio_set          251 30 314
kcmp                312 272 378
kexec_file_load     320 294 401
kexec_load          246 104 347
keyctl              250 219 311
kill                62 129 37
lchown              94 - 16
lchown32            - - 198
listen              50 201 284
lookup_dcookie      212 18 249
lremovexattr        198 15 236
lsetxattr           189 6 227
memfd_create        319 279 385
migrate_pages       256 238 400
mknod               133 - 14
mknodat             259 33 324
mmap                9 222 -
mmap2               - - 192
modify_ldt          154 - -
mount               165 40 21
move_pages          279 239 344
mq_open             240 180 274
mq_unlink           241 181 275
msgctl              71 187 304
msgget              68 186 303
msgrcv              70 188 302
msgsnd              69 189 301
name_to_handle_at   303 264 370
nfsservctl          180 42 169
open                2 - 5
open_by_handle_at   304 265 371
openat              257 56 322
perf_event_open     298 241 364
personality         135 92 136
pivot_root          155 41 218
prctl               157 167 172
prlimit64           302 261 369
process_vm_readv    310 270 376
process_vm_writev   311 271 377
ptrace              101 117 26
quotactl            179 60 131
reboot              169 142 88
removexattr         197 14 235
request_key         249 218 310
rt_sigqueueinfo     129 138 178
rt_tgsigqueueinfo   297 240 363
sched_setaffinity   203 122 241
sched_setattr       314 274 380
sched_setparam      142 118 154
sched_setscheduler  144 119 156
seccomp             317 277 383
semctl              66 191 300
semget              64 190 299
semop               65 193 298
semtimedop          220 192 312
semtimedop_time64   - - 420
sendfile            40 71 187
sendfile64          - - 239
sendmmsg            307 269 374
sendmsg             46 211 296
setdomainname       171 162 121
sethostname         170 161 74
setns               308 268 375
setpriority         141 140 97
setsockopt          54 208 294
settimeofday        164 170 79
setxattr            188 5 226
shmat               30 196 305
shmctl              31 195 308
shmget              29 194 307
socket              41 198 281
socketpair          53 199 288
splice              275 76 340
swapoff             168 225 115
swapon              167 224 87
sysfs               139 - 135
syslog              103 116 103
tee                 276 77 342
tgkill              234 131 268
tkill               200 130 238
umount2             166 39 52
unshare             272 97 337
uselib              134 - 86
userfaultfd         323 282 388
ustat               136 - 62
utime               132 - -
utimensat           280 88 348
utimensat_time64    - - 412
utimes              235 - 269
vhangup             153 58 111
vmsplice            278 75 343
"""


def _tables() -> dict:
    rows = [line.split() for line in _ROWS.split("\n") if line]
    return {
        machine: dict(
            _COMMON, **{row[0]: int(row[column]) for row in rows[1:] if row[column] != "-"}
        )
        for column, machine in enumerate(rows[0])
        if column
    }


TABLES = _tables()
_MACHINES = {
    ("x86_64", 8): X86_64,
    ("aarch64", 8): AARCH64,
    ("aarch64", 4): ARM,
    ("armv8l", 4): ARM,
    ("armv7l", 4): ARM,
    ("armv6l", 4): ARM,
}
# None: no table, so no sandbox
MACHINE = _MACHINES.get((os.uname().machine, struct.calcsize("P")))
NUMBERS = TABLES.get(MACHINE, {})

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_prctl = _libc.prctl
# _LINUX_CAPABILITY_VERSION_3
_CAP_HEADER = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = (
    1,
    4,
    22,
    24,
    36,
)
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47


def call(name: str, *arguments) -> int:
    """Make the system call *name*; raises ``OSError`` with the name in it.

    arguments  int, bytes (a NUL follows), None (a null pointer) or a ctypes pointer
    """
    number = NUMBERS.get(name)
    if number is None:
        raise OSError(38, "this machine has no number for it", name)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = _syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def prctl(option: int, *arguments) -> int:
    """prctl(2); raises ``OSError``."""
    words = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments] + [
        ctypes.c_ulong(0)
    ] * (4 - len(arguments))
    result = _prctl(option, *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "prctl %d" % option)
    return result


def drop_bounding():
    """Drop all capabilities from the bounding set, so that no program that is started later gets
    one.  Without CAP_SETPCAP this does nothing.
    """
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        # past the last one that this kernel knows, or not ours to drop
        except OSError:
            return


def drop_capabilities():
    """Give up all capabilities for good: the ambient, permitted, effective and inheritable sets."""
    prctl(PR_CAP_AMBIENT, 4)  # PR_CAP_AMBIENT_CLEAR_ALL
    if _libc.capset(_CAP_HEADER, bytes(24)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "capset")
