"""The numbers of check programs; ``clawlite.core.formats.schema`` says what they mean, and runs
them.
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
    IF,
) = range(24)

# masks of kinds
A_STRING, A_NUMBER, AN_OBJECT, AN_ARRAY, ANYTHING = 1, 12, 16, 32, 127
