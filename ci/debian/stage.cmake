# SPDX-License-Identifier: Apache-2.0
# Run by cpack between installing and packing: makes Debian's layout of what `cmake --install` put
# into a folder for each component. Nothing is built anew for a package.
#
#   lib/...                   -> lib/TRIPLET/...; its pkg-config and CMake files say so
#   share/gpurt/python/gpurt  -> lib/python3/dist-packages/gpurt
#   run paths                 removed, but that of libgpurt to its plugins
#   share/doc/PACKAGE         copyright and changelog in place of LICENSE
#   man pages                 compressed
function(gpurt_gzip file)
    execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(gpurt_edit file)
    file(READ ${file} text)
    while(ARGN)
        list(POP_FRONT ARGN old new)
        string(FIND "${text}" "${old}" at)
        if(at LESS 0)
            message(FATAL_ERROR "${file} has no '${old}'")
        endif()
        string(REPLACE "${old}" "${new}" text "${text}")
    endwhile()
    file(WRITE ${file} "${text}")
endfunction()

set(to ${CPACK_GPURT_LIBDIR})
if(to STREQUAL "lib" AND CPACK_GPURT_MULTIARCH)
    set(to lib/${CPACK_GPURT_MULTIARCH})
endif()
string(TIMESTAMP GPURT_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} C)
    set(package ${CPACK_DEBIAN_${C}_PACKAGE_NAME})
    set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})

    file(GLOB libraries RELATIVE ${usr}/lib ${usr}/lib/*)
    if(libraries AND NOT to STREQUAL CPACK_GPURT_LIBDIR)
        foreach(name IN LISTS libraries)
            file(MAKE_DIRECTORY ${usr}/${to})
            file(RENAME ${usr}/lib/${name} ${usr}/${to}/${name})
        endforeach()
        if(component STREQUAL "development")
            gpurt_edit(${usr}/${to}/pkgconfig/gpurt.pc "{pcfiledir}/../.." "{pcfiledir}/../../.."
                "/lib\n" "/${to}\n")
            set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
            gpurt_edit(${usr}/${to}/cmake/gpurt/gpurt-config.cmake "${up}${up}" "${up}${up}${up}")
            file(GLOB configs ${usr}/${to}/cmake/gpurt/gpurt-config-*info.cmake
                ${usr}/${to}/cmake/gpurt/gpurt-config-*release.cmake)
            gpurt_edit(${configs} "{_IMPORT_PREFIX}/lib/" "{_IMPORT_PREFIX}/${to}/")
        endif()
    endif()

    if(EXISTS ${usr}/share/gpurt/python)
        file(MAKE_DIRECTORY ${usr}/lib/python3)
        file(RENAME ${usr}/share/gpurt/python ${usr}/lib/python3/dist-packages)
        file(REMOVE_RECURSE ${usr}/share/gpurt)
    endif()
    foreach(library IN ITEMS ${usr}/${to}/libgpurt.so.${CPACK_PACKAGE_VERSION})
        if(EXISTS ${library})
            # This command is CMake's own for install scripts, and not in its manual.
            file(RPATH_CHANGE FILE ${library} OLD_RPATH "${CPACK_GPURT_RPATH}"
                NEW_RPATH "$ORIGIN/gpurt")
        endif()
    endforeach()
    foreach(program IN ITEMS ${usr}/bin/gpurt ${usr}/${to}/gpurt/libgpurt-mpi.so)
        if(EXISTS ${program})
            file(RPATH_REMOVE FILE ${program})
        endif()
    endforeach()

    file(GLOB pages ${usr}/share/man/man1/*.1)
    foreach(page IN LISTS pages)
        gpurt_gzip(${page})
    endforeach()
    file(REMOVE_RECURSE ${usr}/share/doc)
    configure_file(${CPACK_GPURT_TEXTS}/copyright ${usr}/share/doc/${package}/copyright COPYONLY)
    set(changes ${usr}/share/doc/${package}/changelog.Debian)
    configure_file(${CPACK_GPURT_TEXTS}/changelog.in ${changes} @ONLY)
    gpurt_gzip(${changes})
endforeach()
