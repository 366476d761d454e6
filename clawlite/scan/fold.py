"""Makes the plain form of a text that a reader sees, in pieces: it decodes escapes, entities and
base64, replaces letters that look like others, and drops invisible characters.

1. Pieces end at white space, and no escape contains any.  So the pieces can be handled one by one,
   in bounded memory, with the same result as for the whole text.
2. The functions work letter by letter, so that they give the same result on every runtime.
"""

from binascii import a2b_base64, unhexlify

# characters of a piece, if white space allows: on a roomy machine, and on a board
ROOMY_PIECE, PIECE = 16384, 512
_ENTITIES = (
    ("&nbsp;", " "),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&shy;", ""),
    ("&zwj;", ""),
    ("&zwnj;", ""),
    ("&ZeroWidthSpace;", ""),
    ("&amp;", "&"),
)
_HEX = "0123456789abcdefABCDEF"
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
# tags that do not separate words
_INLINE = " a b i u s em strong span font small big sub sup mark code wbr "
_LATIN = (
    "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYTsaaaaaaaceeeeiiiidnooooo/ouuuuytyAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLl"
    "NnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs"
)
_LOOKS = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u043d\u0432\u0433\u0438\u043f"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b2\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf"
    "\u03c1\u03c2\u03c3\u03c4\u03c5\u03c7\u03b3\u03c9"
    "\u1d00\u0299\u1d04\u1d05\u1d07\ua730\u0262\u029c\u026a\u1d0a\u1d0b\u029f\u1d0d\u0274\u1d0f\u1d18\u0280\ua731\u1d1b\u1d1c\u1d20\u1d21"
    "\u028f\u1d22\u0261\u0251\u0131\u212a"
    "\u1d43\u1d47\u1d9c\u1d48\u1d49\u1da0\u1d4d\u02b0\u2071\u02b2\u1d4f\u02e1\u1d50\u207f\u1d52\u1d56\u02b3\u02e2\u1d57\u1d58\u1d5b\u02b7"
    "\u02e3\u02b8\u1dbb\u2170\u2174\u2179\u217c\u217d\u217e\u217f\u0197\u0268"
)
_LIKE = (
    "aeopcyxijshdqwkmthbrnn"
    "ABEZHIKMNOPTYXabeniknopcstuxyw"
    "abcdefghijklmnoprstuvwyzgaik"
    "abcdefghijklmnoprstuvw"
    "xyzivxlcdmii"
)


def pieces(text: str, most: int):
    """Yield *text* in pieces of about *most* characters, with entities and escapes decoded."""
    pos, size = 0, len(text)
    while pos < size:
        end = size
        if size - pos > most:
            end = 1 + max(text.rfind(" ", pos, pos + most), text.rfind("\n", pos, pos + most))
            if end <= pos:  # one long word
                ends = [
                    at
                    for at in (text.find(" ", pos + most), text.find("\n", pos + most))
                    if at >= 0
                ]
                end = min(ends) + 1 if ends else size
        yield decode(text[pos:end])
        pos = end


def decode(text: str) -> str:
    """Return *text* with HTML's entities and the escapes of JSON and URLs decoded."""
    if "&" in text:
        for name, plain in _ENTITIES:
            text = text.replace(name, plain)
        text = _numbers(text, "&#", ";")
    if "\\" in text:
        text = _numbers(
            text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r"), "\\u", ""
        )
        text = _numbers(text, "\\x", "", 2)
    return _numbers(text, "%", "", 2) if "%" in text else text


def _numbers(text: str, mark: str, stop: str, width: int = 4) -> str:
    """Return *text* with numbers replaced by their characters.  A number follows *mark*, and either
    ends with *stop* or has *width* hexadecimal digits.
    """
    parts = text.split(mark)
    high = 0  # the first half of a surrogate pair, when the last part was one
    for at in range(1, len(parts)):
        part, first, high = parts[at], high, 0
        end = part.find(stop, 0, 9) if stop else width
        digits, base = (
            (part[1:end], 16)
            if stop and part[:1] in ("x", "X")
            else (part[:end], 10 if stop else 16)
        )
        try:
            if digits.strip(_HEX):
                raise ValueError
            code = int(digits, base)
            rest = part[end + len(stop) :]
            if first and 0xDC00 <= code < 0xE000:
                code += 0x10000 - 0xDC00 + (first - 0xD800 << 10)
            elif 0xD800 <= code < 0xDC00 and not rest:
                high = code
            # a half of a surrogate pair is no character by itself
            parts[at] = rest if 0xD800 <= code < 0xE000 else chr(code) + rest
        except (ValueError, OverflowError):
            parts[at] = mark + part
    return "".join(parts)


def strip_comments(parts):
    """Yield *parts*, pieces of a text, without HTML's comments and tags."""
    inside = False
    for text in parts:
        out = ""
        while text:
            mark = text.find("-->" if inside else "<!--")
            if not inside:
                out += text if mark < 0 else text[:mark]
            text = "" if mark < 0 else text[mark + (3 if inside else 4) :]
            inside = inside and mark < 0 or not inside and mark >= 0
        yield _strip_tags(out) if "<" in out else out


def _strip_tags(text: str) -> str:
    first, *parts = text.split("<")
    out = [first]
    for part in parts:
        end = part.find(">", 0, 256)
        if end < 0:
            out.append("<" + part)
        else:
            name = part[:end].strip("/").split(" ", 1)[0].lower()
            out.append(("" if " " + name + " " in _INLINE else " ") + part[end + 1 :])
    return "".join(out)


def fold(text: str) -> str:
    """Return *text* without accents and invisible characters, and with ASCII in place of letters
    that look like it.
    """
    if len(text.encode()) == len(text):
        return text
    return "".join([c if c < "\x80" else _fold_letter(c) for c in text])


def _fold_letter(c: str) -> str:
    code = ord(c)
    if 0xC0 <= code < 0xC0 + len(_LATIN):
        return _LATIN[code - 0xC0]
    if 0x400 <= code < 0x430:  # Cyrillic capitals
        code += 0x20 if code >= 0x410 else 0x50
        c = chr(code)
    if (
        0x131 <= code < 0x530
        or 0x1D00 <= code < 0x1DC0
        or code in (0x2071, 0x207F, 0x212A, 0xA730, 0xA731)
        or 0x2170 <= code < 0x2180
    ):
        at = _LOOKS.find(c)
        if at >= 0:
            return _LIKE[at]
    if (
        0x300 <= code < 0x370
        or 0x200B <= code < 0x2010
        or 0x202A <= code < 0x202F
        or 0x2060 <= code < 0x2070
        or 0xFE00 <= code < 0xFE10
        or code in (0xAD, 0x34F, 0x180E, 0xFEFF)
    ):
        return ""
    if 0xFF01 <= code < 0xFF5F:
        return chr(code - 0xFEE0)
    if 0xE0020 <= code < 0xE007F:  # tags: ASCII that nobody sees
        return chr(code - 0xE0000)
    if 0x1D400 <= code < 0x1D6A4:  # mathematical alphabets
        at = (code - 0x1D400) % 52
        return chr(65 + at if at < 26 else 71 + at)
    if 0x1D7CE <= code < 0x1D800:
        return chr(48 + (code - 0x1D7CE) % 10)
    if 0x24B6 <= code < 0x24EA:  # in circles, in squares
        return chr(97 + (code - 0x24B6) % 26)
    if 0x1F130 <= code < 0x1F18A:
        return chr(97 + (code - 0x1F130) % 32 % 26)
    if 0x1F1E6 <= code < 0x1F200:
        return chr(97 + code - 0x1F1E6)
    if (
        code in (0x85, 0xA0, 0x1680)
        or 0x2000 <= code < 0x2070
        and code != 0x2019
        or 0x3000 <= code < 0x3040
    ):
        return " "
    return c


def unwrap(text: str) -> str:
    """Return the texts that base64 and hexadecimal digits in *text* decode to, also base64 in
    several lines.
    """
    out, line = [], []
    for mark in "\"'`,;:()<>.":
        if mark in text:
            text = text.replace(mark, " ")
    for word in text.split():
        is_coded = not word.strip(_BASE64)
        if is_coded and (line or len(word) >= 16):
            line.append(word)  # the last one may be short
        if line and (not is_coded or len(word) < 16 or word[-1] == "="):
            _unwrap(line, out)
            line = []
    _unwrap(line, out)
    return " ".join(out)


def _unwrap(line: list, out: list):
    """Add the texts that the words of *line* decode to, each alone and all of them joined."""
    for word in line + ["".join(line)] if len(line) > 1 else line:
        if len(word) < 20:
            continue
        try:
            if not word.strip(_HEX) and len(word) & 1 == 0:
                data = unhexlify(word)
            else:
                word = word.rstrip("=").replace("-", "+").replace("_", "/")
                data = a2b_base64(word + "=" * (-len(word) % 4))
            if not data.strip(bytes(range(32, 127)) + b"\t\r\n"):
                out.append(str(data, "utf-8"))
        except ValueError:
            pass
