"""Open the file of an image."""

from clawlite.core.base.errors import ImageError
from clawlite.core.image import header, image_signature
from clawlite.core.image import image as layout
from clawlite.host.base.regular_file import open_regular


def is_image(path: str) -> bool:
    """Return whether *path* is an image, or calls itself one: its errors are an image's then."""
    return path.endswith(".cbor") or begins_as_image(path)


def begins_as_image(path: str) -> bool:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(3) == header.MAGIC
    except OSError:
        return False


def open_image(path: str) -> layout.Image:
    """Return the image in the file *path*, its digest checked.  Raises ``ImageError``, which
    names the file.
    """
    return read_named(path, read_checked)


def read_named(path: str, work):
    """Return *work* of the bytes of the image *path*; its ``ImageError`` names the file."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(header.MAX_IMAGE + 1)
    except OSError as e:
        raise ImageError(
            f"{path}: {e.strerror}", "name an image; make one with: clawlite build"
        ) from None
    try:
        return work(data)
    except ImageError as e:
        raise type(e)(f"{path}: {e.message}", e.hint or "build it again") from None


def read_checked(data: bytes, key: bytes | None = None, keep: int = 1024) -> layout.Image:
    """Return the image *data*, its digest checked; also that it is signed with *key*, where there
    is one.  keep: as in ``read``.  Raises ``ImageError``.
    """
    image = read(data, keep)
    image_signature.check(_make_reader(data), len(data), image.seal_at, key)
    return image


def read(data: bytes, keep: int = 0) -> layout.Image:
    """Return the image *data*; so many of its decoded tools and rules stay in memory."""
    return layout.Image(_make_reader(data), len(data), keep)


def _make_reader(data: bytes):
    return lambda offset, length: data[offset : offset + length]
