"""What ``shell.blocked_commands`` and ``shell.blocked_patterns`` say of a command (CKP 0.3.0, Sandbox; docs/adr/0021).

A speed bump, not a wall: a shell has more ways to write a word than any text filter knows, and what contains a command is the
kernel.  The rules look at the command as it was written and at what a shell makes of it, as far as reading alone can tell:

    plain     quotes, escapes, line continuations, $IFS gone; full-width letters plain, invisible characters gone; blanks are one
    filled    variables that the command itself sets put in, others (empty, most likely) gone, $(echo words), {a,b} and [x] replaced
              by the words that they are
    commands  of each command the way to it (/bin/, env, exec, sudo, A=b, 2>file) taken away, its aliases and functions put in
    and all of it again without comments, and with what decoders (base64 -d, rev, tr) would give put in (shelltext.py)

Every step passes the text once, and grows it by a constant at most: time is linear in the command, for every command.
"""
import re

from clawlite.core.automaton import search
from clawlite.core.errors import SandboxDenied
from clawlite.linux.shelltext import MAX_BODY, decoded, defined, expanded, program, said, uncommented

_MAX_FILLED = 4                 # what variables put in may make the text so many times as long
_WORD = r"[^\s;&|(){}`<>]"
_CONTINUED = re.compile(r"\\\n")
_ANSI_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.S)
_ANSI_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.S)
_ANSI_LETTER = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"\\(.)", re.S)
# echo and printf undo escapes that a shell leaves alone.
_SAID = re.compile(r"\b(?:printf|echo)\b[^;&|)`\n]*")
_NUMBERED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{2,4}))()")
_IFS = re.compile(r"\$\{IFS[^{}\n]{0,32}\}|\$IFS(?![A-Za-z0-9_])(?:\$9)?")
_BLANKS = re.compile(r"[^\S\n]+")
_SET = re.compile(r"(?:^|[\s;&|(`])([A-Za-z_][A-Za-z0-9_]{0,31})=(%s{0,64})" % _WORD)
_USED = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)([^{}\n]{0,32})\}|\{?[@*#?!0-9-]\}?)")
_ECHOED = re.compile(r"(?:\$\(|`) ?(?:echo|printf|which|command|type) ((?:-[neEvVpP]+ )?%s+(?: %s+)*) ?[)`]" % (_WORD, _WORD))
_EMPTY = re.compile(r"\$\( ?\)|` ?`")
_ONE_OF = re.compile(r"\[([A-Za-z0-9])\]")        # a pattern of file names that has one meaning
_BRACES = re.compile(r"\{([^{}\s,]+(?:,[^{}\s,]+)+)\}")
_TOKEN = re.compile(r"\n|;;?|\|\||\|&?|&&?|[(){}`]|\$\(|[<>]+&?|%s+" % _WORD)
_REDIRECTED = re.compile(r"(?<![^\s;&|(){}`<>])[0-9]{0,4}(?:&>>?|[<>]{1,3}[&|]?) ?%s+" % _WORD)
_OPERATORS = frozenset(("\n", ";", ";;", "|", "|&", "||", "&", "&&", "(", ")", "{", "}", "`", "$("))
# Words in front of a command that run it; options of theirs are skipped too.
_LAUNCHERS = frozenset(("env", "command", "exec", "builtin", "nohup", "nice", "ionice", "time", "sudo", "doas", "setsid", "stdbuf",
                        "timeout", "busybox", "toybox", "xargs", "then", "do", "else", "if", "while", "until", "!", "coproc", "sh", "dash", "ash", "ksh", "zsh",
                        "su", "runuser", "script", "flock", "chroot", "unshare", "nsenter", "setpriv", "setarch", "taskset", "chrt", "prlimit", "choom", "strace", "ltrace",
                        "watch", "parallel", "systemd-run", "fakeroot", "unbuffer"))
_PLACED = frozenset(("flock", "chroot"))        # a file or a folder comes before the command
# Their options with an argument of its own: sudo -u root, timeout -k 1.
_WITH_ARGUMENT = {"sudo": "ughpCDRTrt", "doas": "uC", "env": "uC", "exec": "a", "nice": "n", "ionice": "cnpPu", "timeout": "ks", "stdbuf": "ioe",
                  "time": "fo", "xargs": "adEeIiLlnPs", "su": "sg", "runuser": "usg", "flock": "wE", "unshare": "SGRw", "strace": "eopsuaEbIOPSX", "watch": "n",
                  "ltrace": "eolnsuaA", "parallel": "jaIEL", "systemd-run": "pEMHut", "choom": "n", "nsenter": "tSG"}
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NUMBER = re.compile(r"[0-9.]+[smhd]?\Z")       # the argument of timeout and nice


def check(tool: str, command: str, commands: list, tables: list) -> None:
    """Raise ``SandboxDenied`` when a rule blocks *command*.

    commands  list of str, ``blocked_commands``: words, "*" stands for any words
    tables    automata of ``blocked_patterns``
    Cost      linear in the command's length
    """
    texts = forms(command)
    for number, table in enumerate(tables):
        for text in texts:
            if search(table, text.encode("utf-8", "replace")):
                raise _blocked(tool, "blocked_patterns[%d]" % number)
    tokens = [_tokens(text) for text in texts]
    for number, blocked in enumerate(commands):
        wanted = _segments(blocked)
        for found in tokens:
            if _holds(found, wanted):
                raise _blocked(tool, "blocked_commands[%d], %s" % (number, blocked[:60]))


def _blocked(tool: str, rule: str) -> SandboxDenied:
    return SandboxDenied("%s: the sandbox blocks this command (shell.%s)" % (tool, rule), "do it another way, or ask the person who runs this agent",
                         {"tool": tool, "reason": "blocked command", "rule": rule.partition(",")[0]})


def forms(command: str) -> list:
    """Return the forms of *command* that rules look at, without repeats: as written, plain, filled, commands (see above)."""
    found = _forms(command)
    if "#" in command:
        found += _forms(uncommented(command))
    if "|" in command or "<<<" in command:
        found += _forms(decoded(_plain(command)))
    return list(dict.fromkeys(found))


def _forms(command: str) -> list:
    plain = _plain(command)
    filled = _filled(plain)
    bodies = {name: _stripped(_tokens(body), {})[:MAX_BODY] for name, body in defined(filled).items()}
    return [command, plain, filled, " ".join(_stripped(_tokens(_REDIRECTED.sub("", filled)), bodies))]


def _plain(text: str) -> str:
    if not text.isascii():
        text = _ascii(text)
    text = _CONTINUED.sub("", text.replace("\r", ""))
    if "\\" in text:
        text = _SAID.sub(lambda match: _NUMBERED.sub(_ansi, match[0]), text)
    text = _ANSI_QUOTED.sub(lambda match: _ANSI_ESCAPE.sub(_ansi, match[1]), text.replace('$"', '"'))
    text = _ESCAPED.sub(r"\1", text.replace("'", "").replace('"', ""))
    return _BLANKS.sub(" ", _IFS.sub(" ", text)).strip(" ")


def _ascii(text: str) -> str:
    """Return *text* with compatibility forms replaced and invisible characters gone, character by character: that stays linear."""
    from unicodedata import category, normalize
    known = {}
    for character in set(text):
        if ord(character) > 127:
            known[ord(character)] = "" if category(character) == "Cf" else normalize("NFKC", character)[:4]
    return text.translate(known)


def _ansi(match) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        code = int(digits, 16)
    elif match[4]:
        code = int(match[4], 8) & 0xff
    else:
        return _ANSI_LETTER.get(match[5], match[5])
    return chr(code) if code < 0x110000 and not 0xd800 <= code < 0xe000 else ""


def _filled(text: str) -> str:
    """Return *text* with the variables that it sets put in, and without the others; $(echo words) is the words."""
    text = _BRACES.sub(lambda match: match[1].replace(",", " "), _ONE_OF.sub(r"\1", _EMPTY.sub("", text)))
    if "$" not in text and "`" not in text:
        return text
    values = {"BASH": "bash", "SHELL": "bash"}
    values.update((name, "" if "$" in value else value) for name, value in _SET.findall(text))
    room = [len(text) * (_MAX_FILLED - 1) + 1000]

    def value(match) -> str:
        name = match[1] or match[2] or ""
        put = expanded(name, values.get(name), match[3]) if match[3] else values.get(name, "")
        room[0] -= len(put)
        return put if room[0] >= 0 else ""
    return _BLANKS.sub(" ", _ECHOED.sub(_words, _USED.sub(value, text))).strip(" ")


def _words(match) -> str:
    words = match[1]
    return words.partition(" ")[2] if words.startswith("-") else said(words) if "printf" in match[0] else words


def _tokens(text: str) -> list:
    """Return the words and operators of *text*; what is neither is not there."""
    return _TOKEN.findall(text)


def _stripped(tokens: list, bodies: dict) -> list:
    """Return *tokens* with the commands alone: no assignments, launchers, folders or opening brackets in front of them; "|&" is a "|".

    bodies  {name: tokens that stand for it}
    """
    found = []
    first = launched = True
    skips = ""                          # letters of options whose next word is theirs
    is_theirs = False
    split = ()                          # options of env that have a command in them
    for token in tokens:
        if token in _OPERATORS:
            if token != "(" and token != "{":
                found.append("|" if token == "|&" else token)
            first, launched, is_theirs = True, False, False
        elif not first:
            found.append(token)
        elif is_theirs:
            is_theirs = False
        elif launched and split and token.startswith(split) and token != "-S":
            first, launched = False, False
            found.append(program(token[token.find("=") + 1 if "=" in token else 2:]))
        elif launched and token.startswith("-"):
            is_theirs = len(token) == 2 and token[1] in skips
        elif not (_ASSIGNED.match(token) or launched and _NUMBER.match(token)):
            name = program(token)
            launched = first = name in _LAUNCHERS
            is_theirs = name in _PLACED
            skips = _WITH_ARGUMENT.get(name, "")
            split = ("-S", "--split-string=") if name == "env" else ()
            if not launched:
                found += bodies.get(name) or [name]
    return found


# -- blocked_commands

def _segments(blocked: str) -> list:
    """Return the runs of tokens between the "*" of a blocked command."""
    runs = [[]]
    for token in _tokens(_plain(blocked)):
        if token == "*":
            runs.append([])
        else:
            runs[-1].append(token)
    return [run for run in runs if run]


def _holds(tokens: list, segments: list) -> bool:
    """Return whether the segments stand in *tokens* one after the other; the leftmost place of each is as good as any."""
    at = 0
    for segment in segments:
        at = _place(tokens, segment, at)
        if at < 0:
            return False
    return bool(segments)


def _place(tokens: list, segment: list, start: int) -> int:
    """Return where *segment* ends in *tokens*, from *start* on, or -1."""
    simple = len(segment) > 1 and not any(token in _OPERATORS for token in segment)
    looked_to = start                   # the commands before it were looked at as commands
    for at in range(start, len(tokens)):
        if not _is_program(tokens[at], segment[0]):
            continue
        if _is_run(tokens, segment, at):
            return at + len(segment)
        if simple and at >= looked_to:
            looked_to = _end(tokens, at)
            if _has_parts(tokens[at + 1:looked_to], segment):
                return looked_to
    return -1


def _is_program(token: str, wanted: str) -> bool:
    """Return whether *token* is *wanted*: a program may be named with its folder, "|&" is a "|"."""
    return token == wanted or token == "|&" and wanted == "|" or token.endswith(wanted) and token[-len(wanted) - 1] == "/" and wanted[0] != "/"


def _is_run(tokens: list, segment: list, at: int) -> bool:
    """Return whether *segment* stands at *at*, token by token."""
    if at + len(segment) > len(tokens):
        return False
    for offset in range(1, len(segment)):
        token, wanted = tokens[at + offset], segment[offset]
        if token != wanted and not (segment[offset - 1] in _OPERATORS and _is_program(token, wanted)):
            return False
    return True


def _end(tokens: list, at: int) -> int:
    """Return where the command that *at* is in ends."""
    while at < len(tokens) and tokens[at] not in _OPERATORS:
        at += 1
    return at


def _has_parts(words: list, segment: list) -> bool:
    """Return whether *words*, what follows a program, have all options of *segment*, in any order, and its arguments in a row."""
    options = set()
    arguments = []
    for word in words:
        if word.startswith("-"):
            options.update(_options(word))
            if "R" in options:
                options.add("r")        # rm, cp: both say "with all that is below"
        else:
            arguments.append(_path(word))
    wanted = [_path(token) for token in segment[1:] if not token.startswith("-")]
    if not all(letter in options for token in segment[1:] if token.startswith("-") for letter in _options(token)[:1 if token[1:2] == "-" else None]):
        return False
    return any(arguments[place:place + len(wanted)] == wanted for place in range(len(arguments) - len(wanted) + 1))


def _options(word: str) -> str:
    """Return the letters of short options; a long one counts as its first letter, small and capital."""
    return word[2:3].lower() + word[2:3].upper() if word.startswith("--") else word[1:]


def _path(token: str) -> str:
    """Return *token* with "//", "/.", "/x/.." and a last "/" taken out of a path, "/*" as the folder that it is all of, and 0777 as 777."""
    if "/" not in token:
        return token.lstrip("0") or "0" if token.isdigit() else token
    parts = []
    for part in token.split("/"):
        if part == ".." and token[0] == "/":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    if parts and parts[-1] == "*":
        parts.pop()
    return ("/" if token[0] == "/" else "") + "/".join(parts)
