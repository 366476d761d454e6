"""What ``shell.blocked_commands`` and ``shell.blocked_patterns`` find in a command (docs/adr/0025).

These are hints that stop accidents.  They contain nothing: a shell has more ways to write a word
than a filter of text knows, and what contains a command is the kernel.  A command is read in three
ways, and one match is enough:

    as written   for patterns alone
    as read      without quotes, escapes and comments; variables that the command sets are put in,
                 others are gone; $(echo words), ${x:-word}, {a,b} and [x] are their words
    bare         as read, without env, sudo -u root, sh -c, A=b and 2>file in front of commands

Quoted text and here-documents are data: ``git commit -m "no rm -rf /"`` passes.  Where a command
names a shell (or eval, trap, xargs...) they are read as commands too, ``_MAX_DEPTH`` deep.
Each step passes the text once and grows it by a constant at most: the time is linear.
"""

import re
from posixpath import normpath

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.formats.automaton import search

_MAX_DEPTH = 3  # texts for a shell in texts for a shell
# In words, characters that are data are others, of private use, until a shell gets the word.
_AS_DATA = {ord(letter): 0xE000 + ord(letter) for letter in " \t\n;&|(){}`<>$#'\"\\"}
_AS_TEXT = {data: letter for letter, data in _AS_DATA.items()}
_WORD = r"[^\s;&|(){}`<>]"
_QUOTED = re.compile(
    r"\\\n|\\(.)|\$?'([^']*)'?|\$?\"((?:[^\"\\]|\\.)*)\"?|"
    r"(?<![^\s;&|()])#[^\n]*",
    re.S,
)
_IN_DOUBLE = re.compile(r"\\([\\$`\"\n])")
_HERE = re.compile(r"<<-? ?['\"\\]?([A-Za-z_][A-Za-z0-9_]{0,31})")
_BLANKS = re.compile(r"[^\S\n]+|\$\{IFS[^{}\n]{0,32}\}|\$IFS(?![A-Za-z0-9_])(?:\$9)?")
_ONE_OF = re.compile(r"\[([A-Za-z0-9])\]")  # a pattern of file names that has one meaning
_BRACES = re.compile(r"\{([^{}\s,]+(?:,[^{}\s,]+)+)\}")
_SET = re.compile(r"(?:^|[\s;&|(`])([A-Za-z_][A-Za-z0-9_]{0,31})=(%s{0,32})" % _WORD)
_USED = re.compile(
    r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-=]([^{}\n]{0,32}))?[^{}\n]{0,32}\}|"
    r"\{?[@*#?!0-9-]\}?)",
    re.A,
)
_FIXED = re.compile(r"(?:\$\(|`) ?(?:(?:echo|printf|which|command -v)((?: %s+)+) ?)?[)`]" % _WORD)
_TOKEN = re.compile(r"\n|;;?|\|\||\|&?|&&?|[(){}`]|\$\(|[<>]+&?|%s+" % _WORD)
_REDIRECTED = re.compile(r"(?<![^\s;&|(){}`<>])[0-9]{0,4}(?:&>>?|[<>]{1,3}[&|]?) ?%s+" % _WORD)
_OPERATORS = frozenset(("\n", ";", ";;", "|", "||", "&", "&&", "(", ")", "{", "}", "`", "$("))
_SHELLS = frozenset("sh bash dash ash ksh zsh eval su trap xargs env watch parallel script".split())
# Words in front of a command that start it; their options are skipped too.
_LAUNCHERS = frozenset(
    "env command exec builtin nohup nice ionice time sudo doas setsid stdbuf timeout busybox xargs "
    "then do else if while until ! coproc sh dash ash ksh zsh eval su flock chroot unshare taskset".split()  # noqa: E501
)
# Options with an argument of their own: sudo -u root, timeout -k 1.
_WITH_ARGUMENT = {
    "sudo": "ughpCDRTrt",
    "doas": "uC",
    "env": "uC",
    "exec": "a",
    "nice": "n",
    "timeout": "ks",
    "xargs": "adEeIiLlnPs",
    "su": "sg",
    "flock": "wE",
}
_SKIPPED = re.compile(r"[A-Za-z_]\w*\+?=|[0-9.]+[smhd]?\Z")  # A=b, timeout 5s


def check(tool: str, command: str, commands: list, tables: list) -> None:
    """Raise ``SandboxDenied`` when a rule blocks *command*.

    commands  list of str, ``blocked_commands``: words, "*" stands for any words
    tables    automata of ``blocked_patterns``
    Cost      linear in the command's length
    """
    texts = readings(command)
    for number, table in enumerate(tables):
        for text in texts:
            if search(table, text.encode("utf-8", "replace")):
                raise _make_refusal(tool, "blocked_patterns[%d]" % number)
    tokens = [_TOKEN.findall(text) for text in texts[1:]]
    for number, blocked in enumerate(commands):
        wanted = _segments(blocked)
        if any(_holds(found, wanted) for found in tokens):
            raise _make_refusal(tool, "blocked_commands[%d], %s" % (number, blocked[:60]))


def _make_refusal(tool: str, rule: str) -> SandboxDenied:
    data = {"tool": tool, "reason": "blocked command", "rule": rule.partition(",")[0]}
    return SandboxDenied(
        "%s: the sandbox blocks this command (shell.%s)" % (tool, rule),
        "do it another way, or ask the person who runs this agent",
        data,
    )


# -- reading


def readings(command: str) -> list:
    """Return *command* as written, as read and bare, then what its shells get, as read and bare."""
    found, texts = [command], [command.replace("\r", "")]
    for _ in range(_MAX_DEPTH):
        inner = []
        for text in texts:
            read = _expand(_unquote(_join_here_documents(text)))
            tokens = _TOKEN.findall(read)
            found += [read, " ".join(_strip_prefixes(_TOKEN.findall(_REDIRECTED.sub("", read))))]
            if any(token.rpartition("/")[2] in _SHELLS for token in tokens):
                inner += [token.translate(_AS_TEXT) for token in tokens if not token.isascii()]
        texts = inner
    return found[:1] + list(dict.fromkeys(found[1:]))


def _join_here_documents(text: str) -> str:
    """Return *text* with each here-document as one word behind the line that it belongs to."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    known, ends, joined = {line.strip() for line in lines}, [], []
    for line in lines:
        if not ends:
            joined.append("\n" + line)
            ends = [match[1] for match in _HERE.finditer(line) if match[1] in known]
            joined += [" "] if ends else []
        elif line.strip() == ends[0]:
            del ends[0]
        else:
            joined.append(("\n" + line).translate(_AS_DATA))
    return "".join(joined)[1:]


def _unquote(text: str) -> str:
    """Return *text* with quotes, escapes and comments gone; what they kept together is one word."""

    def plain(match) -> str:
        escaped, single, double = match.groups()
        if double is not None:
            live = "$" in double or "`" in double  # "$a" and "$(command)"
            double = _IN_DOUBLE.sub(r"\1", double)
            return double if live else double.translate(_AS_DATA)
        return (escaped or single or "").translate(_AS_DATA)

    return _BLANKS.sub(" ", _QUOTED.sub(plain, text.replace("|&", "|"))).strip(" ")


def _expand(text: str) -> str:
    """Return *text* with variables that it sets put in, others gone, and fixed texts as words."""
    text = _BRACES.sub(lambda match: match[1].replace(",", " "), _ONE_OF.sub(r"\1", text))
    if "$" not in text and "`" not in text:
        return text
    values = {name: "" if "$" in value else value for name, value in _SET.findall(text)}
    text = _USED.sub(lambda match: values.get(match[1] or match[2]) or match[3] or "", text)
    return _BLANKS.sub(" ", _FIXED.sub(r"\1", text)).strip(" ")


def _strip_prefixes(tokens: list) -> list:
    """Return *tokens* without assignments, launchers, folders and brackets before commands."""
    found = []
    first = launched = True
    skips = ""  # letters of options whose next word is theirs
    is_theirs = False
    for token in tokens:
        if token in _OPERATORS:
            if token not in "({":
                found.append(token)
            first, launched, is_theirs = True, False, False
        elif not first:
            found.append(token)
        elif is_theirs:
            is_theirs = False
        elif launched and token.startswith("-"):
            is_theirs = len(token) == 2 and token[1] in skips
        elif not _SKIPPED.match(token):
            name = token.rpartition("/")[2] or token
            launched = first = name in _LAUNCHERS
            is_theirs = name in ("flock", "chroot")  # a file or a folder comes first
            skips = _WITH_ARGUMENT.get(name, "")
            if not launched:
                found.append(name)
    return found


# -- blocked_commands


def _segments(blocked: str) -> list:
    """Return the runs of tokens between the "*" of a blocked command."""
    words = " ".join(_TOKEN.findall(_unquote(blocked)))
    runs = [run.split() for run in re.split(r"(?:^| )\*(?= |$)", words)]
    return [run for run in runs if run]


def _holds(tokens: list, segments: list) -> bool:
    """Return whether the segments follow each other in *tokens*, each at its leftmost place."""
    at = 0
    for segment in segments:
        at = _segment_end(tokens, segment, at) if at >= 0 else at
    return bool(segments) and at >= 0


def _segment_end(tokens: list, segment: list, start: int) -> int:
    """Return where *segment* ends in *tokens*, from *start* on, or -1."""
    simple = len(segment) > 1 and not any(token in _OPERATORS for token in segment)
    looked_to = start  # the commands before it were looked at as commands
    for at in range(start, len(tokens)):
        if not _is_program(tokens[at], segment[0]):
            continue
        if _is_run(tokens[at : at + len(segment)], segment):
            return at + len(segment)
        if simple and at >= looked_to:
            looked_to = at + 1
            while looked_to < len(tokens) and tokens[looked_to] not in _OPERATORS:
                looked_to += 1
            if _has_parts(tokens[at + 1 : looked_to], segment):
                return looked_to
    return -1


def _is_run(tokens: list, segment: list) -> bool:
    """Return whether *tokens* are *segment*; a program may be named with its folder."""
    return len(tokens) == len(segment) and all(
        token == wanted or (not at or segment[at - 1] in _OPERATORS) and _is_program(token, wanted)
        for at, (token, wanted) in enumerate(zip(tokens, segment))
    )


def _is_program(token: str, wanted: str) -> bool:
    return token == wanted or wanted[0] != "/" and token.endswith("/" + wanted)


def _has_parts(words: list, segment: list) -> bool:
    """Return whether *words* have all options of *segment*, and its arguments in a row."""
    options = {
        letter
        for word in words
        if word[0] == "-"
        for letter in (word[2:3].lower() + word[2:3].upper() if word[:2] == "--" else word[1:])
    }
    needed = {
        letter
        for word in segment[1:]
        if word[0] == "-"
        for letter in (word[2:3].lower() if word[:2] == "--" else word[1:])
    }
    if not needed <= options | ({"r"} if "R" in options else set()):  # rm and cp: the same
        return False
    arguments = [_path(word) for word in words if word[0] != "-"]
    wanted = [_path(word) for word in segment[1:] if word[0] != "-"]
    count = len(wanted)
    return any(arguments[at : at + count] == wanted for at in range(len(arguments) - count + 1))


def _path(token: str) -> str:
    """Return a path without "//", "/.", "/x/.." and stars at its end; 0777 is 777."""
    if "/" not in token:
        return token.lstrip("0") or "0" if token.isdigit() else token
    path = normpath(token.rstrip("*")).lstrip("/")
    return "/" + path if token[0] == "/" else path
