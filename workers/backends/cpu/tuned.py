"""Schedules that a tuner found: which kernel has one, and what it makes of the kernel.

A record of the service's database is the trace of a TVM schedule. It belongs to every kernel of the
same signature, in whatever model, on the same target and compiler.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from service.contracts.artifacts import Sha256
from service.contracts.kernels import AppliedTuning, TunedKernel

ENTRY = "main"
"""Name of a kernel while it is scheduled; traces name it."""

logger = logging.getLogger(__name__)


def signature_of(function: tirx.PrimFunc) -> Sha256:
    """What a kernel computes, with its shapes and types; the same in every model and process.

    Names of a model's tensors do not count, names of blocks do: traces find blocks by them.
    """
    plain = function.with_attr("global_symbol", ENTRY)  # no copy: it is only looked at
    schedule = s_tir.Schedule(plain)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = [schedule.get(block).name_hint for block in blocks]
    facts = [tvm_ffi.structural_hash(plain), names, str(function.ty)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def unnamed(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """A copy of the kernel, under the name that traces know.

    TVM's schedules write into a function that nobody else seems to hold, and take no heed of
    Python. What is to be scheduled more than once needs copies.
    """
    copy: tirx.PrimFunc = tvm.ir.load_json(tvm.ir.save_json(function))
    return copy.with_attr("global_symbol", ENTRY)


def replay(function: tirx.PrimFunc, trace: str) -> tirx.PrimFunc:
    """The kernel as the trace schedules it.

    Raises:
        Exception: TVM's, of many types, where the trace does not fit the kernel.
    """
    schedule = s_tir.Schedule(tvm.IRModule({ENTRY: unnamed(function)}))
    s_tir.Trace.apply_json_to_schedule(json.loads(trace), schedule)
    return schedule.mod[ENTRY]


class Tunings:
    """The records for one target, and which kernels of a build asked for one.

    Args:
        records: of the target.
    """

    def __init__(self, records: Iterable[TunedKernel] = ()) -> None:
        self._records = {record.signature: record for record in records}
        self.signatures: set[Sha256] = set()
        self.applied: list[AppliedTuning] = []

    def schedule(self, name: str, function: tirx.PrimFunc) -> tirx.PrimFunc | None:
        """The kernel by its record; None where the rules are to schedule it."""
        try:
            signature = signature_of(function)
        except (ValueError, RuntimeError):  # of s_tir.Schedule and its errors
            return None  # no block structure, so nothing could have tuned it
        self.signatures.add(signature)
        record = self._records.get(signature)
        if record is None:
            return None
        try:
            result = replay(function, record.trace)
        except Exception as error:  # TVM raises whatever its C++ threw
            # A damaged record must not take the model's compilation along.
            lines = str(error).strip().splitlines() or [repr(error)]
            logger.error("%s: record %s does not fit: %s", name, record.record_id, lines[-1])
            return None
        self.applied.append(
            AppliedTuning(
                record_id=record.record_id,
                kernel=name,
                before_us=record.before_us,
                after_us=record.after_us,
            )
        )
        return result
