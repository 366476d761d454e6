"""The vocabulary of JSON Schema 2020-12: which keywords are compiled, which say nothing, which
are refused and why.
"""

DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
)

KINDS = {
    "string": 1,
    "boolean": 2,
    "integer": 4,
    "number": 12,
    "object": 16,
    "array": 32,
    "null": 64,
}

CHECKS = (
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "minProperties",
    "maxProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
)

ANNOTATIONS = (
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "contentSchema",
    "$defs",
    "definitions",
    "$schema",
    "$id",
)

_DYNAMIC = 'dynamic scopes are not supported; name the schema in "$defs" and use "$ref"'
_UNEVALUATED = 'not supported; list the members in one schema and use "%s"'
# keywords of 2020-12 that are not supported, and those of other drafts and of OpenAPI
REFUSED = {
    "$dynamicRef": _DYNAMIC,
    "$dynamicAnchor": _DYNAMIC,
    "$recursiveRef": _DYNAMIC,
    "$recursiveAnchor": _DYNAMIC,
    "$anchor": 'not supported; a $ref here is a pointer: "#/$defs/NAME"',
    "$vocabulary": "meta-schemas are not supported",
    "unevaluatedProperties": _UNEVALUATED % "additionalProperties",
    "unevaluatedItems": _UNEVALUATED % "items",
    "additionalItems": 'of an earlier draft; in 2020-12 it is "items", beside "prefixItems"',
    "dependencies": 'of an earlier draft; in 2020-12 it is "dependentRequired" or '
    '"dependentSchemas"',
    "id": 'of an earlier draft; in 2020-12 it is "$id"',
    "nullable": 'of OpenAPI 3.0; in JSON Schema it is "type": [..., "null"]',
}

# those of 2020-12: no schema that has them is held as it is meant
REFUSED_EVER = [word for word in REFUSED if word.startswith(("$", "unevaluated"))]

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = _LABEL + r"(\." + _LABEL + ")*"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = _BYTE + r"(\." + _BYTE + "){3}"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DATE = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))|" + _LEAP + "-02-29)"
)
_HOUR = "([01][0-9]|2[0-3])"
_TIME = (
    "(" + _HOUR + r":[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]" + _HOUR + ":[0-5][0-9])"
    r"|23:59:60(\.[0-9]+)?([Zz]|[+-]00:00))"
)
_GROUP = "[0-9A-Fa-f]{1,4}"


def _ipv6():
    """RFC 4291, 2.2: eight groups, the last two perhaps as IPv4, one run of them perhaps as
    ``::``.
    """
    forms = ["(%s:){7}%s" % (_GROUP, _GROUP), "(%s:){6}%s" % (_GROUP, _IPV4), "::"]
    for left in range(8):  # groups before the "::"
        before = "" if left == 0 else _GROUP + "(:%s){%d}" % (_GROUP, left - 1)
        right = 7 - left  # at most so many after it
        after = "" if right == 0 else "(%s(:%s){0,%d})?" % (_GROUP, _GROUP, right - 1)
        forms.append(before + "::" + after)
        if right >= 2:
            forms.append(before + "::(%s:){0,%d}%s" % (_GROUP, right - 2, _IPV4))
    return "(" + "|".join(forms) + ")"


_UNIT = r"A-Za-z0-9._~!$&'()*+,;=\-"  # RFC 3986: unreserved and sub-delims
_PERCENT = "%[0-9A-Fa-f]{2}"
_PCHAR = "([" + _UNIT + ":@]|" + _PERCENT + ")"
# An address in brackets is only checked for its characters: the grammar of IPv6 takes the table
# from 760 to 4,044 bytes.
_AUTHORITY = (
    "((["
    + _UNIT
    + ":]|"
    + _PERCENT
    + r")*@)?(\[([0-9A-Fa-f:.]+|[Vv][0-9A-Fa-f]+\.["
    + _UNIT
    + r":]+)\]|(["
    + _UNIT
    + "]|"
    + _PERCENT
    + ")*)(:[0-9]*)?"
)
_URI = (
    "[A-Za-z][A-Za-z0-9+.-]*:(//"
    + _AUTHORITY
    + "(/"
    + _PCHAR
    + "*)*|/("
    + _PCHAR
    + "+(/"
    + _PCHAR
    + "*)*)?|"
    + _PCHAR
    + "+(/"
    + _PCHAR
    + r"*)*|)(\?("
    + _PCHAR
    + "|[/?])*)?(#("
    + _PCHAR
    + "|[/?])*)?"
)
# label of an e-mail domain, not counted: 2,420 bytes otherwise
_DOMAIN = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN += r"(\." + _DOMAIN + ")*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"

# name -> (regular expression of the whole text, what a message calls it, longest text or None).
# Regular languages, so that a device needs no code for them.  A leap second is 23:59:60 in UTC;
# other offsets would need 1,440 states more.
FORMATS = {
    "date-time": (_DATE + "[Tt]" + _TIME, "a date-time like 2025-01-31T12:00:00Z", None),
    "date": (_DATE, "a date like 2025-01-31", None),
    "time": (_TIME, "a time like 12:00:00Z", None),
    "uri": (_URI, "an absolute URI", None),
    "email": (
        _ATOM + r"(\." + _ATOM + ")*@(" + _DOMAIN + r"|\[" + _IPV4 + r"\])",
        "an e-mail address",
        254,
    ),
    "hostname": (_HOST, "a host name", 253),
    "ipv4": (_IPV4, "an IPv4 address", None),
    "ipv6": (_ipv6(), "an IPv6 address", None),
    "uuid": ("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", "a UUID", None),
}
