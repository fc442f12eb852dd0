"""Google's conformance examples on the simulator: ``make conformance simulator-coverage``.

The examples are data beside the repository with a runner of their own (``--examples`` or
``NNFARM_CONFORMANCE`` names another folder). Prints a table of how many pass, one line an execution
mode, and how many of which operation do not. With ``--coverage`` the simulator is built by GCC for
coverage, and the lines that no example reached are listed by file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from device_farm.simulator.build import SOURCE_DIR, build_simulator

MODES = ("sync", "async", "dynamic", "memory", "burst", "reuse")
NOT_OFFERED = ("LSH_PROJECTION",)
"""It needs FarmHash, which the simulator does not have."""

BESIDE = SOURCE_DIR.parents[2] / "shared" / "nnapi_conformance"


def main() -> int:
    """Exit code 0: every example of an operation the simulator has passed."""
    arguments = _parse()
    if not (arguments.examples / "run_cts.py").exists():
        print(f"no conformance examples in {arguments.examples}", file=sys.stderr)
        return 2
    library = build_simulator("coverage" if arguments.coverage else "linux-x86_64")
    if arguments.coverage:
        _forget_coverage(library.parent)
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        driver = Path(name) / "driver"
        source = arguments.examples / "cts_driver.c"
        # The driver leaves by _exit, which would forget which lines were reached.
        flags = ["-O1", "-w", *(["-D_exit=exit"] if arguments.coverage else [])]
        subprocess.run(["gcc", *flags, "-o", driver, source, "-ldl"], check=True)
        for mode in arguments.modes:
            result = _run(arguments.examples, driver, library, mode)
            print(_line(mode, result), flush=True)
            failures += sum(
                r["status"] in ("FAIL", "CRASH") and r["op"] not in NOT_OFFERED for r in result
            )
    if arguments.coverage:
        print("\n".join(_unreached(library.parent)))
    return 1 if failures else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    named = os.environ.get("NNFARM_CONFORMANCE", "")
    parser.add_argument("--examples", type=Path, default=Path(named) if named else BESIDE)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE")
    parser.add_argument("--coverage", action="store_true")
    return parser.parse_args()


def _run(examples: Path, driver: Path, library: Path, mode: str) -> Sequence[Mapping[str, Any]]:
    """Each example with its status: PASS, FAIL, CRASH or SKIP (not made for the mode)."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.json"
        command = [sys.executable, str(examples / "run_cts.py"), str(library)]
        command += ["--driver", str(driver), "--mode", mode, "--json", str(report)]
        command += [f"-j{os.cpu_count() or 1}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return list(json.loads(report.read_text()))


def _line(mode: str, results: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(result["status"] for result in results)
    failed = Counter(r["op"] for r in results if r["status"] in ("FAIL", "CRASH"))
    text = (
        f"{mode:<8} {counts['PASS']:>5} pass  {failed.total():>3} fail  {counts['SKIP']:>3} skipped"
    )
    return text + "".join(f"  {op} {count}" for op, count in failed.items())


def _forget_coverage(folder: Path) -> None:
    for counts in folder.rglob("*.gcda"):
        counts.unlink()


def _unreached(folder: Path) -> Iterator[str]:
    """Share of lines reached by file, and the line numbers that were not."""
    reached: dict[str, dict[int, bool]] = {}
    for counts in folder.rglob("*.gcda"):
        command = ["gcov", "--json-format", "--stdout", str(counts)]
        output = subprocess.check_output(command, cwd=folder, stderr=subprocess.DEVNULL)
        for file in json.loads(output)["files"]:
            if "/src/" not in f"/{file['file']}" or file["file"].startswith("/usr"):
                continue
            lines = reached.setdefault(file["file"].rpartition("src/")[2], {})
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
    total = sum(map(len, reached.values()))
    hit = sum(sum(lines.values()) for lines in reached.values())
    yield f"{hit} of {total} lines reached ({hit / total:.1%}); not reached:"
    for name, lines in sorted(reached.items()):
        missed = sorted(number for number, was_hit in lines.items() if not was_hit)
        if missed:
            yield f"  {name}: {', '.join(_ranges(missed))}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Numbers in order, neighbours as first-last."""
    start = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield str(start) if start == last else f"{start}-{last}"
        if number is not None:
            start = last = number


if __name__ == "__main__":
    sys.exit(main())
