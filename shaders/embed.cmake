# SPDX-License-Identifier: Apache-2.0
# Text file IN as a C array of bytes, ending in 0, in OUT.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char grt_opencl[] = {${bytes}0};\n")
