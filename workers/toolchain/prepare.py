"""Makes the linker's stub libraries ahead of the first job."""

from __future__ import annotations

import sys
from pathlib import Path

from service.contracts.targets import Abi
from workers.toolchain.link import AndroidLinker


def main() -> None:
    """Prepare every ABI in the folder named."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m workers.toolchain.prepare DIR")
    for abi in Abi:
        AndroidLinker(abi, Path(sys.argv[1]).resolve()).prepare()


if __name__ == "__main__":
    main()
