# SPDX-License-Identifier: Apache-2.0
# Makes bfloat16 of the 16-bit float type of a SPIR-V module, FILE, an array of words in C: glslang
# knows GL_EXT_bfloat16 only from 15.3 on. In a kernel whose half is nothing but the elements of
# cooperative matrices the two modules differ in three places:
#
#     OpCapability Float16     ->  OpCapability BFloat16TypeKHR, BFloat16CooperativeMatrixKHR
#     the first OpExtension    ->  OpExtension "SPV_KHR_bfloat16" before it
#     OpTypeFloat id 16        ->  OpTypeFloat id 16 BFloat16KHR
file(READ ${FILE} text)
string(REGEX MATCH "{([^}]*)}" unused "${text}")
string(REGEX REPLACE "[ \t\n]" "" words "${CMAKE_MATCH_1}")
string(TOLOWER "${words}" words)

function(exchange pattern by)
    string(REGEX MATCHALL "${pattern}" found "${words}")
    list(LENGTH found count)
    if(NOT count EQUAL 1)
        message(FATAL_ERROR "${FILE}: ${pattern} is there ${count} times")
    endif()
    string(REGEX REPLACE "${pattern}" "${by}" words "${words}")
    set(words "${words}" PARENT_SCOPE)
endfunction()
exchange("0x00020011,0x00000009," "0x00020011,0x000013fc,0x00020011,0x000013fe,")
exchange("0x0008000a,0x5f565053,0x5f52484b,0x706f6f63,"
    "0x0006000a,0x5f565053,0x5f52484b,0x6f6c6662,0x36317461,0x00000000,0x0008000a,0x5f565053,0x5f52484b,0x706f6f63,")
exchange("0x00030016,(0x[0-9a-f]+),0x00000010," "0x00040016,\\1,0x00000010,0x00000000,")
string(REGEX REPLACE "(0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,)" "\\1\n" words "${words}")
string(REGEX REPLACE "{[^}]*}" "{\n${words}\n}" text "${text}")
file(WRITE ${FILE} "${text}")
