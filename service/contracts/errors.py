"""Error classes, codes and the problem+json body, one table for all programs.

A code is `<area>.<what>`, stable for ever: clients branch on it. Its class says whose turn it is
(see `ErrorClass`), which alone decides about retries.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class ErrorClass(StrEnum):
    """Whose turn it is after an error."""

    USER = "user"  # show it, never retry
    INFRA = "infra"  # retry with back-off
    DEVICE = "device"  # retry on another device, count against this one
    BUG = "bug"  # full trace, never retried


class ErrorKind(NamedTuple):
    """What the table says about one code."""

    error_class: ErrorClass
    http_status: int
    title: str


_U, _I, _D, _B = ErrorClass.USER, ErrorClass.INFRA, ErrorClass.DEVICE, ErrorClass.BUG

ERROR_KINDS: dict[str, ErrorKind] = {
    # requests
    "request.invalid": ErrorKind(_U, 422, "The request is not valid"),
    "request.unauthorized": ErrorKind(_U, 401, "A valid token is needed"),
    "request.forbidden": ErrorKind(_U, 403, "This token does not allow that"),
    "request.not_found": ErrorKind(_U, 404, "No such resource"),
    "request.method_not_allowed": ErrorKind(_U, 405, "This resource has no such method"),
    "request.too_large": ErrorKind(_U, 413, "The request is larger than this service takes"),
    "request.conflict": ErrorKind(_U, 409, "The resource is in another state"),
    "request.hash_mismatch": ErrorKind(_U, 422, "The uploaded bytes do not match their SHA-256"),
    "request.fenced": ErrorKind(_U, 409, "Another holder has taken over this lease"),
    # models
    "model.empty": ErrorKind(_U, 422, "The model file is empty"),
    "model.too_large": ErrorKind(_U, 413, "The model file is larger than this service takes"),
    "model.unreadable": ErrorKind(_U, 422, "The file is not a readable model"),
    "model.unsupported_opset": ErrorKind(_U, 422, "The model's opset is not supported"),
    "model.external_data_missing": ErrorKind(_U, 422, "The model's external data is missing"),
    "model.external_data_escapes": ErrorKind(_U, 422, "External data points outside the model"),
    "model.bad_archive": ErrorKind(_U, 422, "The model's archive breaks its rules"),
    "model.cyclic": ErrorKind(_U, 422, "The model's graph has a cycle or is out of order"),
    "model.unknown_operation": ErrorKind(_U, 422, "The model uses an unknown operation"),
    "model.bad_dimension": ErrorKind(_U, 422, "A tensor dimension is not usable"),
    "model.unsafe": ErrorKind(_U, 422, "The model file carries code that would be executed"),
    "model.invalid": ErrorKind(_U, 422, "The model breaks its format's specification"),
    # datasets
    "dataset.empty": ErrorKind(_U, 422, "The dataset file is empty"),
    "dataset.too_large": ErrorKind(_U, 413, "The dataset file is larger than this service takes"),
    "dataset.unreadable": ErrorKind(_U, 422, "The file is not a readable .npz dataset"),
    "dataset.mismatch": ErrorKind(_U, 422, "The dataset does not fit the model"),
    "dataset.not_finite": ErrorKind(_U, 422, "The dataset has NaN or infinite inputs"),
    # compilations
    "compile.bad_level": ErrorKind(_U, 422, "The NNAPI feature level is out of range"),
    "compile.bad_abi": ErrorKind(_U, 422, "The Android ABI is not known"),
    "compile.bad_option": ErrorKind(_U, 422, "A compile option is not valid"),
    "compile.unsupported_operation": ErrorKind(_U, 422, "The importer cannot take an operation"),
    "compile.unsupported_model": ErrorKind(_U, 422, "The model cannot be compiled"),
    "compile.limit_exceeded": ErrorKind(_U, 422, "The model exceeds the build limits"),
    "compile.crashed": ErrorKind(_B, 500, "The compiler crashed on this model"),
    "compile.reference_failed": ErrorKind(_U, 422, "The original model does not run"),
    # quantizations
    "quantize.bad_option": ErrorKind(_U, 422, "A quantization option is not valid"),
    "quantize.already_quantized": ErrorKind(_U, 422, "The model is quantized already"),
    "quantize.unsupported_model": ErrorKind(_U, 422, "The model cannot be quantized"),
    "quantize.limit_exceeded": ErrorKind(_U, 422, "The model exceeds the quantization limits"),
    "quantize.crashed": ErrorKind(_B, 500, "The quantizer crashed on this model"),
    # tunings
    "tune.bad_option": ErrorKind(_U, 422, "A tuning option is not valid"),
    "tune.unsupported_target": ErrorKind(_U, 422, "Kernels cannot be measured there"),
    "tune.no_device": ErrorKind(_U, 422, "The device to tune on is not there"),
    "tune.unsupported_host": ErrorKind(_U, 422, "The worker's machine runs no Android ABI"),
    "tune.limit_exceeded": ErrorKind(_U, 422, "The model exceeds the tuning limits"),
    "tune.crashed": ErrorKind(_B, 500, "The tuner crashed on this model"),
    # jobs of any kind
    "job.cancelled": ErrorKind(_U, 409, "The job was cancelled"),
    # runs
    "run.no_device": ErrorKind(_U, 422, "No attached device can run this artifact"),
    "run.device_lost": ErrorKind(_D, 502, "The device went away during the run"),
    "run.timeout": ErrorKind(_D, 504, "The run took too long on the device"),
    "run.crashed": ErrorKind(_D, 502, "The runner crashed on the device"),
    "run.bad_package": ErrorKind(_B, 500, "The device refused the package"),
    "run.failed": ErrorKind(_B, 500, "The runner failed on the device"),
    "run.storage_full": ErrorKind(_D, 502, "The device has no room for the package"),
    # infrastructure
    "infra.unavailable": ErrorKind(_I, 503, "A part of the service is not reachable"),
    "infra.storage": ErrorKind(_I, 503, "The blob storage failed"),
    "infra.worker_lost": ErrorKind(_I, 503, "The worker stopped before it finished"),
    "bug.internal": ErrorKind(_B, 500, "Internal error"),
}


class Problem(BaseModel):
    """RFC 9457 problem details; the body of every error answer and of stored failures."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field("about:blank", examples=["urn:nnfarm:error:compile.bad_level"])
    code: str = Field(examples=["compile.bad_level"])
    title: str = Field(examples=["The NNAPI feature level is out of range"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["Feature level 9 is not one of 1 to 8."])
    error_class: ErrorClass = Field(examples=["user"])
    details: dict[str, Any] = Field(default_factory=dict)


class NnfarmError(Exception):
    """An error with a code of `ERROR_KINDS`; raise it deep, catch it at borders only.

    Args:
        code: a key of `ERROR_KINDS`.
        detail: one sentence for a person, specific to this occurrence.
        details: machine-readable facts (limits, names, positions); JSON values only.
    """

    def __init__(self, code: str, detail: str, /, **details: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = ERROR_KINDS[code]
        self.detail = detail
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process borders (Celery, multiprocessing); the default reduction loses
        # the keyword arguments.
        return _rebuild, (self.code, self.detail, self.details)

    def to_problem(self) -> Problem:
        """The error as a problem+json body."""
        return Problem(
            type=f"urn:nnfarm:error:{self.code}",
            code=self.code,
            title=self.kind.title,
            status=self.kind.http_status,
            detail=self.detail,
            error_class=self.kind.error_class,
            details=self.details,
        )


def _rebuild(code: str, detail: str, details: dict[str, Any]) -> NnfarmError:
    return NnfarmError(code, detail, **details)


def from_problem(problem: Problem) -> NnfarmError:
    """The error a problem body came from; an unknown code becomes `bug.internal`."""
    if problem.code in ERROR_KINDS:
        return NnfarmError(problem.code, problem.detail, **problem.details)
    return NnfarmError("bug.internal", problem.detail, original_code=problem.code)
