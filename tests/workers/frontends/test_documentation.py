"""docs/reference/model-formats.md says what the importers take."""

from __future__ import annotations

import re
from pathlib import Path

from workers.frontends.onnx_converters_quantized import CONVERTERS as QUANTIZED
from workers.frontends.tflite.importer import CONVERTERS as TFLITE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "model-formats.md"


def test_every_tflite_operator_is_listed() -> None:
    section = PAGE.read_text().split("## TFLite")[1].split("\n## ")[0]
    listed = re.search(r"Taken are:\n\n(.*?)\n\n", section, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == set(TFLITE)


def test_every_quantized_onnx_operation_is_listed() -> None:
    section = PAGE.read_text().split("## Quantized models")[1].split("\n## ")[0]
    assert set(QUANTIZED) <= set(re.findall(r"`(\w+)`", section))
