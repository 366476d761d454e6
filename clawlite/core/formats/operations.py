"""The operations of check programs, by name: schema.py explains each one.

This module holds numbers only.  On a board it does not exist: the linker inlines the numbers.
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
