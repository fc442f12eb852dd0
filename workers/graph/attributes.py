"""Attributes of Relax operators, which TVM does not let be changed."""

from __future__ import annotations

from typing import Any

import tvm


def attribute_fields(attributes: tvm.ir.Attrs) -> dict[str, Any]:
    """All attributes of an operator by name."""
    info = type(attributes).__tvm_ffi_type_info__
    return {field.name: getattr(attributes, field.name) for field in info.fields}


def with_fields(attributes: tvm.ir.Attrs, **changed: Any) -> tvm.ir.Attrs:
    """A copy of an operator's attributes, some of them others."""
    key = type(attributes).__tvm_ffi_type_info__.type_key
    return tvm.ir.make_node(key, **(attribute_fields(attributes) | changed))
