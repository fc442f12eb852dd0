"""LSTM and RNN: a cell's step, or a layer over sequences, in one direction or in both."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import needs_level, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.backends.nnapi.recurrent_operands import (
    ACTIVATIONS,
    input_operands,
    norms_level,
    operation_of,
    states_level,
)
from workers.graph.recurrence.layer import BACKWARD, LSTM, Recurrence, recurrence_of


class RecurrentLayer(Operation):
    """One operation of the table; what a role is called there is the operand's name."""

    gives_several = True

    def __init__(self, name: str) -> None:
        self.name = name

    def patterns(self) -> Iterator[Pattern]:
        root = is_op("relax.call_dps_packed")(wildcard(), wildcard())
        yield Pattern(root, {"call": root})

    def fits(self, site: Site) -> bool:
        recurrence = recurrence_of(site["call"])
        return recurrence is not None and operation_of(recurrence).name == self.name

    def check(self, site: Site) -> Rejection | None:
        recurrence = _layer(site)
        spec, dtype = operation_of(recurrence), site.element_type(recurrence.data)
        if dtype not in spec.types:
            return unsupported("dtype", f"{self.name} does not take {dtype} tensors.")
        if recurrence.layer.directions == BACKWARD:
            return unsupported("operands", f"{self.name} does not read backwards.")
        if recurrence.layer.activation not in ACTIVATIONS:
            return unsupported("operands", f"{self.name} has no {recurrence.layer.activation}.")
        levels = {
            self.name: spec.level,
            f"{self.name} on {dtype} tensors": spec.types[dtype],
            f"{self.name} with normalized gates": norms_level(recurrence),
        }
        if _reads_states(site):
            levels[f"The last state of {self.name}"] = states_level(recurrence)
        rejections = (
            needs_level(what, least, site.feature_level) for what, least in levels.items()
        )
        return next((rejection for rejection in rejections if rejection), None)

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        recurrence, reads_states = _layer(site), _reads_states(site)
        # Whether states come behind one output or two is said nowhere: apart, there is no doubt.
        is_apart = len(recurrence.layer.ways) > 1 and reads_states
        inputs = input_operands(recurrence, builder, is_merged=not is_apart)
        count = len(site["call"].ty.fields)
        whole, *states = (_result(site, builder, index) for index in range(count))
        if recurrence.is_step:
            scratch = _scratch(recurrence, builder, states) if self.name == LSTM else ()
            builder.add(self.name, (*scratch, *states, whole), **inputs)
        elif not is_apart:
            builder.add(self.name, (whole, *states) if reads_states else whole, **inputs)
        else:
            sizes = [builder.shape(state)[1] for state in states[:: len(states) // 2]]
            first, second, _ = builder.shape(whole)
            ways = [builder.like(whole, (first, second, size)) for size in sizes]
            builder.add(self.name, (*ways, *states), **inputs)
            builder.add("CONCATENATION", whole, *ways, axis=builder.int32(2))


def _layer(site: Site) -> Recurrence:
    recurrence = recurrence_of(site["call"])
    assert recurrence is not None  # it fits
    return recurrence


def _reads_states(site: Site) -> bool:
    return any(f"result{i}" in site for i in range(1, len(site["call"].ty.fields)))


def _scratch(recurrence: Recurrence, builder: ModelBuilder, states: list[int]) -> tuple[int]:
    batch, units = builder.shape(states[1])
    gates = 4 if "fw_input_to_input_weights" in recurrence.operands else 3
    return (builder.like(states[1], (batch, gates * units)),)


def _result(site: Site, builder: ModelBuilder, index: int) -> int:
    """A variable's operand; one of nobody's where the result is not read."""
    if f"result{index}" in site:
        return builder.output(site[f"result{index}"])
    kind = site["call"].ty.fields[index]
    return builder.temporary([int(d) for d in kind.shape.values], str(kind.dtype))


OPERATIONS = tuple(
    RecurrentLayer(f"{ways}{cell}")
    for cell in ("LSTM", "RNN")
    for ways in ("", "UNIDIRECTIONAL_SEQUENCE_", "BIDIRECTIONAL_SEQUENCE_")
)
