"""`python -m device_farm.virtual_phone PROFILE`: one virtual phone until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

from device_farm.virtual_phone.daemon import Daemon
from device_farm.virtual_phone.profile import ProfileError, find_profile, profile_names
from device_farm.virtual_phone.sandbox import Sandbox, SandboxError


def main() -> int:
    """Plays one phone; prints its serial as JSON when it is ready."""
    arguments = _parse()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        profile = find_profile(arguments.profile)
        if arguments.root:
            return _play(Sandbox(arguments.root, profile, arguments.simulator), arguments)
        with tempfile.TemporaryDirectory(prefix="nnfarm-phone-") as root:
            return _play(Sandbox(Path(root), profile, arguments.simulator), arguments)
    except (ProfileError, SandboxError, OSError) as error:
        print(f"virtual phone: {error}", file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m device_farm.virtual_phone")
    parser.add_argument(
        "profile", help=f"a profile's file (.toml) or name: {', '.join(profile_names())}"
    )
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument(
        "--root", type=Path, help="the phone's folder, kept; without it, a temporary one"
    )
    parser.add_argument(
        "--simulator",
        type=Path,
        default=Path("build/simulator"),
        help="folder with <target>/libneuralnetworks.so",
    )
    parser.add_argument(
        "--follow-stdin",
        action="store_true",
        help="stop when standard input ends: with the process that started the phone",
    )
    return parser.parse_args()


def _play(sandbox: Sandbox, arguments: argparse.Namespace) -> int:
    asyncio.run(_serve(sandbox, arguments.port, arguments.follow_stdin))
    return 0


async def _serve(sandbox: Sandbox, port: int, follow_stdin: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    daemon = Daemon(sandbox)
    bound = await daemon.start(port)
    if follow_stdin:
        loop.add_reader(sys.stdin, _stop_at_end_of_stdin, stop)
    print(json.dumps({"serial": f"127.0.0.1:{bound}"}), flush=True)
    await stop.wait()
    await daemon.stop()


def _stop_at_end_of_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        stop.set()


if __name__ == "__main__":
    sys.exit(main())
