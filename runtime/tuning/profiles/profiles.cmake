# SPDX-License-Identifier: Apache-2.0
# Embeds every file of this folder: NAME.profile --> NAME.h, and a source with the table of them.
function(gpurt_add_profiles target)
    set(folder ${PROJECT_SOURCE_DIR}/runtime/tuning/profiles)
    set(out ${PROJECT_BINARY_DIR}/profiles)
    file(GLOB profiles CONFIGURE_DEPENDS ${folder}/*.profile)
    if(NOT profiles)
        message(FATAL_ERROR "no profiles in ${folder}")
    endif()
    set(includes "")
    set(rows "")
    foreach(profile IN LISTS profiles)
        get_filename_component(name ${profile} NAME_WE)
        string(MAKE_C_IDENTIFIER profile_${name} array)
        gpurt_embed(${profile} ${out}/${name}.h ${array})
        target_sources(${target} PRIVATE ${out}/${name}.h)
        string(APPEND includes "#include \"${name}.h\"\n")
        string(APPEND rows "    {\"${name}\", (const char *)${array}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${out}/profiles.c @ONLY CONTENT
"#include \"tuning/profile_file.h\"
@includes@
const struct profile_text profile_texts[] = {
@rows@    {NULL, NULL},
};
")
    target_sources(${target} PRIVATE ${out}/profiles.c)
    set_source_files_properties(${out}/profiles.c PROPERTIES INCLUDE_DIRECTORIES ${out})
endfunction()
