# SPDX-License-Identifier: Apache-2.0
# Text file IN as a C array of bytes, ending in 0, in OUT. NAME of the array: grt_opencl if not
# given. In the depfile DEPFILE, where there is one, names that begin at FOLDER become whole paths:
# the build looks for them elsewhere, and one that it does not find is always out of date.
include(${CMAKE_CURRENT_LIST_DIR}/literal.cmake)
if(NOT NAME)
    set(NAME grt_opencl)
endif()
gpurt_literal(${IN} literal)
file(WRITE ${OUT} "static const unsigned char ${NAME}[] =\n${literal};\n")
if(DEPFILE)
    file(READ ${DEPFILE} names)
    string(REGEX REPLACE "([ \n])([A-Za-z0-9_.][^ \n]*)" "\\1${FOLDER}/\\2" names "${names}")
    file(WRITE ${DEPFILE} "${names}")
endif()
