"""Blobs in an S3-compatible store; credentials come from boto3's own chain."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from service.contracts.errors import NnfarmError
from service.storage.incoming import StagedBlob
from service.storage.store import CHUNK_BYTES


class S3Store:
    """One object a blob: ``PREFIX/ab/abcd...``."""

    def __init__(self, bucket: str, prefix: str, endpoint_url: str | None) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint_url,
            config=Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 3}),
        )
        self._staging = Path(tempfile.gettempdir())

    @property
    def staging_dir(self) -> Path:
        """The machine's folder for temporary files."""
        return self._staging

    def put(self, staged: StagedBlob) -> None:
        """Upload the file; S3 shows an object only when it is complete."""
        try:
            self._client.upload_file(str(staged.path), self._bucket, self._key(staged.sha256))
        except (BotoCoreError, ClientError, boto3.exceptions.Boto3Error) as error:
            raise _storage_error(error) from error

    def size(self, sha256: str) -> int | None:
        """Size by a HEAD request."""
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=self._key(sha256))
        except ClientError as error:
            if _is_missing(error):
                return None
            raise _storage_error(error) from error
        except BotoCoreError as error:
            raise _storage_error(error) from error
        return int(head["ContentLength"])

    def read(self, sha256: str) -> Iterator[bytes]:
        """The object's body as it arrives."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._key(sha256))
        except ClientError as error:
            if _is_missing(error):
                raise NnfarmError("request.not_found", f"There is no blob {sha256}.") from None
            raise _storage_error(error) from error
        except BotoCoreError as error:
            raise _storage_error(error) from error
        return _pieces(answer["Body"])

    def _key(self, sha256: str) -> str:
        return f"{self._prefix}{sha256[:2]}/{sha256}"


def _pieces(body: Any) -> Iterator[bytes]:
    with closing(body):
        yield from body.iter_chunks(CHUNK_BYTES)


def _is_missing(error: ClientError) -> bool:
    # A HEAD answer has no body to carry the name of the error, only the number. A missing bucket
    # is not a missing blob.
    return error.response["Error"]["Code"] in ("404", "NoSuchKey")


def _storage_error(error: Exception) -> NnfarmError:
    return NnfarmError("infra.storage", f"The blob store failed: {error}")
