# SPDX-License-Identifier: Apache-2.0
"""Messages of protocol buffers, read by the numbers of their fields."""
import struct


def fields(blob):
    """(number, value) of each field of a message: whole numbers, doubles and floats, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = blob[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(blob):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
            value -= (value >> 63) << 64
        elif kind == 2:
            size = varint()
            assert at + size <= len(blob), "a field behind the end"
            value, at = blob[at:at + size], at + size
        else:
            assert kind in (1, 5), f"type {kind}"
            form, size = ("<d", 8) if kind == 1 else ("<f", 4)
            value, at = struct.unpack(form, blob[at:at + size])[0], at + size
        yield key >> 3, value
    assert at == len(blob)
