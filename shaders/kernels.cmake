# SPDX-License-Identifier: Apache-2.0
# Builds every row of kernels.h in the readings it has. For X(all, folder, name):
#
#     folder/name.k --glslang--> name.spv.h --.
#     folder/name.k --cc -E----> name.cl.h ---+-- name.c --cc--> description, C reading, both texts
#
# Each step writes a dependency file, so touching a shared header rebuilds what includes it.

# A compiler that knows cooperative matrices, if there is one, else any.
if(NOT GPURT_GLSLANG)
    find_program(GPURT_GLSLANG_FOUND NAMES glslang glslangValidator REQUIRED
        HINTS ${PROJECT_SOURCE_DIR}/build/tools/glslang/bin)
    set(GPURT_GLSLANG ${GPURT_GLSLANG_FOUND})
endif()
file(WRITE ${PROJECT_BINARY_DIR}/kernels/probe.comp
    "#version 460\n#extension GL_KHR_cooperative_matrix : require\n"
    "#extension GL_NV_cooperative_matrix2 : require\nvoid main() {}\n")
execute_process(COMMAND ${GPURT_GLSLANG} -V --target-env vulkan1.3 -S comp
    -o ${PROJECT_BINARY_DIR}/kernels/probe.spv ${PROJECT_BINARY_DIR}/kernels/probe.comp
    RESULT_VARIABLE GPURT_COOPMAT_MISSING OUTPUT_QUIET ERROR_QUIET)
if(GPURT_COOPMAT_MISSING)
    set(GPURT_COOPMAT 0)
    message(STATUS "glslang: ${GPURT_GLSLANG}, without cooperative-matrix kernels")
else()
    set(GPURT_COOPMAT 1)
    message(STATUS "glslang: ${GPURT_GLSLANG}, with cooperative-matrix kernels")
endif()

# The GLSL reading: out/name.spv.h with the array grt_spirv_<name>.
function(gpurt_glsl_reading file name out environment readings)
    set(finish)
    if(readings STREQUAL bfloat)
        set(finish COMMAND ${CMAKE_COMMAND} -DFILE=${out}/${name}.spv.h -P ${shaders}/bfloat.cmake)
    endif()
    file(CONFIGURE OUTPUT ${out}/${name}.comp CONTENT
"#version 460
#extension GL_GOOGLE_include_directive : require
#include \"dialect.h\"
#include \"${file}\"
")
    add_custom_command(OUTPUT ${out}/${name}.spv.h
        COMMAND ${GPURT_GLSLANG} --quiet -V --target-env ${environment} -I${shaders}
            --vn grt_spirv_${name} --depfile ${out}/${name}.spv.d -o ${out}/${name}.spv.h
            ${out}/${name}.comp
        ${finish}
        DEPENDS ${out}/${name}.comp ${shaders}/dialect.h ${shaders}/bfloat.cmake
        DEPFILE ${out}/${name}.spv.d
        COMMENT "SPIR-V ${file}" VERBATIM)
endfunction()

# The OpenCL reading: out/name.cl.h with the text as grt_opencl.
function(gpurt_opencl_reading file name out)
    add_custom_command(OUTPUT ${out}/${name}.cl.h
        COMMAND ${CMAKE_C_COMPILER} -E -undef -nostdinc -x c -I. -I../cl -MD -MF ${out}/${name}.cl.d
            -MT ${out}/${name}.cl.h -include ../cl/dialect.h -o ${out}/${name}.cl ${file}
        COMMAND ${CMAKE_COMMAND} -DIN=${out}/${name}.cl -DOUT=${out}/${name}.cl.h
            -P ${shaders}/embed.cmake
        DEPENDS ${shaders}/${file} ${PROJECT_SOURCE_DIR}/cl/dialect.h ${shaders}/embed.cmake
        BYPRODUCTS ${out}/${name}.cl
        DEPFILE ${out}/${name}.cl.d WORKING_DIRECTORY ${shaders}
        COMMENT "OpenCL ${file}" VERBATIM)
endfunction()

function(gpurt_add_kernels target)
    set(shaders ${PROJECT_SOURCE_DIR}/shaders)
    set(out ${PROJECT_BINARY_DIR}/kernels)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shaders}/kernels.h)
    file(READ ${shaders}/kernels.h list)
    string(REGEX MATCHALL "\n +X\\([a-z0-9_, ]+\\)" rows "${list}")
    foreach(row IN LISTS rows)
        string(REGEX MATCH "X\\(([a-z]+), *([a-z0-9_]+), *([a-z0-9_]+)\\)" unused "${row}")
        set(readings ${CMAKE_MATCH_1})
        set(name ${CMAKE_MATCH_3})
        set(file ${CMAKE_MATCH_2}/${name}.k)
        # A kernel in PTX is OpenCL text that Vulkan may import.
        set(imports false)
        if(readings STREQUAL ptx)
            set(readings opencl)
            set(imports true)
        endif()
        if(readings STREQUAL opencl)
            set(file ../cl/${file})
        endif()
        # The C reading, and what the description says of the other two.
        set(code "#include <stdint.h>\n#define GRT_IMPORTS ${imports}\n")
        if(readings STREQUAL all OR (readings MATCHES "vulkan|bfloat" AND GPURT_COOPMAT))
            set(environment vulkan1.3)
            if(readings STREQUAL all)
                set(environment vulkan1.1)
            endif()
            gpurt_glsl_reading(${file} ${name} ${out} ${environment} ${readings})
            target_sources(${target} PRIVATE ${out}/${name}.spv.h)
            string(APPEND code "#include \"${name}.spv.h\"\n#define GRT_SPIRV grt_spirv_${name}\n"
                "#define GRT_SPIRV_SIZE sizeof grt_spirv_${name}\n")
        else()
            string(APPEND code "#define GRT_SPIRV NULL\n#define GRT_SPIRV_SIZE 0\n")
        endif()
        if(readings STREQUAL all OR readings STREQUAL opencl)
            gpurt_opencl_reading(${file} ${name} ${out})
            target_sources(${target} PRIVATE ${out}/${name}.cl.h)
            string(APPEND code "#include \"${name}.cl.h\"\n#define GRT_OPENCL grt_opencl\n")
        else()
            string(APPEND code "#define GRT_OPENCL NULL\n")
        endif()
        file(CONFIGURE OUTPUT ${out}/${name}.c @ONLY CONTENT
            "@code@#include \"backends/ref/dialect.h\"\n#include \"@file@\"\n")
        target_sources(${target} PRIVATE ${out}/${name}.c)
        set_source_files_properties(${out}/${name}.c PROPERTIES
            INCLUDE_DIRECTORIES "${shaders};${PROJECT_SOURCE_DIR}/cl;${out}"
            COMPILE_OPTIONS "-Wno-shadow;-Wno-unused-parameter")
    endforeach()
    target_sources(${target} PRIVATE ${shaders}/kernels.c)
    target_compile_definitions(${target} PRIVATE GPURT_COOPMAT=${GPURT_COOPMAT})
endfunction()
