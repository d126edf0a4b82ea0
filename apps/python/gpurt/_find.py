# SPDX-License-Identifier: Apache-2.0
"""Where libgpurt is."""

import contextlib
import ctypes
import importlib
import os
import pathlib

VERSION = "0.1.0"  # of the library that this package is for


def _open():
    """$GPURT_LIBRARY, else the one in the package, else what the system's loader finds."""
    given = os.environ.get("GPURT_LIBRARY")
    own = pathlib.Path(__file__).parent / "lib" / "libgpurt.so.0"
    path = given or (str(own) if own.exists() else "libgpurt.so.0")
    if path == str(own):
        # HDF5 needs libssl and zlib, and so do modules of Python, whose own may be newer: those
        # are to be loaded first.
        for module in ("ssl", "zlib"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
    try:
        found = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(
            f"libgpurt is not here: {why}. Install gpurt, or name the library in $GPURT_LIBRARY"
        ) from None
    found.grt_version.restype = ctypes.c_char_p
    version = found.grt_version().decode()
    if version != VERSION:
        raise ImportError(f"{path} is gpurt {version}, and this package is for {VERSION}")
    return found


library = _open()
