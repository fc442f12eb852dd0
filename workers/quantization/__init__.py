"""Post-training quantization: a float ONNX model and samples in, a QDQ model and its cost out."""
