"""Documents of results: JSON, valid by docs/schema/result.schema.json, of which the package has a copy."""

import gzip
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Annotated, Any, TypeAlias, TypedDict

import jsonschema_rs
import msgspec

from .._errors import ForeignError, ResultError
from .._read import SCHEMA

Document: TypeAlias = dict[str, Any]

#: The most bytes of a result, uncompressed, and the most lists and objects in it: parsed, they take about 1
#: GB.
MOST_BYTES = 64 << 20
MOST_PARTS = 4_000_000

_SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "result.schema.json").read_text())


def _decoder(schema: dict[str, Any]) -> msgspec.json.Decoder[Any]:
    """Returns a decoder of results. It checks the blocks, most of the text, as it reads them: a dictionary of
    each would take most of the time."""
    natural = Annotated[int, msgspec.Meta(ge=0)]
    block = schema["$defs"]["SampleBlock"]
    names = {name: f"{name}_" for name in block["properties"]}
    fields = [(names[name], natural) for name in block["required"]]
    made = msgspec.defstruct("Block", fields, rename={own: name for name, own in names.items()}, gc=False)
    point: dict[str, Any] = dict.fromkeys(schema["$defs"]["Measurement"]["properties"], Any)
    typed: Any = TypedDict
    point["blocks"] = list[made]  # type: ignore[valid-type]
    whole: dict[str, Any] = dict.fromkeys(schema["properties"], Any)
    whole["measurements"] = list[typed("measurement", point, total=False)]  # type: ignore[misc]
    return msgspec.json.Decoder(typed("result", whole, total=False))


_DECODER = _decoder(_SCHEMA)
_VALIDATOR = jsonschema_rs.validator_for(_SCHEMA)
_NO_BLOCKS: list[Any] = []


def text_of(file: IO[bytes], source: str) -> bytes:
    """Returns the text of a result, compressed by gzip or not. Raises ResultError if it is too long."""
    text = file.read(MOST_BYTES + 1)
    if text.startswith(b"\x1f\x8b"):
        file.seek(0)
        try:
            with gzip.GzipFile(fileobj=file) as packed:
                text = packed.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ResultError(source, f"its compression is damaged ({error})") from None
    if len(text) > MOST_BYTES:
        raise ResultError(source, f"it has more than {MOST_BYTES >> 20} MiB")
    return text


def document_of(text: bytes, source: str) -> Document:
    """Returns a result, without blocks and fields that the schema does not have.

    Raises ForeignError if the text is JSON of something else, ResultError if it is no JSON or not valid: the
    reason begins with the path of what is wrong.
    """
    if text.count(b"[") + text.count(b"{") > MOST_PARTS:
        raise ResultError(source, f"it has more than {MOST_PARTS} lists and objects")
    wrong = None
    try:
        try:
            document = _DECODER.decode(text)
        except msgspec.ValidationError as error:
            wrong, document = str(error), msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultError(source, f"it is not a latscope result, or a damaged one ({error!s:.200})") from None
    if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
        raise ForeignError(source, 'it is not a latscope result, for it has no "schema" field')
    if document["schema"] != SCHEMA:
        raise ForeignError(source, f"its schema is {document['schema']!r:.60}, and this reads {SCHEMA!r}")
    if wrong is None:
        for point in document.get("measurements", ()):
            if "blocks" in point:
                point["blocks"] = _NO_BLOCKS
        if _VALIDATOR.is_valid(document):
            return document
    raise ResultError(source, f"it is a damaged result: {_fault(document, wrong):.300}")


def _fault(document: Document, wrong: str | None) -> str:
    """Returns what is wrong with a document that is not valid, with its path in front."""
    for error in _VALIDATOR.iter_errors(document):
        return f"{path_of(error.instance_path)}: {error.message}"
    found = re.fullmatch(r"(.*) - at `\$\.?(.*)`", wrong or "", re.DOTALL)
    return f"{found[2]}: {found[1]}" if found else str(wrong)


def path_of(parts: Sequence[str | int]) -> str:
    """Returns the path of a part of a document: `measurements[3].histogram.min`."""
    texts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(texts).removeprefix(".")[:120] or "the whole"
