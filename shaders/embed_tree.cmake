# SPDX-License-Identifier: Apache-2.0
# The table of embedded.h in OUT, from FILES of the folder ROOT, separated by colons.
include(${CMAKE_CURRENT_LIST_DIR}/literal.cmake)
string(REPLACE ":" ";" FILES "${FILES}")
set(code "#include \"shaders/embedded.h\"\n\n#include <stddef.h>\n\n")
set(rows "")
set(i 0)
foreach(file IN LISTS FILES)
    gpurt_literal(${ROOT}/${file} literal)
    string(APPEND code "static const unsigned char text_${i}[] =\n${literal};\n")
    string(APPEND rows "    {\"${file}\", (const char *)text_${i}},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "${code}\nconst struct grt_embedded grt_embedded[] = {\n${rows}    {NULL, NULL},\n};\n")
