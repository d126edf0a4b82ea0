# SPDX-License-Identifier: Apache-2.0
# Builds every row of kernels.h in the readings it has. For X(all, folder, name):
#
#     folder/name.k --glslang--> name.spv.h --.
#     folder/name.k --cc -E----> name.cl.h ---+-- name.c --cc--> description, C reading, both texts
#
# A kernel of an environment is made of several files, read one behind the other.
#
# Each step writes a dependency file, so touching a shared header rebuilds what includes it.
#
# GPURT_KERNELS names the folder kernels of another build tree: its texts are taken, which no option
# of the C compiler changes. That tree must be built first.

# A text as the array `array` of the header `header`.
function(gpurt_embed text header array)
    set(script ${PROJECT_SOURCE_DIR}/shaders/embed.cmake)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${text})
    add_custom_command(OUTPUT ${header}
        COMMAND ${CMAKE_COMMAND} -DIN=${text} -DOUT=${header} -DNAME=${array} -P ${script}
        DEPENDS ${text} ${script} ${PROJECT_SOURCE_DIR}/shaders/literal.cmake
        COMMENT "Text ${name}" VERBATIM)
endfunction()

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

# Lines that include files.
function(gpurt_includes files text)
    list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN files "" files)
    set(${text} "${files}" PARENT_SCOPE)
endfunction()

set(GPURT_KERNELS "" CACHE PATH "folder with the texts of kernels; empty: they are made")

# The GLSL reading: out/name.spv.h with the array grt_spirv_<name>.
function(gpurt_glsl_reading files name out environment readings)
    if(GPURT_KERNELS)
        return()
    endif()
    set(finish)
    if(readings STREQUAL bfloat)
        set(finish COMMAND ${CMAKE_COMMAND} -DFILE=${out}/${name}.spv.h -P ${shaders}/bfloat.cmake)
    endif()
    gpurt_includes("dialect.h;${files}" includes)
    file(CONFIGURE OUTPUT ${out}/${name}.comp @ONLY CONTENT
        "#version 460\n#extension GL_GOOGLE_include_directive : require\n@includes@")
    add_custom_command(OUTPUT ${out}/${name}.spv.h
        COMMAND ${GPURT_GLSLANG} --quiet -V --target-env ${environment} -I${shaders}
            --vn grt_spirv_${name} --depfile ${out}/${name}.spv.d -o ${out}/${name}.spv.h
            ${out}/${name}.comp
        ${finish}
        DEPENDS ${out}/${name}.comp ${shaders}/dialect.h ${shaders}/bfloat.cmake
        DEPFILE ${out}/${name}.spv.d
        COMMENT "SPIR-V ${name}" VERBATIM)
endfunction()

# The OpenCL reading: out/name.cl.h with the text as grt_opencl.
function(gpurt_opencl_reading files name out)
    if(GPURT_KERNELS)
        return()
    endif()
    gpurt_includes("../cl/dialect.h;${files}" includes)
    file(CONFIGURE OUTPUT ${out}/${name}.cl.k @ONLY CONTENT "@includes@")
    add_custom_command(OUTPUT ${out}/${name}.cl.h
        COMMAND ${CMAKE_C_COMPILER} -E -undef -nostdinc -x c -I. -I../cl -MD -MF ${out}/${name}.cl.d
            -MT ${out}/${name}.cl.h -o ${out}/${name}.cl ${out}/${name}.cl.k
        COMMAND ${CMAKE_COMMAND} -DIN=${out}/${name}.cl -DOUT=${out}/${name}.cl.h
            -DDEPFILE=${out}/${name}.cl.d -DFOLDER=${shaders} -P ${shaders}/embed.cmake
        DEPENDS ${out}/${name}.cl.k ${PROJECT_SOURCE_DIR}/cl/dialect.h ${shaders}/embed.cmake
            ${shaders}/literal.cmake
        BYPRODUCTS ${out}/${name}.cl
        DEPFILE ${out}/${name}.cl.d WORKING_DIRECTORY ${shaders}
        COMMENT "OpenCL ${name}" VERBATIM)
endfunction()

# What a C file of kernels is compiled with. GCC's last scheduling takes 14 of the 18 s of a rollout
# and makes it no quicker.
set(GPURT_C_READING -Wno-shadow -Wno-unused-parameter
    $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns2>)

# Where the time of a suite under sanitizers goes: these kernels are optimised. The others run for
# less time there than compiling them so takes.
set(GPURT_BUSY_KERNELS "^((batch_sums|block|block_sums|cross_entropy|loss|patches|ppo_loss)_f32|image_.*|\
fill|gemm_lanes_.*|grad_norm|map|nt_xent|optim|pendulum_rollout|ppo_sums|random|reduce|standing_.*)$")

# A C file of kernels or of a description: lines before the dialect, then files of the dialect.
function(gpurt_c_reading target files name out code)
    gpurt_includes("backends/ref/dialect.h;${files}" includes)
    file(CONFIGURE OUTPUT ${out}/${name}.c @ONLY CONTENT "@code@@includes@")
    target_sources(${target} PRIVATE ${out}/${name}.c)
    set(options ${GPURT_C_READING})
    if(GPURT_SANITIZE AND name MATCHES "${GPURT_BUSY_KERNELS}")
        list(APPEND options -O1)
    endif()
    set_source_files_properties(${out}/${name}.c PROPERTIES
        INCLUDE_DIRECTORIES "${shaders};${PROJECT_SOURCE_DIR}/cl;${texts}"
        COMPILE_OPTIONS "${options}")
endfunction()

# One kernel, of the files in the readings it has.
function(gpurt_add_kernel target readings files name)
    # A kernel in PTX is OpenCL text that Vulkan may import.
    set(imports false)
    if(readings STREQUAL ptx)
        set(readings opencl)
        set(imports true)
    endif()
    # The C reading, and what the description says of the other two.
    set(code "#include <stdint.h>\n#define GRT_IMPORTS ${imports}\n")
    if(readings STREQUAL all OR (readings MATCHES "vulkan|bfloat" AND GPURT_COOPMAT))
        set(environment vulkan1.3)
        if(readings STREQUAL all)
            set(environment vulkan1.1)
        endif()
        gpurt_glsl_reading("${files}" ${name} ${out} ${environment} ${readings})
        target_sources(${target} PRIVATE ${texts}/${name}.spv.h)
        string(APPEND code "#include \"${name}.spv.h\"\n#define GRT_SPIRV grt_spirv_${name}\n"
            "#define GRT_SPIRV_SIZE sizeof grt_spirv_${name}\n")
    else()
        string(APPEND code "#define GRT_SPIRV NULL\n#define GRT_SPIRV_SIZE 0\n")
    endif()
    if(readings STREQUAL all OR readings STREQUAL opencl)
        gpurt_opencl_reading("${files}" ${name} ${out})
        target_sources(${target} PRIVATE ${texts}/${name}.cl.h)
        string(APPEND code "#include \"${name}.cl.h\"\n#define GRT_OPENCL grt_opencl\n")
    else()
        string(APPEND code "#define GRT_OPENCL NULL\n")
    endif()
    gpurt_c_reading(${target} "${files}" ${name} ${out} "${code}")
endfunction()

function(gpurt_add_kernels target)
    set(shaders ${PROJECT_SOURCE_DIR}/shaders)
    set(out ${PROJECT_BINARY_DIR}/kernels)
    set(texts ${out})
    if(GPURT_KERNELS)
        set(texts ${GPURT_KERNELS})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shaders}/kernels.h)
    file(READ ${shaders}/kernels.h list)
    string(REGEX MATCHALL "\n +X\\([a-z]+, [a-z0-9_]+, [a-z0-9_]+\\)" kernels "${list}")
    string(REGEX MATCHALL "(\n|\\)) +X\\([a-z]+, [a-z0-9_]+, (env|world|memory), [a-z0-9_]+\\)" users "${list}")
    string(REGEX MATCHALL "\n +X\\((registers|memory), [a-z0-9_]+\\)" envs "${list}")
    foreach(row IN LISTS kernels)
        string(REGEX MATCH "X\\(([a-z]+), ([a-z0-9_]+), ([a-z0-9_]+)\\)" unused "${row}")
        set(readings ${CMAKE_MATCH_1})
        set(name ${CMAKE_MATCH_3})
        set(file ${CMAKE_MATCH_2}/${name}.k)
        if(readings STREQUAL opencl OR readings STREQUAL ptx)
            set(file ../cl/${file})
        endif()
        gpurt_add_kernel(${target} ${readings} ${file} ${name})
    endforeach()
    foreach(env IN LISTS envs)
        string(REGEX MATCH "X\\(([a-z]+), ([a-z0-9_]+)\\)" unused "${env}")
        set(kind ${CMAKE_MATCH_1})
        set(env ${CMAKE_MATCH_2})
        gpurt_c_reading(${target} "env/${env}.k;env/info.k" env_${env} ${out} "#include \"gpurt/env.h\"\n")
        foreach(row IN LISTS users)
            string(REGEX MATCH "X\\(([a-z]+), ([a-z0-9_]+), ([a-z]+), ([a-z0-9_]+)\\)" unused "${row}")
            set(readings ${CMAKE_MATCH_1})
            set(user ${CMAKE_MATCH_4})
            set(files env/${env}.k ${CMAKE_MATCH_2}/${user}.k)
            if((kind STREQUAL "memory" AND CMAKE_MATCH_3 STREQUAL "env") OR
                (kind STREQUAL "registers" AND CMAKE_MATCH_3 STREQUAL "memory"))
                continue()
            endif()
            if(readings STREQUAL wide)
                set(readings opencl)
                list(PREPEND files cpu/lib/wide.k)
            endif()
            gpurt_add_kernel(${target} ${readings} "${files}" ${env}_${user})
        endforeach()
    endforeach()
    # What is compiled at run time includes these.
    file(GLOB embedded CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${shaders}/*.h ${shaders}/lib/*.k
        ${shaders}/env/*.k ${shaders}/rl/*.k ${shaders}/es/noise.k ${shaders}/es/words.k
        ${PROJECT_SOURCE_DIR}/cl/dialect.h ${PROJECT_SOURCE_DIR}/cl/cpu/lib/wide.k
        ${PROJECT_SOURCE_DIR}/cl/cpu/rollout_wide.k ${PROJECT_SOURCE_DIR}/backends/kernel_info.h
        ${PROJECT_SOURCE_DIR}/backends/ref/dialect.h ${PROJECT_SOURCE_DIR}/backends/ref/ref_lane.h)
    list(TRANSFORM embedded PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE depends)
    list(JOIN embedded ":" joined)
    add_custom_command(OUTPUT ${out}/embedded.c
        COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFILES=${joined} -DOUT=${out}/embedded.c
            -P ${shaders}/embed_tree.cmake
        DEPENDS ${depends} ${shaders}/embed_tree.cmake ${shaders}/literal.cmake
        COMMENT "Sources for run time" VERBATIM)
    target_sources(${target} PRIVATE ${out}/embedded.c)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/runtime/source/compile.c PROPERTIES
        COMPILE_DEFINITIONS "GPURT_GLSLANG=\"${GPURT_GLSLANG}\"")
    target_sources(${target} PRIVATE ${shaders}/kernels.c)
    target_compile_definitions(${target} PRIVATE GPURT_COOPMAT=${GPURT_COOPMAT})
endfunction()
