"""The beds: plain functions are tools; their schemas come from the annotations."""

DRY = (2, 3, 5)                         # in place of sensors


def look(bed: int) -> str:
    """Look whether a bed is dry."""
    return "Bed %d is %s." % (bed, "dry" if bed in DRY else "wet enough")


def water(bed: int):
    """Water a bed."""
    yield 500                           # milliseconds
    return "Bed %d is watered." % bed
