"""Start a program that ends when its parent ends, even by kill -9.

    python -m service.local.tether PARENT_PID SIGNAL PROGRAM [ARGUMENT...]

The kernel is asked for SIGNAL at the parent's death (prctl(2), PR_SET_PDEATHSIG), then this process
becomes PROGRAM. It is a program of its own because code between fork and exec is not safe in a
parent that has threads.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Never returns: becomes the program, or exits."""
    parent_pid, death_signal, program = int(arguments[0]), int(arguments[1]), arguments[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the supervisor is gone already")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
