"""Texts that linked modules keep in the file ``sentences`` beside them, so that an error costs no
memory before it happens.

    byte   length n, 1..255, of the sentence in UTF-8
    n      the sentence

The linker writes that file, and puts calls of ``sentence`` where the sources have the texts
(clawlite/host/firmware/string_table.py)."""

_PATH = __file__.rpartition("/")[0] + "/sentences"


def sentence(at: int) -> str:
    """Return the text at byte *at* of the file.  Raises ``OSError`` when the file is missing, as
    the import of a missing module would.
    """
    with open(_PATH, "rb") as file:
        file.seek(at)
        return str(file.read(file.read(1)[0]), "utf-8")
