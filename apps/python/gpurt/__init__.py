# SPDX-License-Identifier: Apache-2.0
"""gpurt trains on any GPU: Vulkan or OpenCL, whoever made it.

>>> learner = gpurt.Learner(depth=2, hidden=64, epochs=20)  # as `gpurt train supervised --keys`
>>> learner.fit(x, y)                                       # arrays, or the name of a file
>>> learner.predict(x)

:class:`Learner` learns from samples; :class:`ES` and :class:`PPO` learn to act; :class:`Worlds` are
their environments, and :mod:`gpurt.gym` has them for Gymnasium; :func:`load` gives checkpoints as
arrays; :func:`devices` says what there is.
"""

from ._archive import Checkpoint, load, save
from ._device import Device, DeviceInfo, devices
from ._learner import Learner
from ._library import VERSION as __version__
from ._library import ConfigError, DataError, DeviceError, Error, NotFoundError, OutOfMemoryError
from ._trainers import ES, PPO, Policy
from ._worlds import CUT, IDLE, LAST, Worlds

__all__ = [
    "CUT",
    "Checkpoint",
    "ConfigError",
    "DataError",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "ES",
    "Error",
    "IDLE",
    "LAST",
    "Learner",
    "NotFoundError",
    "OutOfMemoryError",
    "PPO",
    "Policy",
    "Worlds",
    "__version__",
    "devices",
    "load",
    "save",
]
