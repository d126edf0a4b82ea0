# SPDX-License-Identifier: Apache-2.0
# Text file IN as a C array of bytes, ending in 0, in OUT. NAME of the array: grt_opencl if not
# given.
if(NOT NAME)
    set(NAME grt_opencl)
endif()
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char ${NAME}[] = {${bytes}0};\n")
