"""TFLite import: our own, because data stays NHWC and quantized operations stay whole units.

One table per family of operations, from the operator's name to the function that emits it.
"""
