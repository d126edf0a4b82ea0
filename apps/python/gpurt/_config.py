# SPDX-License-Identifier: Apache-2.0
"""Configs: keys as `gpurt train KIND --keys` lists them."""

import ctypes
import json
import os
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import _library as c

SUPERVISED, PPO, CLASSIFY = 1, 4, 9  # enum grt_config_scope
_TEXT = 8192


def text_of(value: Any) -> str:
    """A value as YAML has it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (list, tuple)) and not any(
        isinstance(v, (list, tuple, Mapping)) for v in value
    ):
        return ",".join(text_of(v) for v in value)
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(value)
    return str(value)


class Config(c.Owner):
    """A config of the library: a file, and keys above it."""

    _destroy = "grt_config_destroy"

    def __init__(
        self,
        scope: int,
        source: Union[None, str, "os.PathLike[str]", Mapping[str, Any]] = None,
        keys: Optional[Mapping[str, Any]] = None,
    ):
        super().__init__(c.check(c.library.grt_config_create(scope)))
        self.scope = scope
        if isinstance(source, Mapping):
            self.set(**source)
        elif source is not None:
            c.check(c.library.grt_config_read(self.pointer, os.fspath(source).encode()))
        self.set(**(keys or {}))

    def set(self, **keys: Any) -> None:
        for key, value in keys.items():
            if value is not None:
                c.check(
                    c.library.grt_config_override(self.pointer, f"{key}={text_of(value)}".encode())
                )

    def __getitem__(self, key: str) -> str:
        """The value of a key as a text."""
        number = c.library.grt_config_key_find(self.scope, key.encode())
        room = ctypes.create_string_buffer(_TEXT)
        c.library.grt_config_value_text(self.pointer, number, room, _TEXT)
        text = room.value.decode()
        return json.loads(text) if text.startswith('"') else text

    def given(self, key: str) -> bool:
        return c.library.grt_config_given(
            self.pointer, c.library.grt_config_key_find(self.scope, key.encode())
        )
