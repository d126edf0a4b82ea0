# SPDX-License-Identifier: Apache-2.0
# The table of embedded.h in OUT, from FILES of the folder ROOT, separated by colons.
string(REPLACE ":" ";" FILES "${FILES}")
set(code "#include \"shaders/embedded.h\"\n\n#include <stddef.h>\n\n")
set(rows "")
set(i 0)
foreach(file IN LISTS FILES)
    file(READ ${ROOT}/${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND code "static const unsigned char text_${i}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${file}\", (const char *)text_${i}},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "${code}\nconst struct grt_embedded grt_embedded[] = {\n${rows}    {NULL, NULL},\n};\n")
