# SPDX-License-Identifier: Apache-2.0
"""What failed calls raise."""


class Error(Exception):
    """A call of gpurt failed. Its text is gpurt's own sentence; ``status`` is a word such as
    ``"bad configuration"``."""

    status = "failed"


class ConfigError(Error, ValueError):
    """A key, a value or an argument is not what gpurt takes."""


class DataError(Error, ValueError):
    """A file is not what it should be, or is damaged."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such file."""

    def __str__(self):
        return str(self.args[0])


class DeviceError(Error):
    """There is no such device, or it fails."""


class OutOfMemoryError(Error, MemoryError):
    """It does not fit into the memory of the device or the host."""
