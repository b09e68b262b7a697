"""End this process, and all that it starts, at the first request to a network: a filter of Linux's seccomp.

A socket alone is none: urllib3 opens one when it is imported, to see whether there is IPv6.
"""

import ctypes
import platform
import struct
import sys

_REQUESTS = {"x86_64": (42, 44, 46, 307), "aarch64": (203, 206, 211, 269)}
"""The numbers of the system calls `connect`, `sendto`, `sendmsg` and `sendmmsg`, by machine."""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_supported() -> bool:
    """Whether the filter is for this system."""
    return sys.platform == "linux" and platform.machine() in _REQUESTS


def forbid_network() -> None:
    """Install the filter; there is no way back."""
    calls = _REQUESTS[platform.machine()]
    instructions = (
        (_LOAD, 0, 0, 0),  # the number of the call
        *((_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL_PROCESS),
    )
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(instructions), code)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "no filter of system calls")
