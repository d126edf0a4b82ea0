# SPDX-License-Identifier: Apache-2.0
# The .deb files: `cpack -G DEB` makes one of each component of ci/install.cmake, and ci/package.sh
# calls it. What Debian wants elsewhere than `cmake --install` puts it is moved by stage.cmake.
set(GPURT_MAINTAINER "gpurt maintainers <maintainers@gpurt.invalid>" CACHE STRING
    "Who the packages name as their maintainer")

set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpurt)
set(CPACK_PACKAGE_CONTACT "${GPURT_MAINTAINER}")
# It would stand above the description of every package, whose first line is its own summary.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/ci/debian/stage.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_COMPONENTS_ALL program library development python)

# For stage.cmake: where libraries lie now and on Debian, their run path, and the texts.
set(CPACK_GPURT_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_GPURT_MULTIARCH ${CMAKE_LIBRARY_ARCHITECTURE})
get_target_property(run_path gpurt INSTALL_RPATH)
string(REPLACE ";" ":" CPACK_GPURT_RPATH "${run_path}")
string(REGEX REPLACE ":+$" "" CPACK_GPURT_RPATH "${CPACK_GPURT_RPATH}")
set(CPACK_GPURT_TEXTS ${PROJECT_SOURCE_DIR}/ci/debian)

set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
# Rows of control files, by component: NAME, SECTION, and what they need besides their libraries.
function(gpurt_deb component name section depends)
    string(TOUPPER ${component} C)
    set(CPACK_DEBIAN_${C}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${C}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${C}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
    set(CPACK_COMPONENT_${C}_DESCRIPTION "${ARGN}" PARENT_SCOPE)
endfunction()

gpurt_deb(program gpurt science "libgpurt0 ${same}"
"portable GPU training runtime (command)
gpurt lists devices, finds the settings that train fastest, trains networks on
HDF5 data and images, and policies by evolution strategies or PPO. It uses
Vulkan compute and OpenCL; where there is no GPU, kernels run on the CPU.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# Where libgpurt.so.0 is while packages are made.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd | opencl-icd")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "gpurt-mpi, python3-gpurt, pocl-opencl-icd")

gpurt_deb(library libgpurt0 libs ""
"portable GPU training runtime (shared library)
libgpurt records training steps once and replays them, through Vulkan compute
or OpenCL, on the GPU of any vendor. This is the library itself.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
# Both loaders are opened at run time, and gpurt runs without either.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "libvulkan1, ocl-icd-libopencl1 | libopencl1")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "gpurt-mpi")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    "${CPACK_GPURT_TEXTS}/shlibs;${CPACK_GPURT_TEXTS}/triggers")

gpurt_deb(development libgpurt-dev libdevel "libgpurt0 ${same}"
"portable GPU training runtime (development files)
Headers of libgpurt, and what pkg-config and CMake find it by.")

gpurt_deb(python python3-gpurt python
    "libgpurt0 ${same}, python3 (>= 3.8), python3-numpy"
"portable GPU training runtime (Python 3)
Devices, networks, environments and trainers of libgpurt for Python, with
NumPy arrays in and out.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${CPACK_GPURT_TEXTS}/postinst;${CPACK_GPURT_TEXTS}/prerm")

if(TARGET gpurt_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
    gpurt_deb(mpi gpurt-mpi science "libgpurt0 ${same}"
"portable GPU training runtime (several devices and machines)
With it the processes of one training meet by Open MPI, under mpirun or srun.")
    set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
endif()
include(CPack)
