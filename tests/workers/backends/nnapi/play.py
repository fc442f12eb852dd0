"""Child of the operation tests: runs encoded subgraphs through the player on an NNAPI library.

A process of its own, because LD_LIBRARY_PATH is read when a process starts.

    python play.py FOLDER

FOLDER has player.txt (path of the player), and for each case <name>.json (module bytes),
<name>.weights, <name>.npz (inputs i0.. and output shapes o0..);
<name>.out.npz is written, or <name>.error.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi


def main(folder: Path) -> None:
    ctypes.CDLL((folder / "player.txt").read_text(), ctypes.RTLD_GLOBAL)
    create = tvm_ffi.get_global_func("nnfarm.nnapi.module_create")
    set_package_dir = tvm_ffi.get_global_func("nnfarm.nnapi.set_package_dir")
    for module_file in sorted(folder.glob("*.json")):
        name = module_file.stem
        package = folder / name
        package.mkdir()
        (folder / f"{name}.weights").rename(package / "weights.bin")
        set_package_dir(str(package))
        module = create(module_file.read_text())
        with np.load(folder / f"{name}.npz") as arrays:
            inputs = [tvm.runtime.tensor(arrays[k]) for k in sorted(arrays) if k[0] == "i"]
            outputs = [tvm.runtime.tensor(arrays[k]) for k in sorted(arrays) if k[0] == "o"]
        try:
            module.get_function("nnfarm_nnapi_0")(*inputs, *outputs)
        except Exception as error:
            (folder / f"{name}.error").write_text(str(error))
            continue
        np.savez(folder / f"{name}.out.npz", *[o.numpy() for o in outputs])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
