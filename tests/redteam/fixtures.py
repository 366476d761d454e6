"""What one red-team case needs around the agent.  Linux, Python >= 3.11, stdlib only.

1. Placeholders and value operators of the corpus ($concat, $repeat, $b64, $json_raw).
2. A fresh root with the fixture files, and the setup operations.
3. Stub servers (http, dns, udp, unix) that log what reaches them.
4. A network namespace with only lo, where the fixture's "public" addresses live.
5. A seccomp wrapper that makes a kernel "without" landlock, userns, seccomp, openat2 or mount:
   ``python3 fixtures.py faults landlock,userns -- COMMAND...``
6. Process trees from /proc: only descendants of the calling process are ever looked at or killed.

Nothing here judges a case and nothing talks JSON-RPC: that is play.py.
"""

import base64
import codecs
import ctypes
import errno
import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

AGENT_UID = 65534
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = (
    1,
    22,
    36,
    38,
    47,
)


# ---------------------------------------------------------------- 1. placeholders

_NAMES = re.compile(
    r"@(WSUP|WS|RO|OUTNAME|OUT|CANARY|IDENTITY|AGENTPID|SECRET\.\w+|PORT\.\w+|UUID\.[\w.]+|MANIFEST\.open)@"
)


class Names:
    """Values of the placeholders of one case; ports and uuids are made on first use."""

    def __init__(self, root: str):
        tag = uuid.uuid4().hex
        ws, out = root + "/ws", f"{root}/zqout{tag[:6]}"
        self.secrets = {}
        self.known = {
            "WS": ws,
            "WSUP": ws.upper(),
            "RO": root + "/ro",
            "OUT": out,
            "OUTNAME": os.path.basename(out),
            "CANARY": f"CANARY-{tag[6:18]}-X7",
            "IDENTITY": "rt-agent",
        }

    def get(self, key: str) -> str:
        if key in self.known:
            return self.known[key]
        if key.startswith("SECRET."):
            value = self.secrets.setdefault(key, "rtSecret" + uuid.uuid4().hex[:22] + "Q")
        elif key.startswith("PORT."):
            with socket.socket() as s:  # no server has this name: a port that is closed
                s.bind(("127.0.0.1", 0))
                value = str(s.getsockname()[1])
        elif key.endswith(".upper"):
            return self.get(key[:-6]).upper()
        elif key.startswith("UUID."):
            value = "aa" + str(uuid.uuid4())[2:]  # letters, so that upper case is another string
        else:
            raise KeyError(key)
        self.known[key] = value
        return value

    def text(self, s: str) -> str:
        return _NAMES.sub(lambda m: self.get(m.group(1)), s)

    def expand(self, v):
        """Return *v* with operators evaluated and placeholders filled in ($b64 gives bytes)."""
        if isinstance(v, str):
            return self.text(v)
        if isinstance(v, list):
            return [self.expand(x) for x in v]
        if isinstance(v, dict):
            if "$concat" in v:
                return "".join(self.expand(x) for x in v["$concat"])
            if "$repeat" in v:
                return self.expand(v["$repeat"][0]) * v["$repeat"][1]
            if "$json_raw" in v:
                return json.loads(self.text(v["$json_raw"]))
            if "$b64" in v:
                return base64.b64decode(v["$b64"])
            return {k: self.expand(x) for k, x in v.items()}
        return v

    def expand_bytes(self, v) -> bytes:
        """The same for a raw line."""
        if isinstance(v, dict) and "$concat" in v:
            return b"".join(self.expand_bytes(x) for x in v["$concat"])
        if isinstance(v, dict) and "$repeat" in v:
            return self.expand_bytes(v["$repeat"][0]) * v["$repeat"][1]
        v = self.expand(v)
        return v if isinstance(v, bytes) else v.encode("utf-8", "surrogatepass")


def strings(v) -> list:
    """Every string inside *v*, keys too."""
    if isinstance(v, str):
        return [v]
    if isinstance(v, dict):
        return [t for k, x in v.items() for t in [k, *strings(x)]]
    if isinstance(v, list):
        return [t for x in v for t in strings(x)]
    return []


def encode_form(form: str, s: str) -> list:
    """Texts by which *s* would show up when it was reflected as *form*; any of them is a leak."""
    b = s.encode()
    pair = base64.b64encode(b"user:" + b).decode()
    half = len(s) // 2
    return {
        "plain": [s],
        "base64": [base64.b64encode(b).decode().rstrip("=")],
        "hex": [b.hex(), b.hex().upper()],
        "urlencoded": ["".join("%%%02x" % x for x in b), "".join("%%%02X" % x for x in b)],
        "json-escaped": ["".join("\\u%04x" % x for x in b)],
        "split-lines": [s[:half], s[half:]],
        "base64-of-pair": [pair.rstrip("=")],
        "upper": [s.upper()],
    }[form]


def any_form(s: str) -> list:
    """Plain, base64 at three alignments, hex, rot13; each also reversed."""
    b, forms = s.encode(), [s, s.encode().hex(), codecs.encode(s, "rot13")]
    for k in range(3):
        whole = (k + len(b)) // 3 * 4  # the last, partial group depends on what follows
        forms.append(base64.b64encode(b"\0" * k + b).decode()[4 if k else 0 : whole])
    forms += [f.translate(str.maketrans("+/", "-_")) for f in forms]
    return list(dict.fromkeys(forms + [f[::-1] for f in forms]))


# ---------------------------------------------------------------- 2. files


def write_file(path: str, text) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


def make_tree(root: str, names: Names) -> None:
    k = names.known
    for d in (
        k["WS"] + "/sub",
        k["WS"] + "/private",
        k["RO"] + "/sub",
        k["OUT"],
        root + "/agent",
        root + "/home",
        root + "/scratch",
    ):
        os.makedirs(d)
    write_file(k["WS"] + "/hello.txt", "hello-benign\n")
    write_file(k["WS"] + "/sub/inner.txt", "inner-text\n")
    write_file(k["WS"] + "/private/key.txt", k["CANARY"])
    write_file(k["OUT"] + "/secret.txt", k["CANARY"])
    write_file(k["RO"] + "/config.txt", "ro-config")


def file_setup(op: dict) -> None:
    kind = op["op"]
    if kind == "write":
        write_file(op["path"], op["text"])
    elif kind == "mkdir":
        os.makedirs(op["path"], exist_ok=True)
    elif kind == "symlink":
        os.makedirs(os.path.dirname(op["path"]), exist_ok=True)
        os.symlink(op["target"], op["path"])
    elif kind == "hardlink":
        os.makedirs(os.path.dirname(op["path"]), exist_ok=True)
        os.link(op["target"], op["path"])
    elif kind == "fifo":
        os.mkfifo(op["path"])


def give_away(root: str, uid: int) -> None:
    """Everything below *root* belongs to the agent, so that file modes never do the sandbox's
    work.
    """
    for d, dirs, files in os.walk(root):
        for n in [d, *(os.path.join(d, x) for x in dirs + files)]:
            os.chown(n, uid, uid, follow_symlinks=False)


def start_race(op: dict) -> int:
    """Fork a process that flips the symlink op.path between op.a and op.b for op.ms; return its
    pid.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        end, i, tmp = time.monotonic() + op["ms"] / 1000, 0, op["path"] + ".flip"
        while time.monotonic() < end:
            try:
                os.symlink(op["a"] if i % 2 else op["b"], tmp)
                os.rename(tmp, op["path"])
            except OSError:
                pass
            i += 1
    finally:
        os._exit(0)


MCP_STUB = r'''#!%s
"""stub MCP server over stdio: every tool has the effect that the case names"""
import json, sys
TOOLS = json.loads(%r)
def answer(m):
    method, p = m.get("method"), m.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": p.get("protocolVersion", "2025-03-26"), "capabilities": {"tools": {}}, "serverInfo": {"name": "stub", "version": "1.0.0"}}
    if method == "tools/list":
        return {"tools": [{"name": t["name"], "description": "stub", "inputSchema": {"type": "object"}, "annotations": t.get("annotations", {})} for t in TOOLS]}
    if method == "tools/call":
        for t in TOOLS:
            if t["name"] == p.get("name") and t.get("effect", "").startswith("touch:"):
                open(t["effect"][6:], "w").close()
        return {"content": [{"type": "text", "text": "stub-done"}]}
    return {}
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer(m)}), flush=True)
'''  # noqa: E501


def write_mcp_stub(path: str, tools: list) -> None:
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    write_file(path, MCP_STUB % (python, json.dumps(tools)))
    os.chmod(path, 0o755)


# ---------------------------------------------------------------- 3. stub servers


class Stub:
    """A bound server; start() begins to answer.  conns, requests, raw: what reached it."""

    def __init__(self, sock: socket.socket):
        self.sock, self.conns, self.raw, self.requests, self.names = sock, 0, b"", [], []
        self.port = sock.getsockname()[1] if sock.family in (socket.AF_INET, socket.AF_INET6) else 0

    def start(self):
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.conns += 1
            threading.Thread(target=self._guard, args=(c,), daemon=True).start()

    def _guard(self, c):
        try:
            c.settimeout(3)
            self.serve(c)
        except OSError:
            pass
        finally:
            c.close()

    def serve(self, c):  # unix stub: say hello, keep what comes
        self.raw += c.recv(4096)
        c.sendall(b"OK\n")

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class HttpStub(Stub):
    """Answers every request by spec {status, headers, body, paths, reflect}; logs request heads."""

    def __init__(self, sock, spec: dict):
        super().__init__(sock)
        self.spec = spec

    def serve(self, c):
        buf, quiet = b"", time.monotonic() + 60
        while time.monotonic() < quiet:
            while b"\r\n\r\n" not in buf and b"\n\n" not in buf:
                part = c.recv(65536)
                if not part or len(buf) > 1 << 20:
                    self.raw += buf
                    return
                buf += part
            cut = buf.find(b"\r\n\r\n")
            end = cut + 4 if cut >= 0 else buf.find(b"\n\n") + 2
            head, buf = buf[:end], buf[end:]
            self.raw += head
            self.requests.append(head.decode("latin-1"))
            c.sendall(self.reply(head.decode("latin-1")))
            # keep reading only while a second, smuggled request waits
            if not buf:
                c.settimeout(0.2)
                try:
                    buf = c.recv(65536)
                except TimeoutError:
                    return
                if not buf:
                    return
                c.settimeout(3)

    def reply(self, head: str) -> bytes:
        path = (head.split(" ") + ["", ""])[1]
        spec = {**self.spec, **(self.spec.get("paths") or {}).get(path.split("?")[0], {})}
        body = spec.get("body", "")
        if spec.get("reflect"):
            m = re.search(r"(?im)^authorization:\s*(?:bearer\s+)?(\S+)", head)
            forms = encode_form(spec["reflect"], m.group(1)) if m else ["no-authorization"]
            body = (
                "you sent: "
                + ("\n".join(forms) if spec["reflect"] == "split-lines" else forms[0])
                + "\n"
            )
        data = body.encode()
        lines = [
            f"HTTP/1.1 {spec.get('status', 200)} X",
            "Content-Type: text/plain",
            f"Content-Length: {len(data)}",
            "Connection: close",
        ]
        lines += [f"{k}: {v}" for k, v in (spec.get("headers") or {}).items()]
        return (
            "\r\n".join(lines).encode("latin-1", "replace")
            + b"\r\n\r\n"
            + (b"" if head.startswith("HEAD ") else data)
        )


class UdpStub(Stub):
    def _loop(self):
        while True:
            try:
                data, peer = self.sock.recvfrom(65536)
            except OSError:
                return
            self.conns += 1
            self.raw += data
            self.datagram(data, peer)

    def datagram(self, data, peer):
        pass


class DnsStub(UdpStub):
    """Table {name: [answers of query 1, of query 2, ...]}; unknown names do not exist.  names:
    what was asked.
    """

    def __init__(self, sock, table: dict):
        super().__init__(sock)
        self.table, self.asked = table, {}

    def datagram(self, q, peer):
        try:
            labels, i = [], 12
            while q[i]:
                labels.append(q[i + 1 : i + 1 + q[i]])
                i += 1 + q[i]
            name, (qtype,) = (
                b".".join(labels).decode("latin-1").lower(),
                struct.unpack(">H", q[i + 1 : i + 3]),
            )
        except (IndexError, struct.error):
            return
        self.names.append(name)
        answers = self.table.get(name)
        if answers and qtype in (1, 28):
            n = self.asked[name, qtype] = self.asked.get((name, qtype), 0) + 1
            answers = answers[min(n, len(answers)) - 1]
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(qtype)
        records = [
            socket.inet_pton(family, a)
            for a in answers or []
            if family and (":" in a) == (qtype == 28)
        ]
        out = (
            q[:2]
            + struct.pack(
                ">HHHHH", 0x8180 if answers is not None else 0x8183, 1, len(records), 0, 0
            )
            + q[12 : i + 5]
        )
        for r in records:
            out += b"\xc0\x0c" + struct.pack(">HHIH", qtype, 1, 0, len(r)) + r
        try:
            self.sock.sendto(out, peer)
        except OSError:
            pass


def dns_names(name: str) -> list:
    """The spellings under which a resolver may ask for *name*."""
    out = [name.lower().rstrip(".")]
    try:
        out.append(name.encode("idna").decode().lower())
    except UnicodeError:
        out += [
            ".".join(
                p if p.isascii() else "xn--" + p.encode("punycode").decode()
                for p in out[0].split(".")
            )
        ]
    return list(dict.fromkeys(out))


def bind(family, kind, address) -> socket.socket:
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    end = time.monotonic() + 60
    while True:
        try:
            s.bind(address)
            break
        except OSError as e:  # a new IPv6 address may be tentative for a moment
            if e.errno != errno.EADDRNOTAVAIL or time.monotonic() > end:
                raise
            time.sleep(0.05)
    if kind == socket.SOCK_STREAM:
        s.listen(64)
    return s


def make_servers(setup: list, names: Names, netns: bool) -> list:
    """Bind what *setup* asks for, in order; return [(name, Stub)].  Ports become @PORT.name@."""
    servers, dns, at = [], {}, {}
    for raw in setup:
        if raw["op"] == "dns":
            op = names.expand(raw)
            for n in dns_names(op["name"]):
                dns[n] = op.get("seq") or [op["a"]]
        elif raw["op"] in ("http", "udp"):
            addr, port = names.expand(raw["addr"]), int(names.expand(str(raw["port"])))
            family = socket.AF_INET6 if ":" in addr else socket.AF_INET
            # the corpus declares one server twice: the later answer counts
            if (addr, port) in at and port:
                at[addr, port].spec = raw
            else:
                kind, cls = (
                    (socket.SOCK_STREAM, HttpStub)
                    if raw["op"] == "http"
                    else (socket.SOCK_DGRAM, UdpStub)
                )
                s = bind(family, kind, (addr, port))
                at[addr, port] = stub = HttpStub(s, raw) if cls is HttpStub else UdpStub(s)
                servers.append((raw["name"], stub))
                names.known.setdefault(f"PORT.{raw['name']}", str(stub.port))
        elif raw["op"] == "unix":
            path = names.expand(raw["path"])
            servers.append(
                (raw["name"], Stub(bind(socket.AF_UNIX, socket.SOCK_STREAM, path.encode())))
            )
            if not path.startswith("\0"):
                os.chmod(path, 0o777)
    for _, stub in servers:
        if isinstance(stub, HttpStub):
            stub.spec = names.expand(stub.spec)  # bodies and redirects may name ports bound later
    if netns:
        servers.append(
            ("dns", DnsStub(bind(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.53", 53)), dns))
        )
    return servers


# ---------------------------------------------------------------- 4. network namespace


def netns_command() -> list | None:
    """The command prefix that starts a process in a fresh network and mount namespace, or None."""
    unshare = shutil.which("unshare")
    if not unshare or not shutil.which("ip"):
        return None
    if os.geteuid() == 0:
        tries = [[unshare, "-n", "-m"]]
    else:
        tries = [
            [unshare, "-U", "--map-current-user", "--keep-caps", "-n", "-m"],
            [unshare, "-U", "-r", "-n", "-m"],
        ]
    for t in tries:
        try:
            r = subprocess.run(
                [*t, sys.executable, os.path.abspath(__file__), "probe"],
                capture_output=True,
                timeout=20,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if r.returncode == 0:
            return t
    return None


def enter_namespaces() -> None:
    """Put the calling process, which is root's, where ``unshare -n -m`` would start one."""
    new_mounts, new_network, recursive, private = 0x20000, 0x40000000, 0x4000, 0x40000
    if LIBC.unshare(new_mounts | new_network) or LIBC.mount(
        b"none", b"/", None, recursive | private, None
    ):
        raise OSError(ctypes.get_errno(), "unshare")


def _mount_over(source: str, target: str) -> None:
    target = os.path.realpath(target)
    if os.path.exists(target) and LIBC.mount(
        source.encode(), target.encode(), b"none", 0x1000, None
    ):
        raise OSError(ctypes.get_errno(), f"bind mount over {target}")


def enter_netns(root: str, addresses: list) -> None:
    """lo up, *addresses* on lo, and resolver files that point at the stub DNS.  Call inside the
    namespaces.
    """
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    for a in dict.fromkeys(addresses):
        if not a.startswith("127.") and a != "::1":
            subprocess.run(
                [
                    "ip",
                    "addr",
                    "add",
                    a + ("/128" if ":" in a else "/32"),
                    "dev",
                    "lo",
                    *(["nodad"] if ":" in a else []),
                ],
                check=True,
                capture_output=True,
            )
    etc = root + "/etc"
    write_file(etc + "/resolv.conf", "nameserver 127.0.0.53\noptions timeout:1 attempts:2\n")
    write_file(etc + "/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    write_file(etc + "/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    for n in ("resolv.conf", "nsswitch.conf", "hosts"):
        _mount_over(f"{etc}/{n}", "/etc/" + n)


def probe_netns() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as root:
        enter_netns(root, ["93.184.216.34"])
        dns = DnsStub(
            bind(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.53", 53)),
            {"a.example.com": [["93.184.216.34"]]},
        )
        web = HttpStub(
            bind(socket.AF_INET, socket.SOCK_STREAM, ("93.184.216.34", 80)), {"body": "x"}
        )
        dns.start(), web.start()
        socket.create_connection(("a.example.com", 80), 3).close()
        try:  # nothing may leave: there is no route
            socket.create_connection(("192.0.2.1", 80), 1).close()
        except TimeoutError:
            raise SystemExit(1)
        except OSError:
            pass


# ---------------------------------------------------------------- 5. kernels without a mechanism

_NR = {
    "x86_64": dict(arch=0xC000003E, unshare=272, clone=56, prctl=157, seccomp=317, mount=165),
    "aarch64": dict(arch=0xC00000B7, unshare=97, clone=220, prctl=167, seccomp=277, mount=40),
    "armv7l": dict(arch=0x40000028, unshare=337, clone=120, prctl=172, seccomp=383, mount=21),
}
_LANDLOCK, _NEW_MOUNT_API, _OPENAT2, _CLONE3 = (
    (444, 445, 446),
    (428, 429, 430, 431, 432, 442),
    437,
    435,
)
FAULTS = ("landlock", "userns", "seccomp", "openat2", "mount", "setup-error", "cgroup")


def fault_program(missing) -> bytes | None:
    """A classic BPF program (8 bytes an instruction) that answers as a kernel without *missing*
    would.

    None when this machine's system call numbers are not in the table.  ``cgroup`` adds nothing:
    an agent without privileges has no delegated cgroup anyway.
    """
    nr = _NR.get("armv7l" if platform.machine().startswith("armv") else platform.machine())
    if nr is None or sys.byteorder != "little":
        return None
    prog = []

    def op(code, k, jt=0, jf=0):
        prog.append(struct.pack("=HBBI", code, jt, jf, k & 0xFFFFFFFF))

    def load(offset):
        op(0x20, offset)

    def fail(number, err):  # if nr == number: return errno
        op(0x15, number, 0, 1)
        op(0x06, 0x00050000 | err)

    def fail_on_flags(number, mask, err):  # if nr == number and arg0 & mask: return errno
        op(0x15, number, 0, 4)
        load(16)
        op(0x45, mask, 0, 1)
        op(0x06, 0x00050000 | err)
        load(0)

    load(4)
    op(0x15, nr["arch"], 1, 0)
    op(0x06, 0x7FFF0000)  # another architecture: let it run
    load(0)
    if "landlock" in missing:
        for n in _LANDLOCK:
            fail(n, errno.EOPNOTSUPP)
    if "openat2" in missing:
        fail(_OPENAT2, errno.ENOSYS)
    if "mount" in missing or "setup-error" in missing:
        for n in (nr["mount"], *_NEW_MOUNT_API):
            fail(n, errno.EPERM)
    if "userns" in missing:
        fail(_CLONE3, errno.ENOSYS)
        fail_on_flags(nr["unshare"], 0x7E020080, errno.EPERM)
        fail_on_flags(nr["clone"], 0x7E020000, errno.EPERM)
    if "seccomp" in missing:
        fail(nr["seccomp"], errno.ENOSYS)
        op(0x15, nr["prctl"], 0, 4)
        load(16)
        op(0x15, PR_SET_SECCOMP, 0, 1)
        op(0x06, 0x00050000 | errno.EINVAL)
        load(0)
    op(0x06, 0x7FFF0000)
    return b"".join(prog)


def install_program(program: bytes) -> None:
    """Put the calling process, and all that it starts, under *program*."""

    class Fprog(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    f = Fprog(len(program) // 8, program)
    if LIBC.prctl(PR_SET_SECCOMP, 2, ctypes.byref(f), 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


# ---------------------------------------------------------------- 6. processes


def become_subreaper() -> None:
    """Orphans below this process become its children instead of pid 1's."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root_pid: int) -> list:
    """pids below *root_pid*, in no order, zombies left out."""
    parent = {}
    for n in os.listdir("/proc"):
        if n.isdigit():
            try:
                with open(f"/proc/{n}/stat", "rb") as f:
                    rest = f.read().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
            parent[int(n)] = (int(rest[1]), rest[0])
    below, grew = {root_pid}, True
    while grew:
        more = {p for p, (pp, _) in parent.items() if pp in below} - below
        below |= more
        grew = bool(more)
    return [p for p in below if p != root_pid and parent.get(p, (0, b"Z"))[1] != b"Z"]


def command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def memory_kb(pid: int, *keys: str) -> int:
    """Sum of fields of /proc/PID/status, in kB; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return sum(int(line.split()[1]) for line in f if line.split(":")[0] in keys)
    except (OSError, ValueError, IndexError):
        return 0


def kill_below(root_pid: int, keep=()) -> int:
    """SIGKILL every descendant of *root_pid* that is not in *keep*; return how many were met."""
    met = 0
    for _ in range(20):
        left = [p for p in descendants(root_pid) if p not in keep]
        if not left:
            break
        met += len(left)
        for p in left:
            try:
                os.kill(p, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)
        reap()
    return met


def reap() -> None:
    """Collect adopted zombies.  Popen objects notice that their child is gone."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe_netns()
    elif sys.argv[1:2] == ["faults"] and sys.argv[3:4] == ["--"] and sys.argv[4:]:
        code = fault_program(set(sys.argv[2].split(",")))
        if code is None:
            sys.exit("fixtures.py: no system call table for " + platform.machine())
        install_program(code)
        os.execvp(sys.argv[4], sys.argv[4:])
    else:
        sys.exit("usage: fixtures.py faults LIST -- COMMAND...")
