"""What the policies and the sandbox require to be scanned, as the image has it (CKP 0.2.0, 5.7 and
5.8).  clawlite/scan/guard.py does the scanning.
"""

INPUT, OUTPUT = 1, 2  # where secrets are looked for, or'ed
BLOCK, REDACT, WARN = 0, 1, 2  # what happens to a secret that is found
# how injections are looked for, or'ed: by patterns; by a model, for texts that the patterns find
# doubtful; by a model, for all texts
PATTERN, DOUBTFUL, ALL = 1, 2, 4
STOP, MARK, NOTE = 0, 1, 2  # what happens to an injection: block-and-log, warn, log-only
ORDERS, DATA, UNCLEAR = 0, 1, 2  # how a model classifies a text
# positions in the section GUARD, whose fields ``ScanConfig`` describes
INJECTION, LEAKS, CHECKS, AUDIT, REFERENCES, ENCRYPTED = range(6)
# positions in ``ScanConfig.audit``
AUDIT_INPUTS, AUDIT_OUTPUTS, AUDIT_APPROVALS, AUDIT_KEPT_S, AUDIT_DESTINATION = range(5)
_MANY = 1 << 32


class ScanConfig:
    """The section GUARD.

    injection   [STOP | MARK | NOTE, number of an automaton, [[letter, words], ...], literals,
                PATTERN | DOUBTFUL | ALL], or None
    leaks       [INPUT | OUTPUT, BLOCK | REDACT | WARN], or None
    checks      [most bytes or None, NUL: bool, white space: bool, "utf-8" | "ascii"], or None
    audit       [inputs: bool, outputs: bool, approvals: bool, seconds that records are kept or
                None, "file" | "sqlite" | "webhook" | "syslog", [address, secret or ""] or None], or
                None; a further item, when the manifest sets it, is the MiB that the audit may use
                on Linux, 0: no bound
    references  names of secrets that the manifest refers to
    encrypted   bool, the store of secrets must be (aes-256-gcm)
    Raises ``ImageError`` for a section of another shape.
    """

    def __init__(self, record: list):
        audit = (bool, bool, bool, [None, _MANY], str, [None, (str, str)])
        # a local, so that a board forgets it and the shape when the section has been read
        from clawlite.core.image.header import check_shape

        self.injection, self.leaks, self.checks, self.audit, self.references, self.encrypted = (
            check_shape(
                record,
                (
                    [None, (3, _MANY, [(str, str)], [str], 8)],
                    [None, (4, 3)],
                    [None, ([None, _MANY], bool, bool, str)],
                    [None, audit, audit + (_MANY,)],
                    [str],
                    bool,
                ),
                "the section of guards",
            )
        )
