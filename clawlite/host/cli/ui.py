"""What the host prints: data on stdout, talk on stderr, one JSON document with ``--json``."""

import json
import os
import sys
import threading
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import CommandFailed, LinesError, ManifestErrors, did_you_mean
from clawlite.host.base.progress import duration, estimate_left
from clawlite.host.boards import text as board_text

_LINE_S = 5  # between two lines of progress where no terminal is
_MANY_FILES = 8  # of a folder: more are one line


def print_document(value: object) -> None:
    """Print *value* as JSON; what drives a terminal or cannot be seen is escaped."""
    print(_json(value, 2))


def _json(value: object, indent: int | None = None) -> str:
    from clawlite.protocols.base.json_escapes import escape_json

    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent))


def show(found, as_json: bool, show_people, *about) -> None:
    """Print what was *found* as one document, or let ``show_people(found, *about)`` show it."""
    print_document(found) if as_json else show_people(found, *about)


def show_lines(found, as_json: bool, *lines: str) -> None:
    """Print what was *found* as one document, or *lines* for people."""
    if as_json:
        print_document(found)
    elif lines:
        print_data(*lines)


def print_data(*lines: str) -> None:
    """Print *lines* on stdout, each as one line: what strangers wrote into a manifest or a schema
    neither drives the terminal nor hides in it, and makes no further line.
    """
    print(_join(lines), flush=True)  # a console may follow, which writes past the buffer


def print_note(*lines: str) -> None:
    """Print *lines* on stderr, as ``print_data`` does."""
    print(_join(lines), file=sys.stderr)


def _join(lines) -> str:
    from clawlite.core.base.printable import join_lines

    return join_lines(lines)


def is_asking() -> bool:
    """Return whether a person is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def choose(question: str, rows: list, others) -> str:
    """Return what a person chooses: the first word of one of *rows*, (word, what it means) each, by
    its number or as it is, or one of *others*.  Enter takes the first; so does the end of input.
    """
    print_note(question)
    for number, (word, about) in enumerate(rows, 1):
        print_note(f"  {number}  {word:12} {about}")
    words = [word for word, _ in rows]
    while True:
        said = ask_text(f"Its number or name; Enter: {words[0]}")
        if not said:
            return words[0]
        if said.isdecimal() and 1 <= int(said) <= len(words):
            return words[int(said) - 1]
        if said in words or said in others:
            return said
        near = did_you_mean(said, [*words, *others])
        print_note(f"{said!r} is none of them{' - ' + near if near else ''}")


def ask_text(prompt: str) -> str:
    """Return the line that a person types; "" at the end of input."""
    print(f"{prompt} > ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def show_gallery(rows: list) -> None:
    for row in rows:
        print_data(f"{row['name']:12} {row['about']}")


def show_new_project(name: str, files: list[str], elsewhere: str = "") -> None:
    """Say what was made and what comes next; *elsewhere*: how it comes onto its board."""
    print_note(f"Made {name} with {', '.join(files)}.")
    if "claw.yaml" not in files:  # several agents, a folder each
        print_note(f"Next: cd {name} && clawlite swarm up")
        print_note('In another terminal there: clawlite swarm run "look at bed 3" leader')
        return
    if sys.platform == "win32":  # an agent does not run here
        print_note(
            f"Next: cd {name}, then clawlite flash --port PORT; clawlite ports lists the ports"
        )
        return
    print_note(
        f"Next: cd {name} && clawlite run" + (f"   (here), or {elsewhere}" if elsewhere else "")
    )


def show_schemas(files: list, first_line) -> None:
    print_note(f"Wrote {', '.join(files)}.")
    print_note("The first line of a file tells your editor which one is its own:")
    for name in ("claw.yaml", "clawlite.toml", "reflex.toml"):
        print_data(f"  {name}: {first_line(name).strip()}")


def show_check(found: dict) -> None:
    print_data(f"{found['file']}: valid CKP ({found['tools']} tools, {found['rules']} rules)")
    for line in found["not_asked"]:
        print_data(f"  asked by the first build: {line}")
    _print_drivers(found["drivers"])
    _print_warnings(found)


def show_build(found: dict) -> None:
    print_data(
        f"{found['file']}: {found['bytes']} bytes, needs: "
        f"{', '.join(found['requires']) or 'nothing special'}"
    )
    for uri in found["pinned"]:
        print_data(f"  pinned in clawlite.lock: {uri}")
    for part in found["sections"]:
        print_data(f"  {part['name']:14}{part['bytes']:7} bytes")
    _print_drivers(found["drivers"])
    print(
        f"  on MicroPython: about {found['heap_bytes']} bytes of heap, {found['held_bytes']} of "
        f"them held, "
        f"{found['flash_bytes']} of flash ({found['word_bits']}-bit words)"
    )
    if found["swarm_bytes"]:
        print(f"  for its swarm: about {found['swarm_bytes']} of the bytes that are held")
    if not found["board"]:
        print_data(*["  " + line for line in board_text.fit_lines(found["fits"], found["why_not"])])
    _print_warnings(found)


def show_added(found: list, is_dry: bool) -> None:
    for one in found:
        print_data(f"{_name_driver(one)}, from {one['source']}")
        for file in one["files"]:
            print_data(f"  {file['file']}: {file['change']}, {_describe_file(file)}")
    print_note("Nothing is written." if is_dry else "Pinned in clawlite.lock.")


def _name_driver(one: dict) -> str:
    return f"{one['name']} {one['version'] or ''}".rstrip()


def _describe_file(file: dict) -> str:
    return f"{file['bytes']} bytes, SHA-256 {file['sha256'][:16]}..."


def show_removed(found: dict, is_dry: bool) -> None:
    word = "would be removed" if is_dry else "removed"
    print_data(f"{found['name']}: {word}", *[f"  {file}: {word}" for file in found["files"]])
    for file in found["kept"]:
        print_note(f"  {file} stays: another driver has it, too, or it was changed here")
    for name in found["unneeded"]:
        print_note(f"  no driver needs {name} any more: clawlite remove {name}")


def show_drivers(found: list) -> None:
    for one in found:
        needs = f", needs {', '.join(one['needs'])}" if one["needs"] else ""
        print_data(f"{_name_driver(one)}, from {one['source']}{needs}")
        for file in one["files"]:
            print_data(f"  {file['file']}: {_describe_file(file)}")
    if not found:
        print_note("This project has no drivers: clawlite add NAME")
    for file in (file for one in found for file in one["files"] if file["problem"]):
        print_note(file["problem"])


def show_discovery(found: list, is_dry: bool) -> None:
    for one in found:
        parts = [
            f"{kind}: {', '.join(one[kind])}"
            for kind in ("added", "removed", "changed")
            if one[kind]
        ]
        written = "nothing is written" if is_dry else "written"
        said = "; ".join(parts) + f" - {written}" if parts else "as it was"
        print_data(f"{one['service']}: {one['file']}: {said}")


def _print_drivers(found: list) -> None:
    for one in found:
        where = "" if one["used"] else ", not imported: it stays here"
        print_data(f"  driver {_name_driver(one)}: {one['file']}, {one['bytes']} bytes{where}")


def _print_warnings(found: dict) -> None:
    """Show the warnings: what is most likely not meant (host/compiler/lint.py)."""
    for word in ("dead", "shadowed"):
        for rule in found[word]:
            why = "matches no tool" if word == "dead" else "an earlier rule always decides first"
            print_note(f"{rule['file']}:{rule['line']}: rule {rule['id']} never decides: {why}")
    for warning in found["warnings"]:
        where = f"{warning['file']}:{warning['line']}" if warning["line"] else warning["file"]
        print_note(f"{where}: warning: {warning['message']}")


def show_wiring(rows: list, found) -> None:
    print_data(f"{found.agent} on {found.board} ({found.header.title})")
    shown = None
    for row in rows:
        if row["part"] != shown:
            note = f"; {row['note']}" if row["note"] else ""
            print_data(f"{row['part']}: {row['about']}{note}")
            shown = row["part"]
        print_data(f"  {row['terminal']:8} {row['to']}")
    print_data(*found.notes)
    print_note("As a picture: clawlite wiring --output wiring.svg")


def show_new_board(path: str, source: str) -> None:
    print_note(f"Made {path} after {source}.")
    print_note(
        "Next: enter the facts of your board, and remove from unchecked what you have checked"
    )


def show_decision(found: dict) -> None:
    print_data(f"{found['name']}: {found['policy']}")
    if not found["known"]:
        print_note(
            "  This agent has no such tool, so its calls are refused as unknown. Should it get",
            "  one, this decides by its name alone: rules for labels and hints are not in it.",
        )


def show_sim(facts: dict, as_json: bool) -> None:
    print(_json(facts) if as_json else facts["port"], flush=True)
    print_note(
        f"A virtual board ({facts['board']}) is on {facts['link'] or facts['port']}; Ctrl-C ends "
        f"it."
    )
    print_note(f"Next: clawlite console --port {facts['link'] or facts['port']}")


def show_ports(found: list) -> None:
    from clawlite.host.serial.ports import next_step

    for port in found:
        print_data(_describe_port(port))
    if not any(port["port"] and (port["usb"] or port["virtual"]) for port in found):
        print_note(f"No board is attached: {next_step(found)}.")


def print_rows(found: list[dict], nothing: str) -> None:
    """Print records, a line each: their values in order, texts cut at 60 characters; where there is
    none, *nothing* on stderr.
    """
    from clawlite.core.base.printable import escape_line

    if not found:
        print_note(nothing)
    for row in found:
        values = [
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for value in row.values()
        ]
        shown = [
            escape_line(value, 60) if value else "-"
            for value in (" ".join(value.split()) for value in values)
        ]
        print_data("  ".join(shown))


def show_changes(changes, as_json: bool) -> int:
    """Print each change until Ctrl-C; return the exit code."""
    marks = {"added": "+", "removed": "-", "changed": "="}
    try:
        for what, port in changes:
            if as_json:
                print(_json({"event": what, **port}), flush=True)
            else:
                print_data(f"{marks[what]} {_describe_port(port)}")
    except KeyboardInterrupt:
        pass
    return 130


def _describe_port(port: dict) -> str:
    held = ", ".join(f"{holder['name']} (pid {holder['pid']})" for holder in port["holders"])
    state = f"{port['state']}: {held}" if port["state"] == "busy" and held else port["state"]
    return (
        f"{port['port'] or '-':16} {' or '.join(port['boards']) or '?':20} "
        f"{port['serial'] or '-':18} {state:14} {port['id']}"
    )


def note_compiling() -> None:
    """Show a person at a terminal what takes so long; elsewhere show nothing."""
    if sys.stderr.isatty():
        print_note("Compiling clawlite's own code for boards: some ten seconds, once.")


def show_flash_plan(found: dict) -> None:
    """Show on stderr what a flash will change, before it does; stdout has only what was done."""
    groups = {}
    for file in found["files"]:
        groups.setdefault((file["change"], file["path"].rpartition("/")[0]), []).append(file)
    for (change, folder), files in groups.items():
        if change == "same":
            continue
        if len(files) > _MANY_FILES:
            print_note(
                f"  {change:8} {folder + '/':24} {sum(file['bytes'] for file in files):7} bytes  "
                f"{len(files)} files"
            )
            continue
        for file in files:
            print_note(
                f"  {change:8} {file['path']:24} {file['bytes']:7} bytes  "
                f"{(file['sha256'] or '')[:12]}"
            )
    for path in found["damaged"]:
        print_note(f"{found['target']}: {path} there was damaged, and is written anew.")
    same = sum(file["change"] == "same" for file in found["files"])
    board = f" ({found['board']})" if found["board"] else ""
    print_note(
        f"{found['target']}{board}: slot {found['slot']}, {found['travels']} bytes to write, "
        f"{same} file{'s' if same != 1 else ''} the same"
    )


def show_flash(found: dict, tells_next: bool = True) -> None:
    if found["said"]:
        print_data(*found["said"].splitlines())
        if tells_next:
            print_note(f"Next: {found['next']}")
    elif found["written"]:
        print_note(f"Written; slot {found['slot']} boots next.")
    elif not found["dry_run"]:
        print_note("Nothing to write: the board has this already.")


def show_package(found: dict) -> None:
    folder = found["folder"]
    print_note(f"Made {folder} with {len(found['files'])} files.")
    print_note(
        f"Next: mpremote mip install --target / {folder}/mip/package.json, or include "
        f"{folder}/frozen/manifest.py in a MicroPython build"
    )


def show_provision(target: str, kind: str, name: str, verb: str, as_json: bool) -> None:
    if as_json:
        print_document({"target": target, kind: name, "verb": verb})
        return
    print_note(f"{target} {'has forgotten' if verb == 'remove' else 'keeps'} the {kind} {name}.")


def show_firmware_plan(found: dict) -> None:
    print_note(
        f"{found['file']}: MicroPython for {found['chip']}, {found['bytes']} bytes, "
        f"{found['sha256'][:12]}, to {found['target']}"
    )


def show_firmware(found: dict) -> None:
    if found["written"]:
        print_note("Written; the board restarts. Next: clawlite ports, then clawlite flash")


def agree(flag: str, yes: bool) -> None:
    """Ask a person whether to go on.  Raises ``ClawError`` after a no, and without a terminal
    unless *yes*.
    """
    if yes:
        return
    if not is_asking():
        raise ClawError(
            "this changes the board, and there is no terminal to ask on", f"confirm with {flag}"
        )
    sys.stderr.write("Write this? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was written")


class ByteProgress:
    """How much is written, with the time that is left: a line on a terminal that is overwritten;
    elsewhere a line every few seconds.
    """

    def __init__(self):
        self._done = 0
        self._began = self._due = time.monotonic()

    def __call__(self, total: int, more: int) -> None:
        self._done += more
        now = time.monotonic()
        is_terminal, is_end = sys.stderr.isatty(), self._done == total
        took = now - self._began
        if not more or not is_terminal and (is_end or now < self._due + _LINE_S):
            return
        self._due = now
        left = estimate_left(took, self._done, total)
        said = f"{self._done * 100 // total:3} % of {total} bytes"
        said += f", about {duration(left)} left" if took > 1 and not is_end else ""
        begin, end = ("\r", "\x1b[K") if is_terminal else ("", "\n")
        sys.stderr.write(begin + said + end + "\n" * (is_terminal and is_end))
        sys.stderr.flush()


class Elapsed:
    """While it is open, a line on a terminal shows each second how long *what* has taken, and the
    time that is left, once ``reach`` has told a share.  In the first second, and without a
    terminal, it shows nothing.  The line is removed at the end.
    """

    def __init__(self, what: str, now_s=time.monotonic):
        self._what, self._now_s = what, now_s
        self._begun = 0.0
        self._reached = 0.0, 0.0  # the share that is done, and when that was
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self):
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        if self._thread.ident:
            self._thread.join()

    def reach(self, share: float) -> None:
        """Say which share of the work is done by now; 0: the work that can be reckoned begins."""
        now = self._now_s()
        self._begun = self._begun if share else now
        self._reached = share, now

    def show(self, seconds: int) -> str:
        """Return the line after so many seconds."""
        share, at = self._reached
        left = estimate_left(at - self._begun, share, 1) - (self._now_s() - at) if share else 0
        said = f"{self._what}: {seconds} s"
        return said + (f", about {duration(left)} left" if left > 0.5 else "")

    def _tell(self) -> None:
        seconds = 0
        while not self._over.wait(1):
            seconds += 1
            sys.stderr.write(f"\r{self.show(seconds)}\x1b[K")
            sys.stderr.flush()
        if seconds:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _print_marked(error: ManifestErrors) -> None:
    """Print the problems, each with its line and its place marked under it."""
    from clawlite.host.builder import findings

    is_coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for line, problem in zip(error.lines, error.problems):
        print_note(line)
        for shown in findings.mark(problem, is_coloured):
            print(shown, file=sys.stderr)
    if error.lines[len(error.problems) :]:
        print_note(*error.lines[len(error.problems) :])


def show_sarif(problems, warnings) -> int:
    from clawlite import __version__
    from clawlite.host.builder import findings

    print_document(findings.make_sarif(problems, warnings, __version__))
    return 2 if problems else 0


def print_error(error: ClawError, as_json: bool) -> int:
    """Show an error; return the exit code."""
    if as_json:
        print_document({"error": error.to_json()})
    if isinstance(error, ManifestErrors):
        if sys.stderr.isatty():
            _print_marked(error)
        else:
            print_note(*error.lines)
        count = len(error.problems)
        print_note(f"{count} problem{'s' if count > 1 else ''}.")
    elif isinstance(error, LinesError):
        print_note("clawlite: " + error.lines[0], *error.lines[1:])
    else:
        print_note(f"clawlite: {error.message}{' - ' + error.hint if error.hint else ''}")
    return getattr(error, "exit_code", 2)
