"""LOG_SOFTMAX over one axis."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, Site


class LogSoftmax(Operation):
    """relax.nn.log_softmax; NNAPI takes any axis."""

    name = "LOG_SOFTMAX"

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.nn.log_softmax")(data)
        yield Pattern(root, {"data": data, "log_softmax": root})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axis = int(site["log_softmax"].attrs.axis) % len(site.shape("data"))
        source = builder.operand(site["data"])
        builder.add(
            self.name,
            builder.output(site.output),
            input=source,
            beta=builder.real(1.0, source),
            axis=builder.int32(axis),
        )


OPERATIONS = (LogSoftmax(),)
