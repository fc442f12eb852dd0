from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"


def test_committed_model_recognises_the_held_out_digits() -> None:
    session = onnxruntime.InferenceSession(FOLDER / "digits.onnx")
    with np.load(FOLDER / "digits_test.npz", allow_pickle=False) as data:
        images, labels = data["image"], data["labels"]
    assert images.shape == (200, 1, 1, 8, 8)
    answers = [session.run(["logits"], {"image": image})[0].argmax() for image in images]
    assert np.mean(answers == labels) >= 0.97


def test_committed_model_has_what_mobile_networks_have() -> None:
    model = onnx.load(FOLDER / "digits.onnx")
    kinds = {node.op_type for node in model.graph.node}
    assert kinds >= {"Conv", "Relu", "Clip", "Add", "MaxPool", "GlobalAveragePool", "Gemm"}
    names = [node.name for node in model.graph.node]
    assert all(names)
    assert len(set(names)) == len(names)
    assert (FOLDER / "digits.onnx").stat().st_size < 200_000
