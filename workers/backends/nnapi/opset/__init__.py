"""Every operation of NNAPI, feature levels 1 to 8: one file of facts a family, and their reader."""

from __future__ import annotations

from workers.backends.nnapi.opset.table import OperationSpec, Role, opset

__all__ = ["OperationSpec", "Role", "opset"]
