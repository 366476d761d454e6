"""The back end: a checked manifest to an image.

    manifest -> refuse what is not built -> tool records, rules, automata, prose, settings ->
    sections -> bytes

Everything that can be known before a device boots is decided here.  All problems are raised
together."""

import dataclasses
import hashlib
import json

from clawlite import __version__
from clawlite.core.image import image as layout
from clawlite.host.compiler.work import Work
from clawlite.host.image.image_file import SECTION_NAMES, encode, table, write
from clawlite.host.manifest.features import FEATURES, find_needs
from clawlite.protocols.mcp.tool_definitions import SCHEMAS, definitions

_BYTES = 2 << 5  # the mark of a string of bytes in CBOR


@dataclasses.dataclass
class Built:
    """An image, and what the build knows of it.

    data      the image's bytes
    sections  [(name, bytes), ...] in the file's order
    """

    data: bytes
    sections: list


def build(manifest, key: bytes = None, at_use: bool = False) -> Built:
    """Compile *manifest* (``manifest.load``); *key* signs the image.

    at_use  also compile features that this version lacks, if an error at use reports them
            (``Feature.check``): for an operator
    Raises ``ManifestErrors`` with every problem.
    """
    for feature in FEATURES:
        feature.check(manifest, at_use)
    work = Work(manifest)
    sections: dict = {}
    for feature in FEATURES:
        sections.update(feature.compile(manifest, work))
    sections[layout.AUTOMATA] = table(work.pool.tables)
    sections[layout.PROSE] = work.prose.data
    manifest.problems.raise_all()
    head = (
        f"clawlite {__version__}",
        requires(manifest),
        _digest(manifest.sources),
        _companions(manifest),
        key,
    )
    data = write(sections, *head)
    if work.tools:
        written = {
            name: (tool.spec.input_schema or {}, tool.spec.output_schema)
            for name, tool in zip(work.names, work.tools)
        }
        sections[SCHEMAS] = _missing_schemas(written, data)
        data = data if sections[SCHEMAS] is None else write(sections, *head)
    return Built(data, _sizes(data))


def requires(manifest) -> list[str]:
    """Return the abilities that a device must have to run *manifest*, sorted."""
    return sorted(find_needs(manifest))


def _digest(sources: list) -> bytes:
    """Return the SHA-256 of ``encode([name, bytes])`` of all *sources*, without a copy of them."""
    digest = hashlib.sha256()
    for name, data in sources:
        head = bytearray(encode(len(data)))
        head[0] |= _BYTES  # the head of a string of bytes is its length, marked as that of one
        digest.update(encode([name, 0])[:-1] + head)
        digest.update(data)
    return digest.digest()


def _companions(manifest) -> list:
    if not any(tool.function for tool in manifest.tools):
        return []
    names = ["tools.py", *(manifest.imports.modules if manifest.imports else [])]
    return [
        [name, hashlib.sha256(data).digest()] for name, data in manifest.sources if name in names
    ]


def _sizes(data: bytes) -> list:
    opened = _open(data, 1)
    return [(SECTION_NAMES[number], opened.size_of(number)) for number in opened.sections()]


def _open(data: bytes, cached: int):
    return layout.Image(lambda offset, length: data[offset : offset + length], len(data), cached)


def _missing_schemas(specs: dict, data: bytes) -> list | None:
    """Return the section with the schemas of tools as their maker wrote them, for MCP clients: what
    an image has of them otherwise is sent to providers, or a check program.  It has what is missing
    and nothing else, None where that is nothing; only ``clawlite mcp serve`` reads it
    (protocols/mcp/tool_definitions.py).

    specs  name of each tool in the image -> (input schema, output schema or None) as written
    data   the image without it
    """
    image, rows = _open(data, 1024), []
    for found in definitions(image, json.JSONDecoder().raw_decode):
        given, gives = specs[found["name"]]
        row = [
            found["name"],
            _missing(given, found["inputSchema"]),
            _missing(gives, found["outputSchema"]) if "outputSchema" in found else "",
        ]
        if row[1:] != ["", ""]:
            rows.append(row)
    return rows or None


def _missing(written: dict, found: dict) -> str:
    """Return *written* as JSON, "" when *found* says the same."""
    if _whole(written) == _whole(found):
        return ""
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _whole(schema: dict) -> dict:
    return {**schema, "type": "object", "properties": schema.get("properties", {})}
