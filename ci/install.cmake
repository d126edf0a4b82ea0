# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the targets `uninstall` and `bundle`.
include(CMakePackageConfigHelpers)

install(TARGETS gpurt gpurt_command EXPORT gpurt
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY runtime/gpurt/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpurt)
install(DIRECTORY runtime/tuning/profiles/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gpurt/profiles
    FILES_MATCHING PATTERN *.profile)
# The Python package, for PYTHONPATH; ci/bundle.sh and apps/python/wheel.py make a wheel of it.
install(DIRECTORY apps/python/gpurt DESTINATION ${CMAKE_INSTALL_DATADIR}/gpurt/python
    PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gpurt)
install(FILES apps/gpurt.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES apps/gpurt.bash RENAME gpurt
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

# pkg-config: the prefix is found from the file's own place, so an installed tree can be moved.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gpurt.pc @ONLY CONTENT
"prefix=\${pcfiledir}/../..
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: gpurt
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -lgpurt
")
install(FILES ${PROJECT_BINARY_DIR}/gpurt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# CMake: find_package(gpurt) gives gpurt::gpurt.
set(GPURT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gpurt)
install(EXPORT gpurt NAMESPACE gpurt:: FILE gpurt-config.cmake DESTINATION ${GPURT_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpurt-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpurt-config-version.cmake DESTINATION ${GPURT_PACKAGE_DIR})

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND}
    -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/ci/uninstall.cmake)
add_custom_target(bundle COMMAND ${PROJECT_SOURCE_DIR}/ci/bundle.sh
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL
    COMMENT "One archive that runs on any newer Linux with a driver")
