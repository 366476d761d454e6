"""What the golden agent "talking" can do."""


def look(place: str) -> str:
    """Look at a place."""
    return "3 tomatoes at " + place


def smash(what: str) -> str:
    """Break something: it never works."""
    raise ValueError("%s holds" % what)
