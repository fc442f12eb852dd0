"""What levels 1 and 2 do not have, written as what they have.

The second of two passes: it sees what the other composites are made of, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from workers.backends.nnapi.composites import early_arithmetic, early_movement, early_reductions
from workers.backends.nnapi.composites.rewrite import Composite


def before(level: int) -> Mapping[str, Composite]:
    """Composites of what a level does not have."""
    later = {**early_arithmetic.LATER, **early_reductions.LATER, **early_movement.LATER}
    return {name: composite for name, (first, composite) in later.items() if first > level}
