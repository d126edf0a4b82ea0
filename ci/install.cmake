# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the targets `uninstall` and `bundle`. Components are the
# packages of ci/debian/packages.cmake; without --component all of them are installed.
include(CMakePackageConfigHelpers)

install(TARGETS gpurt_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS gpurt EXPORT gpurt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT library NAMELINK_COMPONENT development)
if(TARGET gpurt_mpi)
    install(TARGETS gpurt_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpurt COMPONENT mpi)
endif()
install(DIRECTORY runtime/gpurt/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpurt
    COMPONENT development)
install(DIRECTORY runtime/tuning/profiles/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gpurt/profiles
    COMPONENT program FILES_MATCHING PATTERN *.profile)
# The Python package, for PYTHONPATH; ci/bundle.sh and apps/python/wheel.py make a wheel of it.
install(DIRECTORY apps/python/gpurt DESTINATION ${CMAKE_INSTALL_DATADIR}/gpurt/python
    COMPONENT python PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gpurt COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/gpurt.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES apps/completions/gpurt.bash RENAME gpurt COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES apps/completions/gpurt.zsh RENAME _gpurt COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES apps/completions/gpurt.fish COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# pkg-config: the prefix is found from the file's own place, so an installed tree can be moved.
string(REGEX REPLACE "[^/]+" ".." up ${CMAKE_INSTALL_LIBDIR})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gpurt.pc @ONLY CONTENT
"prefix=\${pcfiledir}/../@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: gpurt
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -lgpurt
")
install(FILES ${PROJECT_BINARY_DIR}/gpurt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)

# CMake: find_package(gpurt) gives gpurt::gpurt.
set(GPURT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gpurt)
install(EXPORT gpurt NAMESPACE gpurt:: FILE gpurt-config.cmake DESTINATION ${GPURT_PACKAGE_DIR}
    COMPONENT development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpurt-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpurt-config-version.cmake DESTINATION ${GPURT_PACKAGE_DIR}
    COMPONENT development)

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND}
    -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/ci/uninstall.cmake)
add_custom_target(bundle COMMAND ${PROJECT_SOURCE_DIR}/ci/bundle.sh
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL
    COMMENT "One archive that runs on any newer Linux with a driver")
include(ci/debian/packages.cmake)
