"""BATCH_MATMUL: relax.matmul of two tensors of the same rank."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class BatchMatmul(Operation):
    """Batch dimensions must be equal: NNAPI does not say that it broadcasts them."""

    name = "BATCH_MATMUL"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        lhs, rhs = wildcard(), wildcard()
        yield Pattern(is_op("relax.matmul")(lhs, rhs), {"lhs": lhs, "rhs": rhs})

    def fits(self, site: Site) -> bool:
        rhs = site.constant("rhs")
        return rhs is None or rhs.ndim != 2  # else FULLY_CONNECTED, from level 1

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["lhs"], site["rhs"]])
        if rejection is not None:
            return rejection
        lhs, rhs = site.shape("lhs"), site.shape("rhs")
        if len(lhs) != len(rhs) or lhs[:-2] != rhs[:-2]:
            return unsupported("broadcast", "BATCH_MATMUL needs equal batch dimensions.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(
            self.name,
            builder.output(site.output),
            lhs=builder.operand(site["lhs"]),
            rhs=builder.operand(site["rhs"]),
            adjoint_lhs=builder.bool(False),
            adjoint_rhs=builder.bool(False),
        )


OPERATIONS = (BatchMatmul(),)
