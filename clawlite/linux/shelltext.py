"""What a shell makes of a command's words while it runs, as far as reading tells: for ``shellrules`` (docs/adr/0021).

    uncommented   comments gone
    decoded       ``echo WORDS | base64 -d`` and its like (rev, tr, xxd -r, sed s/a/b/, a here-string) is the words that come out
    expanded      ${a:-x}, ${a:1:4}, ${a/x/y}, ${a,,}, ${a%x}
    defined       what aliases and functions of the command itself stand for

Each passes the text once.  What comes out is no longer than what went in, but for what the caller bounds.
"""
import re
from binascii import Error, a2b_base64, unhexlify
from fnmatch import fnmatchcase

MAX_BODY = 8                    # words of an alias or a function that stand for its name
MAX_PUT = 8                     # letters that ``sed`` puts for one
MAX_DECODED = 4                 # what decoders read and write may be so many times as long as the command,
_SHORT = 65536                  # and so many letters in any case: a pipe of thousands reads its words again and again
_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,31}"
# Quoted text is passed over: a "#" in it is none.
_COMMENT = re.compile(r"\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?:^|(?<=[\s;&|()]))#[^\n]*", re.S)
_PARTS = re.compile(r"(\|&?|[\n;&()`])")
_HERE = re.compile(r" ?<<< ?")
_DEFINED = re.compile(r"(?:alias (%s)=([^\s;&|]{1,64})|(%s) ?\( ?\) ?\{ ?([^{}\n]{1,64}))" % (_NAME, _NAME))
_SLICE = re.compile(r": ?(-?[0-9]{1,4})(?::([0-9]{1,4}))?\Z")
_SAID = ("echo", "printf")
_PRESENT = ("PATH", "HOME", "PWD", "USER", "LANG", "TMPDIR", "WORKSPACE")       # what a call's environment has
_PROGRAMS = ("bash", "sh", "dash", "zsh", "ksh", "rm", "chmod", "chown", "curl", "wget", "nc", "ncat", "dd", "sudo", "su", "python3", "python",
             "perl", "mkfs", "shutdown", "reboot", "kill", "mount", "ssh", "scp")


def uncommented(text: str) -> str:
    """Return the command *text* without comments."""
    return _COMMENT.sub(lambda match: "" if match[0][0] == "#" else match[0], text)


def decoded(text: str) -> str:
    """Return *text* (quotes gone) with ``echo`` of what its decoders give in their place."""
    parts = _PARTS.split(text)
    out, left = [], MAX_DECODED * len(text) + _SHORT
    for at, part in enumerate(parts):
        words = part.split()
        if at % 2 == 0 and words:
            here = _HERE.split(part, 1)
            if len(here) == 2:
                made = _made(here[0].split(), here[1].split())
            elif len(out) > 1 and out[-1][:1] == "|":
                left -= len(out[-2])
                said = out[-2].split() if left > 0 else ()
                made = _made(words, _words(said[1:], said[0] == "printf")) if said and said[0] in _SAID else None
            else:
                made = None
            left -= len(made or "")
            if made is not None and left >= 0:
                if len(here) == 1:
                    del out[-2:]
                part = "echo " + made
        out.append(part)
    return "".join(out)


def _words(words: list, formatted: bool) -> list:
    """Return what ``echo`` or ``printf`` writes of *words*."""
    if words and words[0].startswith("-") and not words[0].strip("-neE"):
        words = words[1:]
    return said(" ".join(words)).split() if formatted else words


def said(text: str) -> str:
    """Return what ``printf`` makes of *text*, its format and its words."""
    form, *words = text.split(" ")
    if "%" not in form:
        return text
    left = iter(words)
    return re.sub("%[sbc]", lambda _: next(left, ""), form)


def _made(decoder: list, words: list):
    """Return what the command *decoder* (its words) gives for *words*, or None when it is none."""
    if not decoder or not words:
        return None
    name, options, text = decoder[0].rpartition("/")[2], decoder[1:], " ".join(words)
    try:
        if name in ("base64", "openssl") and any(option[:2] in ("-d", "-D", "-i") or option[:3] == "--d" for option in options):
            return _text(a2b_base64("".join(words)))
        if name == "xxd" and any(option[:1] == "-" and "r" in option for option in options):
            return _text(unhexlify("".join(words)))
    except (Error, ValueError):
        return None
    if name == "rev":
        return text[::-1]
    if name == "tr" and len(options) == 2:
        return _replaced(text, options)
    if name == "sed" and options and len(options[-1]) > 3 and options[-1][0] == "s":
        _, old, new, *_ = options[-1].split(options[-1][1]) + ["", ""]
        return text.replace(old, new[:MAX_PUT]) if old else None
    return text if name == "cat" and not options else None


def _text(data: bytes):
    try:
        return " ".join(data.decode().split())
    except UnicodeDecodeError:
        return None


def _replaced(text: str, options: list) -> str:
    """Return *text* as ``tr`` makes it: with letters deleted, or with one set put for another."""
    if options[0] == "-d":
        return text.translate({ord(letter): None for letter in _letters(options[1])})
    old, new = _letters(options[0]), _letters(options[1])
    return text.translate({ord(letter): new[min(at, len(new) - 1)] for at, letter in reversed(list(enumerate(old)))} if new else {})


def _letters(text: str) -> str:
    """Return the letters of a set of ``tr``; ranges written out."""
    return re.sub(r"([!-~])-([!-~])", lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))), text[:256])


def expanded(name: str, value, rest: str) -> str:
    """Return what ``${name...}`` is, of a variable that has *value* (None: nobody knows) and whose braces have *rest* behind its name."""
    known, mark = value or "", rest.lstrip(":")[:1]
    if mark in ("-", "="):
        return known or rest.lstrip(":")[1:]
    if mark == "+":
        return rest.lstrip(":")[1:] if value is not None or name in _PRESENT else ""
    if rest[:1] == ":":
        match = _SLICE.match(rest)
        start = int(match[1]) if match else 0
        part = known[start:]
        return part[:int(match[2])] if match and match[2] else part
    if rest[:1] == ",":
        return known.lower()
    if rest[:1] == "^":
        return known.upper()
    if rest[:1] == "/":
        old, _, new = rest.strip("/").partition("/")
        return known.replace(old, new) if old else known
    return _trimmed(known, rest)


def _trimmed(known: str, rest: str) -> str:
    """Return *known* without the end that ``#pattern`` or ``%pattern`` names; of patterns a star at an end is understood."""
    pattern = rest.lstrip("#%")
    text = pattern.strip("*")
    if rest[:1] == "#":
        at = known.rfind(text) if rest[:2] == "##" else known.find(text)
        return known[at + len(text):] if text and (at == 0 or at > 0 and pattern[:1] == "*") else known
    if rest[:1] == "%":
        at = known.find(text) if rest[:2] == "%%" else known.rfind(text)
        return known[:at] if text and at >= 0 and (pattern[-1:] == "*" or known.endswith(text)) else known
    return known


def defined(text: str) -> dict:
    """Return {name: body} of the aliases and functions that *text* defines."""
    if "alias " not in text and "(" not in text:
        return {}
    return {match[1] or match[3]: match[2] or match[4] for match in _DEFINED.finditer(text)}


def program(path: str) -> str:
    """Return the name of the program that *path* leads to; of a pattern of file names, one of the well-known programs that it matches."""
    name = path.rpartition("/")[2] or path
    if "/" in path and len(name) <= 64 and any(mark in name for mark in "?*[") and any(letter.isalpha() for letter in name):
        return next((known for known in _PROGRAMS if fnmatchcase(known, name)), name)
    return name
