# SPDX-License-Identifier: Apache-2.0
# Text file IN as a C array of bytes, ending in 0, in OUT. NAME of the array: grt_opencl if not
# given. Relative paths in the dependency file DEPENDS, if given, are made absolute, below BASE:
# Ninja takes them as below the build folder, finds nothing there, and would build for ever.
if(NOT NAME)
    set(NAME grt_opencl)
endif()
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char ${NAME}[] = {${bytes}0};\n")
if(DEPENDS)
    file(READ ${DEPENDS} text)
    string(REGEX REPLACE "([^\\\\] )([^/ \\\\\n])" "\\1${BASE}/\\2" text "${text}")
    file(WRITE ${DEPENDS} "${text}")
endif()
