"""The ADB transport's packets: a 24-byte header, then the payload.

Public protocol description: packages/modules/adb/protocol.txt of the Android Open Source Project.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum

VERSION_CHECKSUM = 0x01000000
"""The last protocol version that carries payload checksums."""
VERSION = 0x01000001
MAX_PAYLOAD = 1024 * 1024
_FIRST_MAX_PAYLOAD = 4096  # CNXN travels before the real limit is agreed on

_HEADER = struct.Struct("<6I")


class Command(IntEnum):
    """Packet kinds this daemon speaks; the values are four ASCII letters, little-endian."""

    CNXN = 0x4E584E43
    OPEN = 0x4E45504F
    OKAY = 0x59414B4F
    WRTE = 0x45545257
    CLSE = 0x45534C43


class WireError(Exception):
    """The peer broke the transport protocol; the connection cannot go on."""


@dataclass(frozen=True)
class Packet:
    """One transport packet."""

    command: Command
    arg0: int
    arg1: int
    payload: bytes = b""


def checksum(payload: bytes) -> int:
    """ADB's payload check: the sum of the bytes modulo 2^32."""
    return sum(payload) & 0xFFFFFFFF


def encode(packet: Packet, *, version: int) -> bytes:
    """The packet's bytes; versions above `VERSION_CHECKSUM` carry no checksum."""
    check = checksum(packet.payload) if version <= VERSION_CHECKSUM else 0
    magic = packet.command ^ 0xFFFFFFFF
    header = _HEADER.pack(
        packet.command, packet.arg0, packet.arg1, len(packet.payload), check, magic
    )
    return header + packet.payload


async def read_packet(
    reader: asyncio.StreamReader, *, version: int, max_payload: int = _FIRST_MAX_PAYLOAD
) -> Packet | None:
    """Reads one packet; None when the peer has closed the connection between packets.

    Raises:
        WireError: the header is damaged, the payload is too long, its checksum is wrong, or the
            connection ends inside a packet.
    """
    try:
        header = await reader.readexactly(_HEADER.size)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise WireError("the connection ended inside a packet header") from error
    word, arg0, arg1, size, check, magic = _HEADER.unpack(header)
    if magic != word ^ 0xFFFFFFFF:
        raise WireError(f"bad packet magic {magic:#010x} for command {word:#010x}")
    try:
        command = Command(word)
    except ValueError as error:
        raise WireError(f"unknown packet command {word:#010x}") from error
    if size > max_payload:
        raise WireError(f"{command.name}: payload of {size} bytes, at most {max_payload} agreed")
    try:
        payload = await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise WireError("the connection ended inside a packet payload") from error
    if version <= VERSION_CHECKSUM and check != checksum(payload):
        raise WireError(f"{command.name}: payload checksum {check} is wrong")
    return Packet(command, arg0, arg1, payload)
