"""multipart/form-data whose one file goes straight to an `Incoming`, never into memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from service.contracts.errors import NnfarmError
from service.storage.incoming import Incoming

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MAX_HEADER_BYTES = 4096
_MAX_FIELD_BYTES = 4096
_MAX_PARTS = 16
_FILE_FIELD = "file"


@dataclass
class UploadForm:
    """What came beside the file's bytes."""

    fields: dict[str, str] = field(default_factory=dict)
    file_name: str | None = None


async def receive_form(request: Request, incoming: Incoming) -> UploadForm:
    """Read the whole request: the part named ``file`` into `incoming`, the others as text.

    Raises:
        NnfarmError: ``request.invalid`` when it is no multipart form with exactly one file, or
            what `incoming` raises.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise _invalid("The request must be multipart/form-data with a boundary.")
    receiver = _Receiver(incoming)
    try:
        parser = MultipartParser(boundary, receiver.callbacks())
        async for chunk in request.stream():
            # Hashing and disk writes block: away from the event loop.
            await run_in_threadpool(parser.write, chunk)
        parser.finalize()
    except FormParserError as error:
        raise _invalid(f"The multipart form is damaged: {error}") from error
    if not receiver.complete:
        raise _invalid("The multipart form ends too early.")
    if receiver.form.file_name is None:
        raise _invalid("The form has no part named 'file' with a file name.")
    return receiver.form


class _Receiver:
    """Callbacks of the parser: keeps the state of the part being read."""

    def __init__(self, incoming: Incoming) -> None:
        self.form = UploadForm()
        self.complete = False
        self._incoming = incoming
        self._parts = 0
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._field: str | None = None  # None while the part is the file
        self._text = b""

    def callbacks(self) -> MultipartCallbacks:
        """The table `MultipartParser` takes."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._add_data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise _invalid(f"The form has more than {_MAX_PARTS} parts.")
        self._disposition, self._text = b"", b""

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name = _bounded(self._header_name + data[start:end], _MAX_HEADER_BYTES)

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value = _bounded(self._header_value + data[start:end], _MAX_HEADER_BYTES)

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name, self._header_value = b"", b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = _text(options.get(b"name", b""))
        if not name:
            raise _invalid("A part of the form has no name.")
        if name != _FILE_FIELD:
            self._field = name
            return
        if b"filename" not in options:
            raise _invalid("The part 'file' must be a file, with a file name.")
        if self.form.file_name is not None:
            raise _invalid("The form has more than one file.")
        self._field = None
        self.form.file_name = _text(options[b"filename"])

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._incoming.write(data[start:end])
        else:
            self._text = _bounded(self._text + data[start:end], _MAX_FIELD_BYTES)

    def _end(self) -> None:
        if self._field is not None:
            self.form.fields[self._field] = _text(self._text)

    def _finish(self) -> None:
        self.complete = True


def _bounded(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise _invalid(f"A header or field of the form is longer than {limit} bytes.")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _invalid("A name or field of the form is not UTF-8.") from None


def _invalid(detail: str) -> NnfarmError:
    return NnfarmError("request.invalid", detail)
