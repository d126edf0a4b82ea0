#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes runtime/base/width_ranges.h: characters that take no column of a terminal, and those that take two.

    ci/width_ranges.py > runtime/base/width_ranges.h     (Python's unicodedata is Unicode's data files)

None: combining marks (Mn, Me), formats (Cf) that show nothing, and the vowels and finals of Hangul that join the consonant
before them. Two: East Asian wide and full width, and what stands between such and is drawn like them: circled numbers and
hexagrams. Ranges run on over a few characters that are not assigned: Unicode fills gaps of a block with its like.
"""
import unicodedata

SHOWN_FORMATS = {0xad, *range(0x600, 0x606), 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}
GAP = 16  # longest that a range runs over


def width(c):
    category = unicodedata.category(chr(c))
    if category in ("Mn", "Me") or (category == "Cf" and c not in SHOWN_FORMATS):
        return 0
    if 0x1160 <= c <= 0x11ff or 0xd7b0 <= c <= 0xd7ff:
        return 0
    if 0x3248 <= c <= 0x324f or 0x4dc0 <= c <= 0x4dff or 0x20000 <= c <= 0x3fffd:
        return 2
    return 2 if unicodedata.east_asian_width(chr(c)) in "WF" else 1


def ranges(wanted):
    found = []
    joined = False  # nothing but characters that are not assigned since the last one found
    for c in range(0x300, 0xe01f0):
        known = unicodedata.category(chr(c)) != "Cn" or 0x20000 <= c <= 0x3fffd
        if known and width(c) == wanted:
            if joined and c - found[-1][1] <= GAP:
                found[-1][1] = c
            else:
                found.append([c, c])
            joined = True
        elif known:
            joined = False
    return found


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by ci/width_ranges.py from Unicode {unicodedata.unidata_version}.")
    print("#ifndef GRT_WIDTH_RANGES_H\n#define GRT_WIDTH_RANGES_H\n")
    print("#include <stdint.h>\n\nstruct width_range {\n    uint32_t first, last;\n};\n\n// clang-format off")
    for name, wanted in ("none", 0), ("two", 2):
        print(f"static const struct width_range width_{name}[] = {{")
        rows = [f"{{0x{a:x}, 0x{b:x}}}," for a, b in ranges(wanted)]
        for i in range(0, len(rows), 4):
            print("    " + " ".join(rows[i:i + 4]))
        print("};")
    print("// clang-format on\n\n#endif")


main()
