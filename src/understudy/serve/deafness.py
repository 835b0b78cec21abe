"""How a socket stops listening without a client noticing: no new connection is begun, and those begun are accepted.

Closing a listening socket resets the connections that wait to be accepted, with the requests that clients have already
sent on them. Accepting all of them first does not help: others come between the last of them and the close. So Linux
is told to drop what begins a connection; such a client tries again a second later, and is then refused or elsewhere.
"""

from __future__ import annotations

import ctypes
import socket
from contextlib import suppress

SO_ATTACH_FILTER = 26
# A filter of packets, in the four fields of each of its instructions: take the byte with a packet's flags, and drop the
# packet if it asks for a connection.
FLAGS_OF_TCP, ASKS = 13, 0x02
FILTER = ((0x30, 0, 0, FLAGS_OF_TCP), (0x45, 0, 1, ASKS), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def deafen(listening: socket.socket) -> None:
    """Begin no more connections; other systems than Linux do not know how, and go on."""
    instructions = (_Instruction * len(FILTER))(*(_Instruction(*fields) for fields in FILTER))
    program = _Program(len(FILTER), instructions)
    with suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))


def accepted(listening: socket.socket) -> socket.socket | None:
    """A connection that waits; None if there is none."""
    try:
        return listening.accept()[0]
    except OSError:
        return None


def close(listening: socket.socket) -> None:
    """Listen no more, in all processes that have this socket."""
    with suppress(OSError):  # other systems than Linux refuse this
        listening.shutdown(socket.SHUT_RDWR)
