# SPDX-License-Identifier: Apache-2.0
# Text file IN as a C array of bytes, ending in 0, in OUT. NAME of the array: grt_opencl if not
# given. In the depfile DEPFILE, where there is one, names that begin at FOLDER become whole paths:
# the build looks for them elsewhere, and one that it does not find is always out of date.
if(NOT NAME)
    set(NAME grt_opencl)
endif()
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "static const unsigned char ${NAME}[] = {${bytes}0};\n")
if(DEPFILE)
    file(READ ${DEPFILE} names)
    string(REGEX REPLACE "([ \n])([A-Za-z0-9_.][^ \n]*)" "\\1${FOLDER}/\\2" names "${names}")
    file(WRITE ${DEPFILE} "${names}")
endif()
