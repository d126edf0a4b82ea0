# SPDX-License-Identifier: Apache-2.0
"""The C library by ctypes: its failures as exceptions, Ctrl-C, and memory that NumPy sees."""

import contextlib
import ctypes
import signal
import threading
from ctypes import c_void_p

from ._find import VERSION, library  # noqa: F401
from ._errors import (
    ConfigError,
    DataError,
    DeviceError,
    Error,
    NotFoundError,
    OutOfMemoryError,
)
from ._structs import *  # noqa: F401,F403
from ._structs import STOP

P = c_void_p
U32 = ctypes.c_uint32

# ---- failures ----

# In the order of GRT_STATUSES.
_ERRORS = [
    Error,
    ConfigError,
    DeviceError,
    DeviceError,
    OutOfMemoryError,
    DeviceError,
    DeviceError,
    Error,
    Error,
    NotFoundError,
    DataError,
    ConfigError,
]


def fail():
    """Raises what the newest failed call of this thread said."""
    status = library.grt_last_status()
    error = _ERRORS[status](library.grt_last_error().decode(errors="replace") or "it failed")
    error.status = library.grt_status_text(status).decode()
    raise error


def check(result):
    """The result, where it is neither false nor NULL."""
    if not result:
        fail()
    return result


# ---- Ctrl-C ----


class Stop:
    """Whether a call is to end: Ctrl-C was pressed."""

    def __init__(self):
        self.asked = False
        self.hook = STOP(lambda: self.asked)


@contextlib.contextmanager
def interruptible(stop=None):
    """Ctrl-C during the calls inside asks them to end, and is a KeyboardInterrupt behind them."""
    stop = stop or Stop()
    stop.asked = False
    before = signal.getsignal(signal.SIGINT)

    def ask(number, frame):
        stop.asked = True

    # Only the main thread of Python is told of signals.
    ours = threading.current_thread() is threading.main_thread() and before is not None
    if ours:
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)
    if stop.asked:
        raise KeyboardInterrupt


# Errors are exceptions here; warnings go where those of the command go.
library.grt_log_set(ctypes.cast(library.grt_log_no_errors, P), None, 1)


class Owner:
    """Something of the library that ends with the object, unless it has been closed before."""

    _destroy = None  # name of the call

    def __init__(self, pointer):
        self._pointer = pointer

    @property
    def pointer(self):
        if not self._pointer:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer

    @property
    def _as_parameter_(self):
        """Lets calls take the object itself, which then lives until they return."""
        return c_void_p(ctypes.cast(self.pointer, c_void_p).value)

    def close(self):
        """Ends it, and frees its memory."""
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer:
            at = c_void_p(ctypes.cast(pointer, c_void_p).value)
            getattr(library, self._destroy)(ctypes.byref(at))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        self.close()


class Memory:
    """Numbers of the library as NumPy sees them, without a copy. `owner` lives as long as they
    do."""

    def __init__(self, owner, address, shape, dtype, writable=True):
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(shape),
            "typestr": dtype,
            "data": (address, not writable),
        }
