# SPDX-License-Identifier: Apache-2.0
"""Devices."""

import ctypes
import dataclasses
from typing import List, Optional, Union

from . import _library as c


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """What is known of a device without opening it."""

    selector: str
    """``"vulkan:0"``: how it is chosen."""
    name: str
    vendor: str
    driver: str
    gpu: bool
    """False: a driver that runs on the CPU."""
    memory: int
    """Bytes of device memory; 0: not known."""


def _info(info) -> DeviceInfo:
    driver = (info.driver + b" " + info.driver_version).strip()
    return DeviceInfo(
        info.selector.decode(),
        info.name.decode(errors="replace"),
        info.vendor.decode(errors="replace"),
        driver.decode(errors="replace"),
        not info.caps.software,
        info.caps.memory,
    )


def devices() -> List[DeviceInfo]:
    """Every device of this machine: Vulkan's, OpenCL's, and ``ref``, plain C."""
    found = c.check(c.library.grt_dev_list_create())
    try:
        return [_info(found.contents.devices[i]) for i in range(found.contents.count)]
    finally:
        c.library.grt_dev_list_destroy(ctypes.byref(found))


class Device(c.Owner):
    """An open device.

    ``choose`` is a selector such as ``"vulkan:0"``, ``"gpu"``, ``"cpu"`` or a part of a name.
    Without it the best device is taken, or what ``$GPURT_DEVICE`` names.
    """

    _destroy = "grt_dev_destroy"

    def __init__(self, choose: Optional[str] = None, *, require_gpu: bool = False):
        desc = c.dev_desc(device=choose.encode() if choose else None, require_gpu=require_gpu)
        super().__init__(c.check(c.library.grt_dev_create(ctypes.byref(desc))))

    @property
    def info(self) -> DeviceInfo:
        return _info(c.library.grt_dev_info(self.pointer).contents)

    def __repr__(self):
        return f"Device({self.info.selector!r})" if self._pointer else "Device(closed)"


_open = {}


def device_of(choose: Union[None, str, Device]) -> Device:
    """The device that an argument means. One that was opened by its name stays open for the
    next."""
    if isinstance(choose, Device):
        return choose
    if choose not in _open or not _open[choose]._pointer:
        _open[choose] = Device(choose)
    return _open[choose]
