"""The operations of check programs, by name: schema.py says what each one means.

Numbers alone.  A board has no such module: the linker writes them where they are used.
"""

(
    OBJECT,
    REQUIRED,
    NAMES,
    MIN_MEMBERS,
    MAX_MEMBERS,
    ITEMS,
    CONTAINS,
    UNIQUE,
    MIN_ITEMS,
    MAX_ITEMS,
    MATCH,
    MIN_LENGTH,
    MAX_LENGTH,
    MINIMUM,
    MAXIMUM,
    ABOVE,
    BELOW,
    MULTIPLE,
    ENUM,
    ALL,
    ANY,
    ONE,
    NOT,
    IF_THEN,
) = range(24)
