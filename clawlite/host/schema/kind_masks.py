"""Masks of the kinds of values that a check is about; ``clawlite.core.formats.schema`` says what
they mean.
"""

A_STRING, A_NUMBER, AN_OBJECT, AN_ARRAY, ANYTHING = 1, 12, 16, 32, 127
