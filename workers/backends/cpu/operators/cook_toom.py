"""Matrices of Winograd's minimal filtering: a window of three in fewer products.

    y = A^T ((G g) * (B^T d)),   g: 3 numbers of the window, d: m + 2 of the image, y: m results

after Cook and Toom: polynomials are multiplied by their values in m + 1 points and at infinity
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

WINDOW = 3
"""Pixels of the window along one axis."""

_POINTS = {2: ("0", "1", "-1"), 4: ("0", "1", "-1", "1/2", "-2")}
"""For m results. For m = 4 the most accurate of three sets tried, over one drawn layer of
256 channels: 2.7e-6 of the largest output; 6.5e-6 with 2 in place of 1/2."""


@dataclass(frozen=True)
class Transforms:
    """The three matrices.

    Attributes:
        image: B^T, (m + 2, m + 2).
        window: G, (m + 2, 3).
        result: A^T, (m, m + 2).
    """

    image: NDArray[np.float64]
    window: NDArray[np.float64]
    result: NDArray[np.float64]


@cache
def transforms(results: int) -> Transforms:
    """Matrices for 2 or 4 results a step along one axis."""
    points = [Fraction(point) for point in _POINTS[results]]
    count = len(points) + 1
    image = np.zeros((count, count), object)
    window, result = np.zeros((count, WINDOW), object), np.zeros((results, count), object)
    for i, point in enumerate(points):
        others = [other for other in points if other != point]
        scale = math.prod((point - other for other in others), start=Fraction(1))
        image[i, : count - 1] = _product_of(others)
        window[i] = [point**k / scale for k in range(WINDOW)]
        result[:, i] = [point**k for k in range(results)]
    image[-1] = _product_of(points)
    window[-1, -1] = result[-1, -1] = Fraction(1)
    return Transforms(*(matrix.astype(np.float64) for matrix in (image, window, result)))


def _product_of(roots: list[Fraction]) -> list[Fraction]:
    """Coefficients of the polynomial with these roots, the constant one first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [*(-root * value for value in coefficients), Fraction(0)]
        coefficients = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return coefficients
